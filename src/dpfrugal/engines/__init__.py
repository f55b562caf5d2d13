"""Engines: tables too large for one process are counted where they are, by Spark, DuckDB or Polars.

No algorithm is here. ``PrivateQuantile`` asks for counts between public edges; an engine counts.
"""
