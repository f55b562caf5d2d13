"""Time of private quantiles in DuckDB and Polars beside the engines' own exact quantiles, as ratios inside one run.

Twenty million rows of exponential numbers; for each contender the best of several rounds, taken in turn.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import polars as pl

import dpfrugal as dpf

GUARANTEE = dpf.PureDP(epsilon=1.0)


def best(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    found = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            found[name] = min(found[name], time.perf_counter() - started)
    return found


def contenders(frame: Any, connection: Any, keys: int) -> dict[str, Callable[[], Any]]:
    table = connection.sql("SELECT * FROM rows")
    by, declared = f"key_{keys}", np.arange(keys)
    if not keys:
        return {
            "duckdb quantile_cont": lambda: connection.sql("SELECT quantile_cont(x, 0.9) FROM rows").fetchall(),
            "duckdb private": lambda: dpf.private_quantiles(table, 0.9, GUARANTEE, column="x"),
            "polars quantile": lambda: frame.select(pl.col("x").quantile(0.9)),
            "polars private": lambda: dpf.private_quantiles(frame, 0.9, GUARANTEE, column="x"),
        }
    own = f"SELECT {by}, quantile_cont(x, 0.9) FROM rows GROUP BY {by}"
    return {
        "duckdb quantile_cont": lambda: connection.sql(own).fetchall(),
        "duckdb private": lambda: dpf.quantiles_by(table, "x", 0.9, GUARANTEE, by=by, keys=declared),
        "polars quantile": lambda: frame.group_by(by).agg(pl.col("x").quantile(0.9)),
        "polars private": lambda: dpf.quantiles_by(frame, "x", 0.9, GUARANTEE, by=by, keys=declared),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=20e6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, nargs="*", default=[0, 1000, 100_000])
    given = parser.parse_args()
    rows, random = int(given.rows), np.random.default_rng(1)
    columns: dict[str, Any] = {"x": random.exponential(size=rows)}
    for keys in filter(None, given.keys):
        columns[f"key_{keys}"] = random.integers(0, keys, rows)
    frame, connection = pl.DataFrame(columns), duckdb.connect()
    connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
    print(f"{rows:,} rows; DuckDB {duckdb.__version__}, Polars {pl.__version__}; best of {given.rounds}")
    for keys in given.keys:
        found = best(contenders(frame, connection, keys), given.rounds)
        for name, own in (("duckdb", "quantile_cont"), ("polars", "quantile")):
            exact, private = found[f"{name} {own}"], found[f"{name} private"]
            print(f"{keys:>7,} keys  {name}: {own} {exact:6.2f} s, private {private:6.2f} s: {private / exact:5.2f}×")


if __name__ == "__main__":
    main()
