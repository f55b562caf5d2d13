"""Exact order statistics without sorting all rows, which may be held or read again for each scan.

A random sample tells about where the asked ranks lie. One scan counts the rows below each such bracket, and collects
those within it: 1.1% of the rows for a bracket around the median of a sample of 131,072. These, sorted, with the count
of the rows below them, answer exactly. Where a bracket has missed its ranks, it is widened and the scan repeated, so
chance decides how long an answer takes, never what it is. A code that has a large part of a bracket's rows in the
sample is not collected but counted.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np

from dpfrugal.errors import TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.brackets import Bracket, bracket_of, jittered, merged
from dpfrugal.estimators.table.rows.native_rows import Rows, codes_of_rows, ends_of, least_from, most_upto
from dpfrugal.estimators.table.rows.order_statistics import Reach
from dpfrugal.estimators.table.rows.scanning import Scan
from dpfrugal.estimators.table.rows.stretches import KnownRows, Stretch

SAMPLE: Final = 1 << 17
MOST_SAMPLE: Final = 1 << 22
# A bracket reaches this many standard deviations of the sample's rank beyond the asked ranks: all but 6 of 100,000 hit.
DEVIATIONS: Final = 4
WIDENING: Final = 4


class RowSource(Protocol):
    """Rows of one native type that can be read several times; ``sample`` is a random one, where it is at hand."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of all rows."""

    @property
    def present(self) -> int:
        """How many rows there are."""

    @property
    def sample(self) -> Rows | None:
        """A uniform random sample; None where all rows are held."""

    def arrays(self) -> Iterator[Rows]:
        """All rows, the same ones at each call, in any order."""


class SelectedRows(KnownRows):
    """Rows by rank, found by scans of a source of rows; equal to ``SortedRows`` of the same rows."""

    def __init__(self, source: RowSource, least: int | None = None, most: int | None = None) -> None:
        super().__init__([], least, most, ends_of(source.dtype))
        self._source = source
        self._sample: Codes | None = None
        self._sample_size = 0
        self._witness: tuple[int, int] | None = None  # a code, and how many rows are below it at every scan

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._source.present

    def prepare(self, ranges: Sequence[tuple[int, int]], reaches: Sequence[Reach] = ()) -> None:
        """Find the rows of all these ranks, first and last, in one scan, if the brackets hit."""
        wanted = [(max(first, 0), min(last, self.rows - 1)) for first, last in ranges]
        missing = [each for each in wanted if each[0] <= each[1] and self._having(*each) is None]
        if not missing:
            return
        sample = self._sampled(len(missing))
        deviations = DEVIATIONS
        while missing:
            self._learn(merged(bracket_of(sample, self.rows, each, deviations, self._ends) for each in missing))
            missing = [each for each in missing if self._having(*each) is None]
            deviations *= WIDENING

    def _find_ranks(self, first: int, last: int) -> None:
        self.prepare([(first, last)])

    def _find_codes(self, codes: Codes) -> None:
        self._learn([Bracket(code, code, (code,)) for code in codes.tolist()])

    def _sampled(self, ranges: int) -> Codes:
        """A random sample of rows in ascending order, the larger the more ranges are asked: they share the rows."""
        size = min(max(SAMPLE, 256 * ranges**2), MOST_SAMPLE)
        if self._sample is None or (self._source.sample is None and self._sample_size < size):
            sample = self._source.sample
            if sample is None:
                sample, self._sample_size = jittered(list(self._source.arrays()), self.rows, size), size
            self._sample = np.sort(codes_of_rows(sample))
        return self._sample

    def _learn(self, brackets: Sequence[Bracket]) -> None:
        """Scan all rows for what lies in these brackets, which are disjoint and ascending."""
        watched = [] if self._witness is None else [(self._witness[0], self._witness[0], False)]
        intervals = watched + [each for bracket in brackets for each in bracket.intervals()]
        lows, highs = (np.array([each[end] for each in intervals], dtype=np.int64) for end in (0, 1))
        dtype = self._source.dtype
        collected = np.array([each[2] for each in intervals], dtype=np.bool_)
        scan = Scan(least_from(lows, dtype), most_upto(highs, dtype), collected)
        scan.read(self._source.arrays())
        counted = ~collected
        counted[: len(watched)] = False
        codes, ends = _distinct(codes_of_rows(np.sort(scan.found)))
        codes, ends = _with_atoms(codes, ends, lows[counted], (scan.upto - scan.below)[counted])
        found, at = [], len(watched)
        for bracket in brackets:
            first, end = np.searchsorted(codes, bracket.low, "left"), np.searchsorted(codes, bracket.high, "right")
            below, before = int(scan.below[at]), int(ends[first - 1]) if first else 0
            stretch = Stretch(bracket.low, bracket.high, below, codes[first:end], below - before + ends[first:end])
            found.append(stretch)
            at += len(bracket.intervals())
            if stretch.end != scan.upto[at - 1]:
                raise changed()
        if scan.rows != self.rows or (self._witness is not None and scan.below[0] != self._witness[1]):
            raise changed()
        if self._witness is None:
            some = found[0].codes[found[0].codes.size // 2 :][:1]
            self._witness = next(zip(some.tolist(), found[0].counts(some)[0].tolist(), strict=True), None)
        self._known += found


def _distinct(codes: Codes) -> tuple[Codes, Codes]:
    """The distinct ones of codes in ascending order, and how many codes are up to each."""
    differ = codes[1:] != codes[:-1]
    if differ.all():
        return codes, np.arange(1, codes.size + 1)
    ends = np.append(np.flatnonzero(differ) + 1, codes.size)
    return codes[ends - 1], ends


def _with_atoms(codes: Codes, ends: Codes, atoms: Codes, numbers: Codes) -> tuple[Codes, Codes]:
    """The same with further codes, in ascending order, that have so many rows each."""
    if not atoms.size:
        return codes, ends
    places = np.searchsorted(codes, atoms)
    codes = np.insert(codes, places, atoms)
    numbers = np.insert(np.diff(ends, prepend=0), places, numbers)
    there = numbers > 0
    return codes[there], np.cumsum(numbers[there])


def changed() -> TableError:
    """The refusal of rows that are not the same ones at each reading."""
    return TableError("data: the table changed while it was read; try again when nothing writes to it.")
