"""A Spark session on this machine alone: for a notebook, an example, a test. On a cluster, bring the cluster's own."""

import os
from typing import Any, Final

from dpfrugal.engines.spark.find_java import provide

PARTS: Final = {"spark.sql.files.minPartitionNum": 4, "spark.sql.shuffle.partitions": 2}  # for each core


def local_session(master: str = "local[*]", **settings: str) -> Any:
    """A session that listens on the loopback only, shows no web page, and runs this Python in its workers.

    ``settings`` are Spark's, with ``_`` for ``.``: ``spark_sql_shuffle_partitions="4"``. Files are read in four parts a
    core or more: of Spark's own parts, of 128 MB, a table that fits one machine has so few that cores wait. Shuffles
    have two parts a core, not 200: a stream keeps state for each of them.

    >>> from dpfrugal.engines.spark import local_session
    >>> local_session().range(3).count()
    3
    """
    provide()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # for executors that are processes of their own
    from pyspark.sql import SparkSession

    own = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",  # for throughput, on one core as on many
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # No limit. With one, Spark adds up the bytes of the batch anew for every row that goes to Python, which takes
        # as long as all the rest; a batch has 10,000 rows at most in any case.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    }
    builder = SparkSession.builder.master(master).appName("dpfrugal")
    given = {name.replace("_", "."): value for name, value in settings.items()}
    for name, value in (own | given).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("FATAL")  # an error is raised: its text, which may quote rows, is not logged too
    for name, parts in PARTS.items():
        if name not in given:
            session.conf.set(name, str(parts * session.sparkContext.defaultParallelism))
    return session
