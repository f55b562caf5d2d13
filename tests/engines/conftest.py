"""Servers that tests of engines share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.postgres import server


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    """How to connect to a PostgreSQL server."""
    with server() as address:
        yield address


@pytest.fixture(scope="session")
def postgres(postgres_address: str) -> Iterator[Any]:
    """A connection of psycopg's to it."""
    import psycopg

    with psycopg.connect(postgres_address, autocommit=True) as connection:
        yield connection
