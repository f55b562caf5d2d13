"""The private estimators, and what they share: their base, their releases, the grid."""
