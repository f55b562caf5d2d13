"""Engines: tables too large for one process are counted where they are, by Spark, DuckDB or Polars.

No algorithm is here. ``PrivateQuantile`` asks for counts between public edges; an engine counts.
"""


def missing(engine: str) -> ModuleNotFoundError:
    """What to raise where the package of an engine is not installed."""
    package = {"spark": "pyspark"}.get(engine, engine)
    return ModuleNotFoundError(
        f"dpfrugal.engines.{engine} needs the package {package}: pip install 'dpfrugal[{engine}]'.", name=package
    )
