"""Engines: tables that Spark, DuckDB, Polars or a database holds are read where they are.

An engine delivers exact windows of order statistics and numbers of rows; what is private is chosen here, once.
"""


def missing(engine: str) -> ModuleNotFoundError:
    """What to raise where the package of an engine is not installed."""
    package = {"spark": "pyspark"}.get(engine, engine)
    return ModuleNotFoundError(
        f"dpfrugal.engines.{engine} needs the package {package}: pip install 'dpfrugal[{engine}]'.", name=package
    )
