"""A connection that tests of engines share."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres(postgres_address: str) -> Iterator[Any]:
    """A connection of psycopg's to a PostgreSQL server."""
    import psycopg

    with psycopg.connect(postgres_address, autocommit=True) as connection:
        yield connection
