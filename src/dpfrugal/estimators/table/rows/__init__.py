"""The rows of a table as the mechanism needs them: by rank, by group, from whatever holds them. Raw."""
