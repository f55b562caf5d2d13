"""What is written to disk: checkpoint files, and values as JSON that come back exactly."""
