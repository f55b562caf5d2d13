"""The mechanism: plans, choices of values and of intervals, and their compiled forms for many groups."""
