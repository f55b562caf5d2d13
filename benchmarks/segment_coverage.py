"""How often ``interval(0.95)`` of ``PrivateQuantile`` holds the quantile of a real column, and what ``stable`` says.

The rows of a column are shuffled, as a stream in random order is, and given to the planner of segments as counts; ε is
1. A column and a quantile are a cell. With ``--as-they-lie`` rows come in the order of their file, which breaks the
condition under which intervals hold: then the question is whether ``stable`` says so.

    python -m benchmarks.segment_coverage [--shuffles 40] [--rows 5000] [--as-they-lie] [--processes 2]
"""

import argparse
import multiprocessing
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_columns import real_columns
from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.privacy.guarantees import PureDP

QUANTILES = (0.5, 0.9, 0.99)
MOST_ROWS = 200_000  # a longer column is a sample of itself
FLOORS = (0.85, 0.9, 0.93)


@dataclass(frozen=True)
class Cell:
    """One column and quantile: how often the interval held, how often segments agreed, and both ways of being wrong."""

    name: str
    q: float
    held: float
    stable: float
    missed_stable: float  # the interval missed and ``stable`` said nothing
    wide: float  # the share of unbounded intervals
    rank_error: float  # root mean square, over √(q(1-q)/n)
    width: float  # the median width in ranks, over that of an interval which knows the quantile's sampling error only


def ends(ordered: NDArray[np.float64], q: float) -> tuple[float, float]:
    """The least and the largest number that is a quantile of all rows."""
    place = q * ordered.size
    return float(ordered[max(0, int(np.ceil(place)) - 1)]), float(ordered[min(ordered.size - 1, int(place))])


def run(rows: NDArray[np.float64], q: float) -> tuple[tuple[float, float], float, bool]:
    """The interval, the estimate, and whether segments agreed."""
    planner, first = SegmentPlanner([q], PureDP(epsilon=1.0)), 0
    while first < rows.size:
        part = rows[first : first + planner.segment_length]
        below = np.searchsorted(planner.edges, part, "right")
        planner.absorb(np.bincount(below, minlength=planner.edges.size + 1))
        first += part.size
    return planner.intervals(0.95)[0], planner.estimates[0], planner.stable


def cells(column: tuple[str, NDArray[np.float64]], shuffles: int) -> list[Cell]:
    """All cells of a column; of its own order where there are no shuffles."""
    name, rows = column
    rng = np.random.default_rng([17, *name.encode()])
    if rows.size > MOST_ROWS:
        rows = rows[np.sort(rng.choice(rows.size, MOST_ROWS, replace=False))]
    ordered, found = np.sort(rows), []
    for q in QUANTILES:
        least, most = ends(ordered, q)
        outcomes = []
        for _ in range(max(shuffles, 1)):
            (low, high), value, stable = run(rng.permutation(rows) if shuffles else rows, q)
            place = q * rows.size
            below, upto = (np.searchsorted(ordered, value, side) for side in ("left", "right"))
            off = max(below - place, place - upto, 0)
            held, width = low <= most and high >= least, np.diff(np.searchsorted(ordered, [low, high]))[0]
            outcomes.append((held, stable, stable and not held, not np.isfinite(high - low), off**2, width))
        means, deviation = np.mean(outcomes, axis=0), np.sqrt(q * (1 - q) * rows.size)
        width = float(np.median([outcome[5] for outcome in outcomes]) / (2 * 1.96 * deviation))
        found.append(Cell(name, q, *means[:4].tolist(), float(np.sqrt(means[4])) / deviation, width))
    return found


def main() -> None:
    """Print the worst cells, and how many are under each floor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shuffles", type=int, default=40)
    parser.add_argument("--rows", type=int, default=5_000, help="the fewest rows of a column")
    parser.add_argument("--as-they-lie", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--shown", type=int, default=40, help="so many of the worst cells")
    parser.add_argument("--only", default="", help="columns whose names contain one of these, separated by commas")
    options = parser.parse_args()
    columns = [
        (column.name, column.known.astype(np.float64))
        for column in real_columns(lambda name: any(part in name for part in options.only.split(",")))
        if column.known.size >= options.rows
    ]
    with multiprocessing.Pool(options.processes) as pool:
        shuffles = 0 if options.as_they_lie else options.shuffles
        all_cells = [cell for found in pool.imap(partial(cells, shuffles=shuffles), columns) for cell in found]
    print(f"{len(columns)} columns of at least {options.rows:,} rows, {len(all_cells)} cells, ", end="")
    print("in the order of their files\n" if options.as_they_lie else f"{options.shuffles} shuffles each, ε = 1\n")
    print("| column | q | held | stable | missed and stable | unbounded | rank error | width |\n|---|" + "---|" * 7)
    for cell in sorted(all_cells, key=lambda each: (each.held, each.stable))[: options.shown]:
        print(
            f"| {cell.name} | {cell.q:g} | {cell.held:.0%} | {cell.stable:.0%} | {cell.missed_stable:.0%} | "
            f"{cell.wide:.0%} | {cell.rank_error:.2f} | {cell.width:.2f} |"
        )
    held, stable = (np.array([getattr(cell, what) for cell in all_cells]) for what in ("held", "stable"))
    print("\ncells under " + ", ".join(f"{floor:.0%}: {np.sum(held < floor)}" for floor in FLOORS), end="; ")
    width = np.median([cell.width for cell in all_cells])
    print(f"mean {held.mean():.1%}; median width {width:.2f}; stable {stable.mean():.1%}, ", end="")
    print(f"missed and stable {np.mean([cell.missed_stable for cell in all_cells]):.1%}")


if __name__ == "__main__":
    main()
