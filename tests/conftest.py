"""What holds for every test: no clock, and one Spark session for all. Where there is no Java, its tests fail."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.postgres import server

# Time is measured in benchmarks, never asserted in a test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Processes that tests start find no scipy, as in a plain installation: it would slow each of them.
PLAIN = str(Path(__file__).parent.parent / "benchmarks" / "plain")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [PLAIN, os.environ.get("PYTHONPATH")]))


@pytest.hookimpl(tryfirst=True)  # before markers decide what runs
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples in docstrings of the Spark engine need a session, as its tests do."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name.startswith("dpfrugal.engines.spark"):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from dpfrugal.engines.spark.session import local_session

    session = local_session("local[2,4]", spark_sql_shuffle_partitions="2", spark_default_parallelism="2")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    """How to connect to a PostgreSQL server."""
    with server() as address:
        yield address


@pytest.fixture
def postgresql(postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client connects to that is told nothing else."""
    parts = dict(part.split("=") for part in postgres_address.split())
    for name, key in {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGDATABASE": "dbname"}.items():
        monkeypatch.setenv(name, parts[key])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly which programs were missing, and what was not tested with them."""
    for report in terminalreporter.stats.get("skipped", []):
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if "NOT TESTED" in said:
            terminalreporter.write_line(f"{report.nodeid}: {said.removeprefix('Skipped: ')}", red=True, bold=True)
