"""``PrivateQuantile``: noisy counts of segments of a stream, in constant memory."""
