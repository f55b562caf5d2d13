"""Rows that change between two statements and keep all numbers of rows: refused, or not seen; never half of each."""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from dpfrugal.engines import bracket_search, sql
from dpfrugal.engines.sql import table as sql_table
from dpfrugal.engines.sql.table import DatabaseColumns, DatabaseTable
from dpfrugal.errors import TableError
from dpfrugal.estimators.table.rows.engine_tables import EngineTable
from tests.engines.sql.databases import CLICKHOUSE, clickhouse_table, postgres_table

GUARANTEE = dpf.PureDP(epsilon=1.0)
ROWS = 6_000
NAMES = itertools.count()
Changing = tuple[Any, Callable[[], object]]  # a table in an engine, and how one of its rows becomes another

UPDATE = "UPDATE {} SET value = 7000 WHERE value = 3000"


def held() -> pa.Table:
    value = np.arange(ROWS)
    return pa.table({"value": value + 1_000, "key": value % 3, "who": value // 2})


def duckdb_table(folder: Path) -> Changing:
    import duckdb

    connection, rows = duckdb.connect(), held()
    connection.register("given", rows)
    connection.execute("CREATE TABLE rows AS SELECT * FROM given")
    return connection.sql("SELECT * FROM rows"), lambda: connection.execute(UPDATE.format("rows"))


def file_of(folder: Path) -> tuple[str, Callable[[], object]]:
    """A file of lines that all have the same length, before and after."""
    path, rows = folder / "rows.csv", [",".join(map(str, row.values())) for row in held().to_pylist()]

    def write(lines: list[str]) -> None:
        path.write_text("\n".join(["value,key,who", *lines]) + "\n", encoding="utf-8")

    write(rows)
    return str(path), lambda: write([row.replace("3000,", "7000,", 1) for row in rows])


def duckdb_file(folder: Path) -> Changing:
    import duckdb

    path, change = file_of(folder)
    return duckdb.connect().read_csv(path), change


def duckdb_by_sql(folder: Path) -> Changing:
    import duckdb

    path, change = file_of(folder)
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW rows AS SELECT * FROM read_csv('{path}')")
    return DatabaseTable(connection, "duckdb", "rows", None), change


def polars_file(folder: Path) -> Changing:
    import polars

    path, change = file_of(folder)
    return polars.scan_csv(path), change


def sqlite_connection(folder: Path) -> Changing:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rows (value BIGINT, key BIGINT, who BIGINT)")
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", [tuple(row.values()) for row in held().to_pylist()])
    return DatabaseTable(connection, "sqlite", "rows", None), lambda: connection.execute(UPDATE.format("rows"))


def clickhouse(folder: Path) -> Changing:
    table = clickhouse_table(held(), folder)
    changed, path = held().to_pandas(), folder / "changed.parquet"
    changed.loc[changed.value == 3_000, "value"] = 7_000
    pq.write_table(pa.Table.from_pandas(changed), path)

    def change() -> None:
        CLICKHOUSE[0].cursor().execute(f"TRUNCATE TABLE {table.name}")
        CLICKHOUSE[0].cursor().execute(f"INSERT INTO {table.name} SELECT * FROM file('{path}', Parquet)")

    return table, change


ENGINES = [duckdb_table, duckdb_file, duckdb_by_sql, polars_file, sqlite_connection, clickhouse]


@pytest.fixture(
    params=[*(each.__name__ for each in ENGINES), "postgres", pytest.param("spark", marks=pytest.mark.spark)]
)
def changing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Changing]:
    """An engine whose table changes."""
    if request.param == "spark":
        path, change = file_of(tmp_path)
        yield request.getfixturevalue("spark").read.csv(path, header=True, inferSchema=True), change
    elif request.param == "postgres":
        postgres, address = (request.getfixturevalue(name) for name in ("postgres", "postgres_address"))
        with psycopg.connect(address) as reading:
            table = postgres_table(held(), postgres, reading)
            reading.execute("SELECT 1")  # in a transaction at READ COMMITTED
            yield table, lambda: postgres.execute(UPDATE.format(table.name))
    else:
        yield next(each for each in ENGINES if each.__name__ == request.param)(tmp_path)


@pytest.fixture(params=["scanned", "whole"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether brackets are searched for, or all rows collected; by a database, whether it is scanned or sorts."""
    if request.param == "scanned":
        for name, value in {"WHOLE": 30, "FEW": 30, "COLLECTED": 500}.items():
            monkeypatch.setattr(bracket_search, name, value)
        monkeypatch.setattr(sql_table, "LARGE", 1)
        monkeypatch.setattr(sql_table, "LARGE_GROUPS", 1)


def changes_before_find(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Between the statement that counts and those that find windows."""
    for kind in (bracket_search.BracketedTable, DatabaseColumns):
        own = kind.__dict__["find"]

        def find(self: EngineTable, *given: Any, own: Any = own) -> Any:
            change()
            return own(self, *given)

        monkeypatch.setattr(kind, "find", find)


@pytest.mark.parametrize("options", [{}, {"by": "key", "keys": [0, 1, 2]}, {"by": "key", "keys": [0], "other": 9}])
@pytest.mark.parametrize("limits", [{}, {"person": "who"}])
def test_changing__a_row_that_becomes_another_between_two_statements_is_refused(
    changing: Changing, how: None, options: dict[str, Any], limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    data, change = changing
    ledger = dpf.Ledger(tmp_path / "ledger", total=GUARANTEE)
    asked: Any = {"column": "value", "quantiles": 0.5, "guarantee": GUARANTEE, **options, **limits}
    asked |= {"ledger": ledger, "dataset": "rows"}
    if limits:  # all rows of everybody count, so the one that changes does
        asked["max_items_per_person"] = 2
    ask = dpf.quantiles_by if options else dpf.private_quantiles
    changes_before_find(monkeypatch, change)
    with pytest.raises(TableError, match="the table changed while it was read") as caught:
        ask(data, **asked)
    assert any("Nothing was spent" in note for note in caught.value.__notes__)
    assert not ledger.datasets()
    monkeypatch.undo()
    ask(data, **asked)  # nothing changes meanwhile
    assert ledger.left("rows") is None


def seen_by(connection: Any, table: str, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> list[Any]:
    """The windows' values of a release during which the table changes, once."""
    found, changes = [], iter([change])
    own = DatabaseColumns.find

    def find(self: DatabaseColumns, *given: Any) -> Any:
        next(changes, lambda: None)()
        found.extend(own(self, *given))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(DatabaseColumns, "find", find)
        sql.private_quantiles(connection, table, "value", 0.5, GUARANTEE)
    (part,) = found
    codes: list[Any] = part.stretches[0].codes.tolist()
    return codes


@pytest.mark.parametrize("autocommit", [True, False])
def test_changing__postgresql_reads_one_state_where_no_transaction_is_open(
    autocommit: bool, postgres: Any, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = postgres_table(held(), postgres).name
    with psycopg.connect(postgres_address, autocommit=autocommit) as reading:
        before = seen_by(reading, name, monkeypatch, lambda: postgres.execute(f"UPDATE {name} SET value = value + 1"))
        assert reading.info.transaction_status == 0  # none is open, as before
        assert 3_999 in before
        after = seen_by(reading, name, monkeypatch, lambda: None)
        assert after == [each + 1 for each in before]
        reading.execute(f"DELETE FROM {name}")  # nothing that was set is left
        assert reading.execute("SHOW transaction_isolation").fetchone() == ("read committed",)


def test_changing__a_transaction_of_the_callers_is_left_as_it_is(postgres: Any, postgres_address: str) -> None:
    name = postgres_table(held(), postgres).name
    with psycopg.connect(postgres_address) as own:
        own.execute(f"DELETE FROM {name} WHERE key = 2")
        release = sql.private_quantiles(own, name, "value", 0.5, GUARANTEE)
        assert not isinstance(release, str)
        assert release.items == 4_000
        own.rollback()
        assert own.execute(f"SELECT COUNT(*) FROM {name}").fetchone() == (ROWS,)


@pytest.mark.parametrize("library", ["sqlite3", "duckdb"])
def test_changing__sqlite_and_duckdb_read_one_state_where_no_transaction_is_open(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "rows.db")
    if library == "sqlite3":
        reading, writing = sqlite3.connect(path), sqlite3.connect(path, isolation_level=None)
        writing.execute("PRAGMA journal_mode = WAL")
    else:
        import duckdb

        reading = duckdb.connect(path)
        writing = reading.cursor()
    writing.execute("CREATE TABLE rows AS WITH RECURSIVE t(value) AS (SELECT 1000 UNION ALL SELECT value + 1 FROM t "
                    "WHERE value < 6999) SELECT CAST(value AS BIGINT) AS value FROM t")  # fmt: skip
    before = seen_by(reading, "rows", monkeypatch, lambda: writing.execute("UPDATE rows SET value = value + 1"))
    after = seen_by(reading, "rows", monkeypatch, lambda: None)
    assert after == [each + 1 for each in before]
    reading.execute("BEGIN").fetchall()  # none is open
    reading.execute("INSERT INTO rows VALUES (1)").fetchall()
    release = sql.private_quantiles(reading, "rows", "value", 0.5, GUARANTEE)
    assert not isinstance(release, str)
    assert release.items == ROWS + 1
    reading.execute("ROLLBACK")  # the caller's, which is still open
    assert reading.execute("SELECT COUNT(*) FROM rows").fetchone() == (ROWS,)
