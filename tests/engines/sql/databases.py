"""Databases that hold a table: SQLite, DuckDB, ClickHouse, PostgreSQL, each through its driver."""

import itertools
import sqlite3
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpfrugal.engines.sql.table import DatabaseTable

NAMES = itertools.count()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _declared(table: pa.Table, types: list[tuple[Any, str]], rest: str) -> str:
    def of(kind: Any) -> str:
        if pa.types.is_decimal(kind):
            return f"DECIMAL({kind.precision}, {kind.scale})"
        return next((name for check, name in types if check(kind)), rest)

    return ", ".join(f"{_quoted(field.name)} {of(field.type)}" for field in table.schema)


def sqlite_table(table: pa.Table) -> DatabaseTable:
    connection, name = sqlite3.connect(":memory:"), f"rows{next(NAMES)}"
    types = [(pa.types.is_integer, "BIGINT"), (pa.types.is_floating, "DOUBLE")]
    connection.execute(f"CREATE TABLE {name} ({_declared(table, types, 'TEXT')})")
    columns = [
        column.cast(pa.string()) if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type) else column
        for column in table.columns
    ]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})", rows)
    return DatabaseTable(connection, "sqlite", name, None)


def duckdb_table(table: pa.Table) -> DatabaseTable:
    import duckdb

    connection = duckdb.connect()
    connection.register("rows", table)
    connection.execute("CREATE TABLE held AS SELECT * FROM rows")
    return DatabaseTable(connection, "duckdb", "held", None)


CLICKHOUSE: list[Any] = []  # one session a process


def clickhouse_table(table: pa.Table, folder: Any) -> DatabaseTable:
    from chdb import dbapi

    if not CLICKHOUSE:
        CLICKHOUSE.append(dbapi.connect())
        CLICKHOUSE[0].cursor().execute("CREATE DATABASE IF NOT EXISTS tests ENGINE = Memory")
    name, path = f"rows{next(NAMES)}", folder / "rows.parquet"
    pq.write_table(table, path)
    rows = f"SELECT * FROM file('{path}', Parquet)"
    CLICKHOUSE[0].cursor().execute(f"CREATE TABLE tests.{name} ENGINE = Memory EMPTY AS {rows}")
    CLICKHOUSE[0].cursor().execute(f"INSERT INTO tests.{name} {rows}")
    return DatabaseTable(CLICKHOUSE[0], "clickhouse", f"tests.{name}", None)


def postgres_table(table: pa.Table, connection: Any, other: Any = None) -> DatabaseTable:
    """A table that ``connection``, one of psycopg's, makes; read by it, or by ``other``."""
    name = f"rows{next(NAMES)}"
    types = [
        (lambda kind: kind == pa.int16(), "SMALLINT"),
        (pa.types.is_integer, "BIGINT"),
        (lambda kind: kind == pa.float32(), "REAL"),
        (pa.types.is_floating, "DOUBLE PRECISION"),
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_date, "DATE"),
        (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, "TIMESTAMPTZ"),
        (pa.types.is_timestamp, "TIMESTAMP"),
    ]
    connection.execute(f"CREATE TABLE {name} ({_declared(table, types, 'TEXT')})")
    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            copy.write_row(row)
    return DatabaseTable(connection if other is None else other, "postgres", name, None)
