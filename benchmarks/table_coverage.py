"""How often ``interval(0.95)`` of a table holds the population's quantile, and how wide it is: laws, and real columns.

For a law the population is the law. For a real column the population is the column, and a table is drawn from it with
replacement; a column with ties has them in every table. The width is compared with that of the exact interval: the two
order statistics that hold the quantile with probability 95% by the binomial law, which is not private.

Of 452 coverages of 95%, each measured on 200 tables, the least is 90% by chance. So whatever is under 94% is measured
again, on 1,000 other tables (``--again``), and the second figure counts.

    python -m benchmarks.table_coverage [--tables 400] [--resamples 200] [--again 1000] [--processes 2]
                                        [--only laws|columns] [--named COLUMN ...]
"""

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import dpfrugal as dpf
from benchmarks.laws import NINE, PAPER, Law, bootstrapped, real_laws
from benchmarks.real_columns import real_columns

CONFIDENCE = 0.95
CELLS = ((0.5, 200), (0.9, 1_000), (0.99, 10_000), (0.5, 2_000), (0.9, 10_000), (0.99, 100_000))
ASKED_WIDTH = {100: 2.0, 1000: 1.1}
COLUMN_QUANTILES, COLUMN_ROWS = (0.5, 0.9), 5_000
FLOORS = (0.92, 0.93, 0.94)
AGAIN = 0.94


@dataclass(frozen=True)
class Coverage:
    """Of one law or column at one quantile."""

    name: str
    q: float
    n: int
    below: float  # the share of tables whose interval ends below the quantile
    above: float
    width: float | None  # the median width over that of the exact interval, if that is not 0
    exact: float  # the coverage of the exact interval

    @property
    def covered(self) -> float:
        """The share of tables whose interval holds the quantile."""
        return 1 - self.below - self.above


POPULATIONS: dict[str, Law] = {}


def exact_ranks(q: float, n: int) -> tuple[int, int]:
    """The ranks, from 1 on, of the order statistics that hold the quantile with the probability that is asked for."""
    tail = (1 - CONFIDENCE) / 2
    first, last = stats.binom.ppf([tail, 1 - tail], n, q)
    return max(int(first), 1), min(int(last) + 1, n)


def covered(task: tuple[str, float, int, int]) -> Coverage:
    """How often the interval holds the quantile of one population, over so many tables."""
    name, q, n, tables = task
    law, rng = POPULATIONS[name], np.random.default_rng([11, n, tables, round(1000 * q), *name.encode()])
    lowest, highest = law.quantiles(q)
    first, last = exact_ranks(q, n)
    outcomes = []
    for _ in range(tables):
        rows = np.sort(law.draw(rng, n))
        low, high = dpf.private_quantiles(rows, q, dpf.PureDP(epsilon=1.0)).interval(CONFIDENCE)
        exact_low, exact_high = rows[first - 1], rows[last - 1]
        outcomes.append(
            (
                high < lowest,
                low > highest,
                _number(high) - _number(low),
                _number(exact_high) - _number(exact_low),
                exact_low <= highest and exact_high >= lowest,
            )
        )
    below, above, width, exact_width, exact = (np.array(each, dtype=np.float64) for each in zip(*outcomes, strict=True))
    middle = float(np.median(exact_width))
    ratio = float(np.median(width)) / middle if middle else None
    return Coverage(name, q, n, float(below.mean()), float(above.mean()), ratio, float(exact.mean()))


def _number(value: Any) -> float:
    """Times as seconds, so that widths can be divided."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(value.astype(f"{value.dtype.kind}8[s]").astype(np.int64))
    return float(value)


def of_laws(pool: Any, names: Sequence[str], tables: int) -> None:
    """Print a row for every cell: coverage and width over all laws."""
    found = pool.map(covered, [(name, q, n, tables) for q, n in reversed(CELLS) for name in names], chunksize=1)
    print(f"{len(names)} laws, {tables} tables each, ε = 1: coverage of interval({CONFIDENCE}), and its width as a")
    print("multiple of the exact interval's\n")
    head = "| q | n | n·min(q, 1−q) | continuous laws | median | laws with ties | width, median law | worst | asked |"
    print(f"{head}\n|{'---|' * head.count(' | ')}---|")
    for q, n in CELLS:
        cell = [each for each in found if (each.q, each.n) == (q, n)]
        parts = []
        for continuous in (True, False):
            part = [each for each in cell if POPULATIONS[each.name].continuous == continuous]
            parts.append(f"{min(e.covered for e in part):.1%} to {max(e.covered for e in part):.1%}")
        middle = np.median([each.covered for each in cell if POPULATIONS[each.name].continuous])
        widths = {each.name: each.width for each in cell if each.width is not None}
        worst = max(widths, key=lambda name: widths[name])
        beyond = round(n * min(q, 1 - q))
        print(
            f"| {q:g} | {n:,} | {beyond:,} | {parts[0]} | {middle:.1%} | {parts[1]} | "
            f"{np.median(list(widths.values())):.2f} | {widths[worst]:.3g} ({worst}) | ≤ {ASKED_WIDTH[beyond]:g} |",
            flush=True,
        )
    print("\nthe lowest coverages:")
    for each in sorted(found, key=lambda each: each.covered)[:10]:
        _show(each)


def of_columns(pool: Any, sizes: dict[str, int], resamples: int, more: int) -> None:
    """Print how many columns miss how often."""
    tasks = [(name, q, min(n, COLUMN_ROWS), resamples) for name, n in sizes.items() for q in COLUMN_QUANTILES]
    screened = pool.map(covered, tasks, chunksize=1)
    suspects = [(each.name, each.q, each.n, more) for each in screened if each.covered < AGAIN]
    again = {(each.name, each.q): each for each in pool.map(covered, suspects, chunksize=1)}
    found = [again.get((each.name, each.q), each) for each in screened]
    print(f"\n{len(sizes)} real columns, q = 0.5 and 0.9, {resamples} tables of up to {COLUMN_ROWS:,} rows each, drawn")
    print(f"with replacement from the column, ε = 1; {len(again)} of {len(found)} measured on {more:,} again\n")
    print("| coverage of interval(0.95) | cells of column and quantile | columns |\n|---|---|---|")
    for floor in FLOORS:
        under = [each for each in found if each.covered < floor]
        print(f"| under {floor:.0%} | {len(under)} of {len(found)} | {len({each.name for each in under})} |")
    every = [each.covered for each in found]
    print(f"| median | {np.median(every):.1%} | |\n| least | {min(every):.1%} | |")
    widths = [each.width for each in found if each.width is not None]
    print(
        f"\nwidth over the exact interval's: median {np.median(widths):.2f}, nine of ten {np.quantile(widths, 0.9):.2f}"
    )
    print("the lowest coverages:")
    for each in sorted(found, key=lambda each: each.covered)[:15]:
        _show(each)


def _show(each: Coverage) -> None:
    print(
        f"- {each.name}, q = {each.q:g}, n = {each.n:,}: {each.covered:.1%} (ends below {each.below:.1%}, begins above "
        f"{each.above:.1%}; the exact interval holds it in {each.exact:.1%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--again", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=("laws", "columns"))
    parser.add_argument("--named", nargs="+", help="of the real columns only these")
    options = parser.parse_args()
    wanted = (lambda name: True) if options.named is None else set(options.named).__contains__
    began = time.perf_counter()
    laws = [] if options.only == "columns" else [*NINE, *PAPER, *real_laws()]
    columns = [] if options.only == "laws" else list(real_columns(wanted))
    sizes = {column.name: column.known.size for column in columns}
    POPULATIONS.update({column.name: bootstrapped(column.name, column.known) for column in columns})
    POPULATIONS.update({law.name: law for law in laws})
    with multiprocessing.Pool(options.processes) as pool:  # forked: populations are not sent
        if laws:
            of_laws(pool, [law.name for law in laws], options.tables)
        if columns:
            of_columns(pool, sizes, options.resamples, options.again)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
