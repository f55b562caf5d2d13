"""Types of databases: each is answered in its own type, or refused in a sentence."""

import datetime
import sqlite3
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.engines import sql
from dpfrugal.errors import ItemTypeError, ParameterTypeError

GUARANTEE = dpf.PureDP(epsilon=1.0)


def of(connection: Any, column: str, **options: Any) -> Any:
    release = sql.private_quantiles(connection, "spans", column, 0.5, GUARANTEE, **options)
    assert not isinstance(release, str)
    return release.value


@pytest.fixture
def spans(postgres: Any) -> Any:
    """Spans of time that PostgreSQL orders by months of 30 days; decimals, times with infinity, and odd types."""
    postgres.execute("DROP TABLE IF EXISTS spans")
    postgres.execute(
        """CREATE TABLE spans AS SELECT k, k * interval '1 minute' - interval '5 days' AS minutes,
        make_interval(months => CAST(k %% 40 AS int) - 20, days => CAST(k %% 70 AS int)) AS months,
        CASE WHEN k %% 9 = 0 THEN 'infinity' ELSE date '2020-01-01' + CAST(k AS int) END AS until,
        CAST(CASE WHEN k %% 9 = 0 THEN 'NaN' ELSE CAST(k AS numeric) END AS numeric(12, 2)) AS money,
        CAST('12:00' AS time) AS noon, CAST(k AS money) AS dollars, timestamptz '2020-01-01 00:00+02' AS at
        FROM generate_series(0, 19999) AS k""".replace("%%", "%")
    )
    return postgres


def test_types__intervals_of_postgresql_are_durations_in_its_own_order(spans: Any, postgres_address: str) -> None:
    from adbc_driver_postgresql import dbapi

    parts = dict(part.split("=") for part in postgres_address.split())
    with dbapi.connect(f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}") as other:
        for connection in (spans, other):
            off = of(connection, "minutes") - np.timedelta64(datetime.timedelta(minutes=9_999.5, days=-5))
            assert abs(off) < datetime.timedelta(minutes=30)
            exact = datetime.timedelta(days=int(np.median([(k % 40 - 20) * 30 + k % 70 for k in range(20_000)])))
            assert abs(of(connection, "months") - np.timedelta64(exact)) < datetime.timedelta(days=5)
    wrong = spans.execute(
        "WITH a AS (SELECT months AS v, CAST(ROUND((EXTRACT(EPOCH FROM months) - 453600 * EXTRACT(YEAR FROM months)) "
        "* 1000000) AS BIGINT) AS us FROM spans) SELECT COUNT(*) FROM (SELECT DISTINCT v, us FROM a) AS a, "
        "(SELECT DISTINCT v, us FROM a) AS b WHERE (a.v < b.v) <> (a.us < b.us)"
    )
    assert wrong.fetchone() == (0,)


def test_types__what_is_not_finite_is_missing_or_refused(spans: Any) -> None:
    with pytest.raises(ItemTypeError, match="finite times"):
        of(spans, "until")
    assert abs(of(spans, "until", where="until < 'infinity'") - np.datetime64("2047-05-18")) < datetime.timedelta(100)
    with pytest.raises(dpf.ItemError, match="NaN or null"):
        of(spans, "money")
    assert abs(float(of(spans, "money", nan_policy="omit")) - 10_000) < 50
    assert of(spans, "at") == np.datetime64("2019-12-31T22:00")  # in UTC
    for column, said in {"noon": "TIME", "dollars": "MONEY"}.items():
        with pytest.raises(ItemTypeError, match=f"the column holds {said}"):
            of(spans, column)


def test_types__rows_of_a_driver_may_be_dictionaries(spans: Any, postgres_address: str) -> None:
    with psycopg.connect(postgres_address, row_factory=psycopg.rows.dict_row) as connection:
        assert abs(of(connection, "k") - 9_999.5) < 30


def test_types__an_asynchronous_connection_is_refused(spans: Any) -> None:
    class Other:
        def cursor(self) -> None: ...

        async def commit(self) -> None: ...

    with pytest.raises(ParameterTypeError, match="not asynchronous"):
        sql.private_quantiles(Other(), "spans", "k", 0.5, GUARANTEE, dialect="postgres")
    with pytest.raises(ParameterTypeError, match="column must be the name"):
        sql.private_quantiles(spans, "spans", None, 0.5, GUARANTEE)  # type: ignore[arg-type]


def test_types__sqlite_keeps_times_as_texts() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE days (day DATE)")
    connection.executemany("INSERT INTO days VALUES (?)", [(f"2026-01-{1 + k % 28:02}",) for k in range(5_000)])
    with pytest.raises(ItemTypeError, match=r"declared as DATE; of times take a view with unixepoch\(\)"):
        sql.private_quantiles(connection, "days", "day", 0.5, GUARANTEE)
    connection.execute("CREATE VIEW seconds AS SELECT unixepoch(day) AS day FROM days")
    release = sql.private_quantiles(connection, "seconds", "day", 0.5, GUARANTEE)
    assert not isinstance(release, str)
    assert abs(release.value - datetime.datetime(2026, 1, 15, tzinfo=datetime.UTC).timestamp()) < 2 * 86_400


def test_types__duckdb_shows_what_its_connection_sees() -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TEMP TABLE spans AS SELECT range AS k, range * INTERVAL 1 MINUTE AS t FROM range(9_000)")
    assert abs(of(connection, "k") - 4_500) < 50
    assert abs(of(connection, "t") - np.timedelta64(datetime.timedelta(minutes=4_500))) < datetime.timedelta(minutes=50)
    connection.execute("BEGIN").fetchall()
    connection.execute("DELETE FROM spans WHERE k >= 5_000").fetchall()
    assert abs(of(connection, "k") - 2_500) < 50
    connection.execute("ROLLBACK").fetchall()


def test_types__times_of_clickhouse_with_a_zone_are_in_utc(tmp_path: Any) -> None:
    """In the night on which clocks are set back, times of the zone are not in the order of time."""
    from tests.engines.sql.databases import CLICKHOUSE, clickhouse_table

    clickhouse_table(pa.table({"k": [1]}), tmp_path)
    cursor = CLICKHOUSE[0].cursor()
    cursor.execute("DROP TABLE IF EXISTS tests.night")
    cursor.execute(
        "CREATE TABLE tests.night (at DateTime('Europe/Berlin'), fine Nullable(DateTime64(3, 'Europe/Berlin'))) "
        "ENGINE = Memory"
    )
    seconds = "toDateTime(1729989000 + number, 'Europe/Berlin')"  # from 2024-10-27 00:30 UTC on
    cursor.execute(f"INSERT INTO tests.night SELECT {seconds} AS at, at FROM numbers(5400)")
    for column in ("at", "fine"):
        release = sql.private_quantiles(CLICKHOUSE[0], "tests.night", column, 0.5, GUARANTEE)
        assert not isinstance(release, str)
        assert abs(release.value - np.datetime64("2024-10-27T01:15")) < np.timedelta64(60, "s")
