"""How fast the window of a quantile is found among 20 million rows, beside ``numpy.sum`` of the same array, in one run.

Target: one quantile of float64 at 0.35 times the speed of ``numpy.sum`` or more, with everything from the sample to
the sorted window, in one thread; ``numpy.partition`` and ``numpy.sort`` stand beside it.

    python -m benchmarks.selection
    python -m benchmarks.selection --rows 5000000 --rounds 3    # a quick look
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numba  # noqa: F401 - loaded, so that numpy's own way is not measured
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from dpfrugal.estimators.table.rows.columns import read_column
from dpfrugal.estimators.table.rows.selected_rows import SelectedRows

REACH = 151
ONE, THREE = (0.5,), (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Data:
    """Rows, the quantiles to find, and the least speed that is asked for."""

    name: str
    rows: np.ndarray[Any, Any]
    quantiles: Sequence[float] = ONE
    least: float | None = None

    def select(self) -> None:
        """Find the windows, from a column that was just read."""
        rows = SelectedRows(read_column(self.rows, None, "raise"))
        ranges = [(int(q * rows.rows) - REACH, int(q * rows.rows) + REACH) for q in self.quantiles]
        rows.prepare(ranges)
        for first, last in ranges:
            rows.window(first, last, None, None)


def seconds(run: Callable[[], object]) -> float:
    """One timed call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    """Interleaved rounds; the median of the ratios inside each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    normal = np.random.default_rng(1).normal(50, 2, chosen.rows)
    cases = [
        Data("float64", normal, ONE, 0.35),
        Data("float64, q = 0.99", normal, (0.99,), 0.35),
        Data("float64, three quantiles", normal, THREE),
        Data("float64, nine deciles", normal, tuple(k / 10 for k in range(1, 10))),
        Data("float64, sorted", np.sort(normal)),
        Data("float64, lattice of 0.1", np.round(normal, 1)),
        Data("float64, one value", np.full(chosen.rows, 7.25)),
        Data("float32", normal.astype(np.float32)),
        Data("int64", (1e9 * normal).astype(np.int64)),
        Data("int64, three quantiles", (1e9 * normal).astype(np.int64), THREE),
    ]
    middle = chosen.rows // 2
    table = Table("what", "times numpy.sum", "best", "at least", title=f"{chosen.rows:,} rows, {machine.sentence()}")
    partitions = [
        (lambda: np.partition(normal, middle), "numpy.partition, float64"),
        (lambda: np.sort(normal), "numpy.sort, float64"),
    ]
    for run, name in partitions:
        ratios = [seconds(lambda: np.sum(normal)) / seconds(run) for _ in range(min(chosen.rounds, 3))]
        table.add_row(name, f"{median(ratios):.2f}", f"{max(ratios):.2f}", "")
    for case in cases:
        case.select()
        ratios = [seconds(lambda rows=case.rows: np.sum(rows)) / seconds(case.select) for _ in range(chosen.rounds)]
        least = "" if case.least is None else f"{case.least:g}"
        table.add_row(case.name, f"{median(ratios):.2f}", f"{max(ratios):.2f}", least)
    Console().print(table)


if __name__ == "__main__":
    main()
