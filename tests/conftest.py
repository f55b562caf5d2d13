"""One Spark session for the whole suite. Where there is no Java, the tests that need it fail, and say so."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from dpfrugal.engines.spark_session import local_session

    session = local_session("local[2,4]", spark_sql_shuffle_partitions="2", spark_default_parallelism="2")
    yield session
    session.stop()
