"""Where the rows of a table come from: columns and batches of whatever the caller has."""
