"""A Spark session on this machine alone: for a notebook, an example, a test. On a cluster, bring the cluster's own."""

from typing import Any

from dpfrugal.engines.java import provide


def local_session(master: str = "local[*]", **settings: str) -> Any:
    """A session that listens on the loopback only, shows no web page, and runs this Python in its workers.

    ``settings`` are Spark's, with ``_`` for ``.``: ``spark_sql_shuffle_partitions="4"``.
    """
    provide()
    from pyspark.sql import SparkSession

    own = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("dpfrugal")
    for name, value in (own | {name.replace("_", "."): value for name, value in settings.items()}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
