"""How many rows the quantiles of a table are off: laws of all sorts, 60 to ten million rows, in all and per group.

Each cell is a root mean square, over at least 200 tables, of the distance between the wanted rank and the ranks that
the answer covers; replace-one, no hints, no intervals. Up to 100,000 rows a table is drawn whole and handed to
``dpf.private_quantiles``, and all questions about one size are asked of the same tables. Above, the mechanism is given
the rows around the wanted rank from their exact law (``laws.Law.order_statistics``): no other rows can matter, as the
distance of every other answer is capped.

    python -m benchmarks.table_accuracy [--tables 200] [--processes 2] [--only one|several]
"""

import argparse
import math
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import dpfrugal as dpf
from benchmarks.laws import NINE, PAPER, Law, Rows, real_laws
from dpfrugal.estimators.table.base.kinds import hinted
from dpfrugal.estimators.table.choices.answers import answers
from dpfrugal.estimators.table.choices.mechanism import CAP
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.rows.columns import read_column
from dpfrugal.estimators.table.rows.order_statistics import SortedRows

WHOLE = 100_000  # tables of more rows are not drawn whole
DECILES = tuple(round(0.1 * i, 1) for i in range(1, 10))
SINGLE = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Line:
    """A line of the summary: what is asked, of which tables, and how many rows off are allowed."""

    name: str
    cells: tuple[tuple[tuple[float, ...], int], ...]  # quantiles, rows
    asked_of_median: float | None
    asked_of_worst: float
    epsilon: float = 1.0
    ordinary: bool = False
    groups: bool = False


SIZES = (200, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LARGE = (10_000, 100_000)
LINES = (
    Line(
        "one quantile, n·min(q, 1−q) ≥ 100, n to 10⁷",
        tuple(((q,), n) for q in SINGLE for n in SIZES if n * min(q, 1 - q) > 99.9),
        3.5,
        6,
    ),
    Line(
        "one quantile, n·min(q, 1−q) ≥ 30, laws of ordinary width",
        (((0.5,), 60), ((0.9,), 300), ((0.99,), 3_000)),
        None,
        5,
        ordinary=True,
    ),
    Line("p50, p90 and p99 together, n ≥ 10⁴", tuple((SINGLE, n) for n in LARGE), None, 12),
    Line("nine deciles, n ≥ 10⁴", tuple((DECILES, n) for n in LARGE), None, 16),
    Line(
        "ε = 0.1: one quantile, n·min(q, 1−q) ≥ 1,000",
        (((0.5,), 2_000), ((0.9,), 10_000), ((0.99,), 100_000), ((0.5,), 10_000_000)),
        35,
        60,
        epsilon=0.1,
    ),
    Line("ε = 0.1: p50, p90 and p99 together, n = 10⁵", ((SINGLE, 100_000),), None, 120, epsilon=0.1),
    Line("ε = 0.1: nine deciles, n = 10⁵", ((DECILES, 100_000),), None, 160, epsilon=0.1),
    Line(
        "per group: one quantile, n·min(q, 1−q) ≥ 100",
        (((0.5,), 200), ((0.9,), 1_000), ((0.99,), 10_000)),
        7,
        12,
        groups=True,
    ),
    Line("per group: p50, p90 and p99 together, n = 10⁴", ((SINGLE, 10_000),), None, 24, groups=True),
    Line("per group: nine deciles, n = 10⁴", ((DECILES, 10_000),), None, 32, groups=True),
)


class RowsAroundRank(SortedRows):
    """Those rows of a sorted table that can matter: of ranks ``first``, ``first`` + 1, … (from 1 on)."""

    def __init__(self, codes: Any, first: int, rows: int) -> None:
        super().__init__(codes)
        self._before, self._rows = first - 1, rows

    @property
    def rows(self) -> int:
        """Of the whole table."""
        return self._rows

    def _ranked(self, first: int, last: int) -> Any:
        return super()._ranked(max(first - self._before, 0), last - self._before)

    def _counted(self, codes: Any) -> tuple[Any, Any]:
        below, upto = super()._counted(codes)
        return below + self._before, upto + self._before


def rows_off(rows: Rows, answer: Any, q: float, n: int, before: int = 0) -> float:
    """How far the rank q·n is from those that the answer covers; ``rows`` are sorted, ``before`` lie below them."""
    if rows.size < n and not rows[0] <= answer <= rows[-1]:
        return min(q, 1 - q) * n  # beyond the rows that were drawn: as far as it can be
    below, upto = before + np.searchsorted(rows, answer, "left"), before + np.searchsorted(rows, answer, "right")
    return max(0.0, float(below - q * n), float(q * n - upto))


def off_of_whole(rows: Rows, quantiles: Sequence[float], epsilon: float) -> list[float]:
    """How far the answers are off for a table that is at hand."""
    release = dpf.private_quantiles(rows, quantiles, dpf.PureDP(epsilon=epsilon), intervals=False)
    return [rows_off(rows, value, q, rows.size) for q, value in zip(quantiles, release.values, strict=True)]


def off_of_part(law: Law, rng: np.random.Generator, q: float, n: int, epsilon: float) -> list[float]:
    """The same for a table of which only the rows around the rank are drawn."""
    plan = plan_of(Asked((Fraction(repr(q)),), dpf.PureDP(epsilon=epsilon), "replace"))
    reach = math.ceil(CAP / (2 * plan.slope)) + 3
    first, last = max(1, math.floor(q * n) - reach), min(n, math.ceil(q * n) + reach)
    rows = law.order_statistics(rng, n, first, last)
    column = read_column(rows, None, "raise")
    around = RowsAroundRank(column.codes, first, n)
    (code,) = answers(around, plan, hinted(column.kind, None, None, None))
    return [rows_off(rows, column.kind.answer(code), q, n, first - 1)]


def off_of_groups(law: Law, rng: np.random.Generator, quantiles: Sequence[float], n: int, tables: int) -> list[Any]:
    """The same for all groups of one table, each of n rows."""
    import pyarrow as pa

    rows = law.draw(rng, n * tables)
    keys = list(range(tables))
    table = pa.table({"g": np.repeat(np.arange(tables), n), "x": rows})
    guarantee = dpf.PureDP(epsilon=1.0)
    found = dpf.quantiles_by(table, "x", quantiles, guarantee, by="g", keys=keys, counts=False, intervals=False)
    values = found["value"].to_numpy().reshape(tables, len(quantiles))
    groups = np.sort(rows.reshape(tables, n))
    return [
        [rows_off(group, value, q, n) for q, value in zip(quantiles, answer, strict=True)]
        for group, answer in zip(groups, values, strict=True)
    ]


Cell = tuple[tuple[float, ...], int, float, bool]  # quantiles, rows, ε, per group
LAWS: dict[str, Law] = {}


def measured(task: tuple[str, int, tuple[Cell, ...], int]) -> list[tuple[str, Cell, float]]:
    """All cells of one law and size: the largest root mean square over the quantiles of a cell."""
    name, n, cells, tables = task
    law, rng = LAWS[name], np.random.default_rng([7, n, *name.encode()])
    off: dict[Cell, list[Any]] = {cell: [] for cell in cells}
    for cell in cells:
        if cell[3]:
            off[cell] = off_of_groups(law, rng, cell[0], n, tables)
    for _ in range(tables):
        rows = np.sort(law.draw(rng, n)) if n <= WHOLE else None
        for cell in cells:
            if not cell[3] and rows is not None:
                off[cell].append(off_of_whole(rows, cell[0], cell[2]))
            elif not cell[3]:
                off[cell].append(off_of_part(law, rng, cell[0][0], n, cell[2]))
    return [(name, cell, float(np.sqrt(np.mean(np.square(off[cell]), axis=0)).max())) for cell in cells]


def cells_of(line: Line) -> list[Cell]:
    return [(quantiles, n, line.epsilon, line.groups) for quantiles, n in line.cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=("one", "several"), help="measure one quantile only, or several only")
    options = parser.parse_args()
    several = {"one": (False,), "several": (True,), None: (False, True)}[options.only]
    lines = [line for line in LINES if (len(line.cells[0][0]) > 1) in several]
    began = time.perf_counter()
    LAWS.update({law.name: law for law in (*NINE, *PAPER, *real_laws())})
    wanted: dict[tuple[str, int], dict[Cell, None]] = {}
    for line in lines:
        for law in LAWS.values():
            for cell in cells_of(line) if law.ordinary or not line.ordinary else ():
                wanted.setdefault((law.name, cell[1]), {})[cell] = None
    tasks = [(name, n, tuple(cells), options.tables) for (name, n), cells in wanted.items()]
    tasks.sort(key=lambda task: -sum(len(cell[0]) for cell in task[2]))  # the longest first
    with multiprocessing.Pool(options.processes) as pool:
        outcomes = [each for part in pool.imap_unordered(measured, tasks) for each in part]
    errors: dict[Cell, dict[str, float]] = {}
    for name, cell, error in outcomes:
        errors.setdefault(cell, {})[name] = error
    print(f"{len(LAWS)} laws, {options.tables} tables a cell, ε = 1 where no other is named\n")
    summary(lines, errors)
    details(lines, errors)
    print(f"\n{time.perf_counter() - began:.0f} s")


def summary(lines: Sequence[Line], errors: dict[Cell, dict[str, float]]) -> None:
    """A row for every line: the largest median law of its cells, the worst law of all, and the worst real column."""
    print("| rows off, root mean square | asked | median law | worst law | worst real column |\n|---|---|---|---|---|")
    for line in lines:
        parts = {cell: _chosen(line, errors[cell]) for cell in cells_of(line)}
        middle = max(float(np.median(list(part.values()))) for part in parts.values())
        worst = []
        for real in (False, True):
            found = [
                (part[name], name, cell[1])
                for cell, part in parts.items()
                for name in part
                if (LAWS[name].population is not None) == real
            ]
            worst.append("{:.1f} ({}, n = {:,})".format(*max(found)) if found else "not measured")
        asked = f"≤ {line.asked_of_worst:g}"
        if line.asked_of_median is not None:
            asked = f"≤ {line.asked_of_median:g} in the median law, {asked} in the worst"
        print(f"| {line.name} | {asked} | {middle:.1f} | {' | '.join(worst)} |")


def details(lines: Sequence[Line], errors: dict[Cell, dict[str, float]]) -> None:
    """A row for every cell."""
    print("\n| cell | n | median law | worst | second | third |\n|---|---|---|---|---|---|")
    for line in lines:
        for cell in cells_of(line):
            part = _chosen(line, errors[cell])
            worst = [f"{part[name]:.1f} ({name})" for name in sorted(part, key=lambda name: -part[name])[:3]]
            which = "nine deciles" if cell[0] == DECILES else ", ".join(f"{q:g}" for q in cell[0])
            where = f"{'per group, ' if cell[3] else ''}{which}{'' if cell[2] == 1 else f', ε = {cell[2]:g}'}"
            print(f"| {where} | {cell[1]:,} | {np.median(list(part.values())):.1f} | {' | '.join(worst)} |")


def _chosen(line: Line, part: dict[str, float]) -> dict[str, float]:
    return {name: error for name, error in part.items() if LAWS[name].ordinary or not line.ordinary}


if __name__ == "__main__":
    main()
