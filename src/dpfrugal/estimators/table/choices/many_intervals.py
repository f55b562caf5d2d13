"""One interval for each of many groups of rows, by compiled code: 100,000 groups of 100 rows in a few seconds.

The readable twin is ``radius.choose_interval``. A group's interval is what the twin gives for the same bits; where
floats are not certain, the twin chooses it (docs/proofs.md, Theorem 18).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.choices.intervals import Margin
from dpfrugal.estimators.table.choices.many_choices import AT_ONCE
from dpfrugal.estimators.table.choices.mechanism import CAP
from dpfrugal.estimators.table.choices.radius import ITSELF, choose_interval, parts_of, places_of, radius_tables
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.estimators.table.rows.stretches import Windows
from dpfrugal.kernels.compiler import loading, read_only
from dpfrugal.kernels.threads import in_chunks
from dpfrugal.privacy import choice


@dataclass(frozen=True)
class Ranks:
    """A rank of each group, raw: rounded down, and the rest."""

    floors: Codes
    rests: NDArray[np.float64]

    def __getitem__(self, groups: slice | NDArray[np.int64]) -> "Ranks":
        return Ranks(self.floors[groups], self.rests[groups])

    def lowered(self, by: Codes) -> "Ranks":
        """The same, so many lower."""
        return Ranks(self.floors - by, self.rests)


def ranks_of(ranks: Sequence[Fraction]) -> Ranks:
    """Ranks that are given exactly."""
    parts = [parts_of(rank) for rank in ranks]
    return Ranks(np.array([part[0] for part in parts], dtype=np.int64), np.array([part[1] for part in parts]))


def wanted(sizes: Codes, quantile: Fraction, margins: Margin) -> tuple[Ranks, Ranks]:
    """The ranks at which the wanted intervals of groups of these sizes begin and end; computed once for each size."""
    different, which = np.unique(sizes, return_inverse=True)
    pairs = [(quantile * number, margins.rows(number)) for number in different.tolist()]
    first, last = [rank - margin for rank, margin in pairs], [rank + margin for rank, margin in pairs]
    return ranks_of(first)[which], ranks_of(last)[which]


def choose_intervals(
    windows: Windows,
    sizes: Codes,
    rows_of: Callable[[int], OrderStatistics],
    base: Base,
    values: Codes,
    quantile: Fraction,
    margins: Margin,
    slope: Fraction,
    progress: Callable[[int], None] | None = None,
) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """The codes of both ends of an interval around each group's released value, and whether it is bounded.

    ``windows`` have the rows around each group's rank, of ``sizes[g]`` rows; ``rows_of`` has a group's rows by rank.
    The value of a group is a code of the base. ``progress`` is called with the number of groups
    that are done, now and then.
    """
    with loading("choose_radii"):
        from dpfrugal.kernels.choices.choose_radii import choose as choose_groups

    codes, starts, values = (
        read_only(np.ascontiguousarray(each, np.int64)) for each in (windows.codes, windows.starts, values)
    )
    tables, groups, cap = radius_tables(), values.size, float(math.ceil(CAP / slope))
    low, high = np.empty(groups, dtype=np.int64), np.empty(groups, dtype=np.int64)
    bounded = np.empty(groups, dtype=np.bool_)
    places = places_of(base, values)
    # Ranks among the rows of the windows.
    begin, end = (each.lowered(windows.before) for each in wanted(sizes, quantile, margins))

    def chooser() -> Callable[[int, int], None]:
        work_low, work_high, kept = (np.empty(tables.offsets.size + 2, dtype=np.int64) for _ in range(3))
        weights = np.empty(tables.offsets.size + 2)

        def choose(first: int, last: int) -> None:
            some, words, certain = slice(first, last), choice.words(last - first, 1), np.empty(last - first, np.bool_)
            with np.errstate(all="ignore"):  # for the kernel as it is written, where the compiler is off
                choose_groups(
                    codes, starts[first : last + 1], values[some], places[some], base.of_doubles, base.low, base.high,
                    begin.floors[some], begin.rests[some], end.floors[some], end.rests[some], cap, float(slope), words,
                    tables.offsets, tables.masses, tables.radii, tables.factors, tables.whole,
                    float(ITSELF), work_low, work_high, kept, weights, low[some], high[some], bounded[some], certain,
                )  # fmt: skip
            for group in (first + np.flatnonzero(~certain)).tolist():
                rows = rows_of(group)
                tape = choice.Tape(words[group - first].tolist())
                found = choose_interval(rows, base, int(values[group]), quantile, margins.rows(rows.rows), slope, tape)
                low[group], high[group], bounded[group] = found.low, found.high, found.bounded

        return choose

    in_chunks(chooser, groups, AT_ONCE, progress)
    return low, high, bounded
