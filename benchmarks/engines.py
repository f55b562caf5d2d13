"""Time of private quantiles in DuckDB, Polars and PostgreSQL beside the engines' own exact quantiles, in one run.

Twenty million rows of exponential numbers; for each contender the best of several rounds, taken in turn. The windows
alone are the engine's part; the rest is the release, which costs the same whatever holds the rows. PostgreSQL is
started for it, with its default settings.
"""

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import polars as pl
import psycopg
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.engines import sql
from dpfrugal.engines.sql.table import DatabaseTable
from dpfrugal.estimators.table.choices.answers import reaches_of
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.private_quantiles import interval_rule
from dpfrugal.estimators.table.rows.engine_rows import EngineColumn
from dpfrugal.estimators.table.rows.engine_tables import Columns, engine_of
from dpfrugal.estimators.table.rows.grouped_rows import groups_of
from tests.support.postgres import server

GUARANTEE = dpf.PureDP(epsilon=1.0)


def windows(data: Any, keys: int) -> None:
    """What an engine does of a release: nothing is chosen."""
    asked = Asked(
        (Fraction(9, 10),), GUARANTEE, "replace", grouped=keys > 0, rows_per_person=1,
        intervals=interval_rule(True, 0.95, "population"), counts=keys > 0,
    )  # fmt: skip
    reaches = reaches_of(plan_of(asked))
    if keys:
        groups_of(data, "x", f"key_{keys}", keys=np.arange(keys)).prepare(reaches)
        return
    source = engine_of(data)
    assert source is not None
    rows = EngineColumn(source.open(Columns("x")), "raise").ordered()
    rows.prepare([(int(0.9 * rows.rows),) * 2], reaches)


def shown(found: dict[str, NDArray[np.float64]], engine: str, own: str, keys: int) -> None:
    exact, alone, private = (found[f"{engine} {name}"] for name in (own, "windows", "private"))
    for at, clock in enumerate(("", " of the processor")):
        if exact[at] > 0.01:  # PostgreSQL works in a process of its own
            print(
                f"{keys:>7,} keys  {engine}: {own} {exact[at]:6.2f} s, windows {alone[at]:6.2f} s: "
                f"{alone[at] / exact[at]:5.2f}×, private {private[at]:6.2f} s: {private[at] / exact[at]:5.2f}×{clock}",
                flush=True,
            )


def now() -> NDArray[np.float64]:
    return np.array([time.perf_counter(), time.process_time()])


def best(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, NDArray[np.float64]]:
    """Seconds of the clock, and of the processor: other programs slow a run down, but add little to these."""
    found = {name: np.full(2, np.inf) for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = now()
            run()
            found[name] = np.minimum(found[name], now() - started)
    return found


def contenders(frame: Any, connection: Any, keys: int) -> dict[str, Callable[[], Any]]:
    table = connection.sql("SELECT * FROM rows")
    by, declared = f"key_{keys}", np.arange(keys)
    if not keys:
        return {
            "duckdb quantile_cont": lambda: connection.sql("SELECT quantile_cont(x, 0.9) FROM rows").fetchall(),
            "duckdb windows": lambda: windows(table, 0),
            "polars windows": lambda: windows(frame, 0),
            "duckdb private": lambda: dpf.private_quantiles(table, 0.9, GUARANTEE, column="x"),
            "polars quantile": lambda: frame.select(pl.col("x").quantile(0.9)),
            "polars private": lambda: dpf.private_quantiles(frame, 0.9, GUARANTEE, column="x"),
        }
    own = f"SELECT {by}, quantile_cont(x, 0.9) FROM rows GROUP BY {by}"
    return {
        "duckdb quantile_cont": lambda: connection.sql(own).fetchall(),
        "duckdb windows": lambda: windows(table, keys),
        "polars windows": lambda: windows(frame, keys),
        "duckdb private": lambda: dpf.quantiles_by(table, "x", 0.9, GUARANTEE, by=by, keys=declared),
        "polars quantile": lambda: frame.group_by(by).agg(pl.col("x").quantile(0.9)),
        "polars private": lambda: dpf.quantiles_by(frame, "x", 0.9, GUARANTEE, by=by, keys=declared),
    }


def in_postgres(connection: Any, keys: int) -> dict[str, Callable[[], Any]]:
    own, table = "percentile_cont(0.9) WITHIN GROUP (ORDER BY x)", DatabaseTable(connection, "postgres", "rows", None)

    def alone() -> None:
        with table.one_state():
            windows(table, keys)

    if not keys:
        return {
            "postgresql windows": alone,
            "postgresql percentile_cont": lambda: connection.execute(f"SELECT {own} FROM rows").fetchall(),
            "postgresql private": lambda: sql.private_quantiles(connection, "rows", "x", 0.9, GUARANTEE),
        }
    grouped, declared = f"SELECT key_{keys}, {own} FROM rows GROUP BY key_{keys}", np.arange(keys)
    return {
        "postgresql windows": alone,
        "postgresql percentile_cont": lambda: connection.execute(grouped).fetchall(),
        "postgresql private": lambda: sql.quantiles_by(
            connection, "rows", "x", 0.9, GUARANTEE, by=f"key_{keys}", keys=declared
        ),
    }


def measure_postgres(rows: int, rounds: int, several: list[int]) -> None:
    """Keys of so few rows that PostgreSQL is asked to sort are not measured here."""
    with server() as address, psycopg.connect(address, autocommit=True) as connection:
        columns = "".join(f", CAST(floor(random() * {keys}) AS integer) AS key_{keys}" for keys in several if keys)
        connection.execute(
            f"CREATE TABLE rows AS SELECT -ln(1 - random()) AS x{columns} FROM generate_series(1, {rows})"
        )
        connection.execute("VACUUM ANALYZE rows")
        print(f"{rows:,} rows; PostgreSQL {connection.info.server_version}; best of {rounds}")
        for keys in several:
            shown(best(in_postgres(connection, keys), rounds), "postgresql", "percentile_cont", keys)


def measure_in_process(rows: int, rounds: int, several: list[int]) -> None:
    random = np.random.default_rng(1)
    columns: dict[str, Any] = {"x": random.exponential(size=rows)}
    for keys in filter(None, several):
        columns[f"key_{keys}"] = random.integers(0, keys, rows)
    frame, connection = pl.DataFrame(columns), duckdb.connect()
    connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
    print(f"{rows:,} rows; DuckDB {duckdb.__version__}, Polars {pl.__version__}; best of {rounds}")
    for keys in several:
        found = best(contenders(frame, connection, keys), rounds)
        for name, own in (("duckdb", "quantile_cont"), ("polars", "quantile")):
            shown(found, name, own, keys)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=20e6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, nargs="*", default=[0, 1000, 100_000])
    parser.add_argument("--only", choices=["in-process", "postgresql"])
    given = parser.parse_args()
    if given.only != "postgresql":
        measure_in_process(int(given.rows), given.rounds, given.keys)
    if given.only != "in-process":
        measure_postgres(int(given.rows), given.rounds, [keys for keys in given.keys if keys <= 1000])


if __name__ == "__main__":
    main()
