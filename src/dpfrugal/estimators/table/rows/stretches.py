"""Stretches: all that there is to know about the rows between two codes, and rows by rank that are known by stretches.

A choice looks at the rows around one rank only, so whatever holds the rows need deliver no more than stretches around
the ranks of a plan: exactly, whoever found them, and however.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
Ranges = tuple[Codes, Codes]  # of each group the first and the last rank; none where the last is below the first


@dataclass(frozen=True)
class Stretch:
    """All that there is to know about the rows from code ``low`` to ``high``.

    ``below`` rows lie below ``low``; ``upto`` has for each of the distinct ``codes`` the number of rows up to it.
    """

    low: int = field(repr=False)
    high: int = field(repr=False)
    below: int = field(repr=False)
    codes: Codes = field(repr=False)
    upto: Codes = field(repr=False)

    @property
    def end(self) -> int:
        """How many rows lie up to ``high``."""
        return int(self.upto[-1]) if self.upto.size else self.below

    def counts(self, codes: Codes) -> tuple[Codes, Codes]:
        """How many rows are below, and up to, codes from ``low`` to ``high``."""
        upto = np.concatenate([[self.below], self.upto])
        return upto[np.searchsorted(self.codes, codes, "left")], upto[np.searchsorted(self.codes, codes, "right")]

    def ranked(self, first: int, last: int) -> Codes:
        """The distinct codes of the rows of these ranks, all of which it has."""
        return self.codes[np.searchsorted(self.upto, first, "right") : np.searchsorted(self.upto, last, "right") + 1]


@dataclass(frozen=True)
class Windows:
    """Of each group the rows around one rank: ``codes[starts[g] : starts[g + 1]]``, ascending, ties repeated.

    ``before`` of the group's rows come before them. Beyond its window a group has no row, or the choice that looks at
    the window makes no difference between them; so it is made as on a table of the window's rows alone, at a rank that
    is lower by ``before`` (docs/proofs.md, Theorem 16).
    """

    codes: Codes = field(repr=False)
    starts: Codes = field(repr=False)
    before: Codes = field(repr=False)


@dataclass(frozen=True)
class GroupStretches:
    """One stretch of each of some groups.

    Group g has ``sizes[g]`` rows, of which ``below[g]`` lie below the code ``lows[g]``; those up to ``highs[g]`` are
    ``codes[starts[g] : starts[g + 1]]``, ascending: each so many times as ``numbers`` says or, without it, once for
    each row.
    """

    sizes: Codes = field(repr=False)
    lows: Codes = field(repr=False)
    highs: Codes = field(repr=False)
    below: Codes = field(repr=False)
    codes: Codes = field(repr=False)
    starts: Codes = field(repr=False)
    numbers: Codes | None = field(repr=False, default=None)

    @property
    def ends(self) -> Codes:
        """Of each group, how many rows lie up to ``highs``."""
        if self.numbers is None:
            return self.below + np.diff(self.starts)
        return self.below + np.diff(np.concatenate([[0], np.cumsum(self.numbers)])[self.starts])

    def stretch(self, group: int) -> Stretch:
        """That of one group."""
        codes = self.codes[(some := slice(self.starts[group], self.starts[group + 1]))]
        below = int(self.below[group])
        if self.numbers is None:
            last = np.append(codes[1:] != codes[:-1], True)[: codes.size]
            codes, upto = codes[last], below + np.flatnonzero(last) + 1
        else:
            upto = below + np.cumsum(self.numbers[some])
        return Stretch(int(self.lows[group]), int(self.highs[group]), below, codes, upto)

    def windows(self, ranges: Ranges) -> Windows:
        """The rows of these ranks, all of which it has."""
        lengths = np.diff(self.starts)
        first = np.maximum(ranges[0] - self.below, 0)
        end = np.maximum(np.minimum(ranges[1] + 1, self.ends) - self.below, first)
        if self.numbers is None:
            if not first.any() and np.array_equal(end, lengths):
                return Windows(self.codes, self.starts, self.below)
            codes = self.codes[places_from(self.starts[:-1] + first, end - first)]
        else:
            total = np.concatenate([[0], np.cumsum(self.numbers)])
            upto = total[1:] - np.repeat(total[self.starts[:-1]], lengths)
            bounds = np.repeat(first, lengths), np.repeat(end, lengths)
            kept = np.clip(upto, *bounds) - np.clip(upto - self.numbers, *bounds)
            codes = np.repeat(self.codes, kept)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(end - first)])
        return Windows(codes, starts, self.below + first)


def places_from(first: Codes, lengths: Codes) -> Codes:
    """The integers from each first one on, so many of each."""
    ends = np.cumsum(lengths)
    return np.repeat(first - ends + lengths, lengths) + np.arange(int(ends[-1]) if ends.size else 0)


class KnownRows(OrderStatistics):
    """Rows by rank of which some stretches are known; a subclass finds those that hold what is asked beyond these.

    No row has a code outside of ``ends``.
    """

    def __init__(
        self, known: Sequence[Stretch], least: int | None, most: int | None, ends: tuple[int, int] = (LEAST, MOST)
    ) -> None:
        super().__init__(least, most)
        self._known, self._ends = list(known), ends

    @abstractmethod
    def _find_ranks(self, first: int, last: int) -> None:
        """Add a stretch to the known ones that has all of these ranks."""

    @abstractmethod
    def _find_codes(self, codes: Codes) -> None:
        """Add stretches to the known ones that have these codes."""

    def _having(self, first: int, last: int) -> Stretch | None:
        """What is known about these ranks, if all of it is."""
        return next((each for each in self._known if each.below <= first and last < each.end), None)

    def _ranked(self, first: int, last: int) -> Codes:
        if self._having(first, last) is None:
            self._find_ranks(first, last)
        stretch = self._having(first, last)
        assert stretch is not None  # noqa: S101 - it was found
        return stretch.ranked(first, last)

    def _counted(self, codes: Codes) -> tuple[Codes, Codes]:
        below, upto = np.zeros(codes.size, dtype=np.int64), np.zeros(codes.size, dtype=np.int64)
        below[codes > self._ends[1]] = upto[codes > self._ends[1]] = self.rows
        unknown = (codes >= self._ends[0]) & (codes <= self._ends[1])
        for attempt in (1, 2):
            for stretch in self._known:
                inside = unknown & (codes >= stretch.low) & (codes <= stretch.high)
                if inside.any():
                    below[inside], upto[inside] = stretch.counts(codes[inside])
                    unknown &= ~inside
            if attempt == 1 and unknown.any():
                self._find_codes(codes[unknown])
        return below, upto


class StretchRows(KnownRows):
    """Rows whose stretches were found before; ``everything`` finds all of them, where one asks beyond these."""

    def __init__(
        self,
        rows: int,
        stretches: Sequence[Stretch],
        everything: Callable[[], Stretch],
        least: int | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__(stretches, least, most)
        self._rows, self._everything = rows, everything

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._rows

    def _find_ranks(self, first: int, last: int) -> None:
        self._known.append(self._everything())

    def _find_codes(self, codes: Codes) -> None:
        self._known.append(self._everything())
