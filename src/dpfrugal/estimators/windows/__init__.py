"""Windows: the table's quantiles of a stream, period by period."""
