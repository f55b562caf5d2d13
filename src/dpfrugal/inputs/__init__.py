"""Data from outside, as batches of numbers: arrays, data frames, files, lines of text."""
