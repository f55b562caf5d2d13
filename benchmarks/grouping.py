"""Rows by group: the time to read, group and sort a table, as a ratio to an exact median per group, inside one run.

The task: from a table with a column of keys and one of float64 values, the values of each key in ascending order
(``read_groups``, what a private quantile per group starts from). Beside it Polars computes the exact median of each
group of the same table, with as many threads as it likes. Both hold the table already; keys are declared, and their
index is built within the time. Discovered keys are counted only, before their noise. The best of several repetitions,
in turn.

    python -m benchmarks.grouping                   # two or three minutes on two cores
    python -m benchmarks.grouping --rows 1000000    # a quick look
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from benchmarks import machine
from dpfrugal.estimators.table.rows.grouped_rows import read_groups

KEYS = (100, 100_000)
REPETITIONS = 5
AT_MOST = 2.0  # of the exact group-by's time, for declared keys
DISCOVER = dpf.ApproxDP(epsilon=1.0, delta=1e-6)


def tables(rows: int, keys: int) -> dict[str, tuple[pa.Table, Any]]:
    """The same rows with keys as strings, dictionary-encoded strings and integers; and all keys of each."""
    rng = np.random.default_rng(keys)
    ids, values = rng.integers(0, keys, rows), rng.lognormal(3.0, 1.0, rows)
    who = rng.integers(0, max(rows // 10, 1), rows)
    names = pa.array([f"/endpoint/{key:06d}" for key in range(keys)])
    encoded = pa.DictionaryArray.from_arrays(pa.array(ids.astype(np.int32)), names)
    columns = {
        "strings": (encoded.cast(pa.large_string()), names),
        "dictionary": (encoded, names),
        "integers": (pa.array(ids), pa.array(np.arange(keys))),
    }
    return {
        kind: (pa.table({"key": column, "value": values, "who": who}), all_keys)
        for kind, (column, all_keys) in columns.items()
    }


def best_in_turn(tasks: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The seconds of the best repetition of each task; they take turns, so that all meet the same machine."""
    seconds = dict.fromkeys(tasks, float("inf"))
    for _ in range(REPETITIONS):
        for name, task in tasks.items():
            before = time.perf_counter()
            task()
            seconds[name] = min(seconds[name], time.perf_counter() - before)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    shown = Table(
        "keys", "kind", "Polars, s", "from Arrow", "pandas", "polars", "half, and other", "discovered", "persons"
    )
    worst = 0.0
    for keys in KEYS:
        for kind, (table, declared) in tables(rows, keys).items():
            polars, pandas = pl.from_arrow(table), table.to_pandas()
            half = {"keys": declared.take(pa.array(np.arange(0, keys, 2))), "other": declared[1].as_py()}

            def read(data: Any, **options: Any) -> Callable[[], Any]:
                return lambda: read_groups(data, "value", "key", **options)

            seconds = best_in_turn(
                {
                    "Polars": lambda frame=polars: frame.group_by("key").agg(pl.col("value").quantile(0.5)),
                    "from Arrow": read(table, keys=declared),
                    "pandas": read(pandas, keys=declared),
                    "polars": read(polars, keys=declared),
                    "other": read(table, **half),
                    "discovered": read(table, discover_keys=DISCOVER),
                    "persons": read(table, keys=declared, person="who", max_items_per_person=5),
                }
            )
            exact = seconds.pop("Polars")
            worst = max([worst, *(seconds[name] / exact for name in ("from Arrow", "pandas", "polars"))])
            shown.add_row(f"{keys:,}", kind, f"{exact:.2f}", *(f"{each / exact:.2f}×" for each in seconds.values()))
    console = Console(width=120)
    console.print(shown)
    console.print(f"{rows:,} rows. The worst ratio for declared keys is {worst:.2f}; at most {AT_MOST} is the target.")
    console.print(machine.sentence())


if __name__ == "__main__":
    main()
