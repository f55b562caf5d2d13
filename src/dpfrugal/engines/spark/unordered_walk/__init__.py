"""The walk over rows that have no order of their own: they are walked in the order of secret words."""
