"""A table: quantiles of rows that are at hand, by an exact choice among all numbers."""
