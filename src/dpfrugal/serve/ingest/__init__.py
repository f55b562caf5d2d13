"""What comes in: OTLP, StatsD and JSON lines as items (``items``), which do not know where they came from."""
