"""Exact windows of order statistics from scans that an engine runs, where sorting a whole table would be too much.

A random sample of a group's rows tells between which codes the wanted ranks probably lie. One scan counts the rows
below each such bracket, and collects those within it, which are a few per cent of the rows. These, with the count of
the rows below them, answer exactly. Where a bracket has missed its ranks it is widened and the scan repeated, so chance
decides how long an answer takes, never what it is. Where all brackets together would still hold too many rows, another
sample is taken within them first. Groups of few rows are collected whole.

Worked number: of 20 million rows a sample of 117,000 brackets the median to within 1.2% of the rows.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.engine_tables import Assigned, EngineTable, Found, Tallies, changed
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows, coded
from dpfrugal.estimators.table.rows.order_statistics import Reach
from dpfrugal.estimators.table.rows.stretches import LEAST, MOST, GroupStretches, Ranges, places_from
from dpfrugal.kernels.threads import available

WHOLE: Final = 1 << 12  # a group of so few rows is collected as it is
FEW: Final = 1 << 17  # and so are groups that have no more rows than this together
SAMPLED: Final = 1 << 23  # rows of all groups' samples together
LEAST_SAMPLE: Final = 256
COLLECTED: Final = 1 << 22  # so many rows may be collected, or
TIMES_WANTED: Final = 4  # times those that are wanted
DEVIATIONS: Final = 4  # standard deviations of a sample's rank
WIDENING: Final = 4
TIES: Final = 2  # as many rows as codes in a sample: rows are counted by value


@dataclass(frozen=True)
class Brackets:
    """For some groups the ``share`` of their rows that a scan returns, of those between ``lows`` and ``highs``.

    One array of codes for each quantile; ``LEAST`` and ``MOST`` mean that there is no bound. Without quantiles
    it is all rows.
    """

    groups: NDArray[np.int64]
    share: NDArray[np.float64] = field(repr=False)
    lows: list[Codes] = field(repr=False)
    highs: list[Codes] = field(repr=False)


@dataclass(frozen=True)
class Scanned:
    """What a scan has seen, raw: of each group the rows that count, those below each bracket and up to its end.

    ``codes`` are those of the rows in brackets, sorted within each group, as ``GroupStretches`` has them.
    """

    tallies: Tallies = field(repr=False)
    below: list[Codes] = field(repr=False)
    upto: list[Codes] = field(repr=False)
    codes: Codes = field(repr=False)
    starts: Codes = field(repr=False)
    numbers: Codes | None = field(repr=False)


class BracketedTable(EngineTable):
    """A table that is scanned for what lies between brackets."""

    @abstractmethod
    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        """Two Arrow tables: the counts of each group, and the rows in its brackets.

        ``brackets`` is an Arrow table: the key columns, ``number`` (of the group), ``share``, and for each quantile k
        ``low_k`` and ``high_k`` in the type of the values, null where there is no bound. The first answer has
        ``number``, ``rows``, ``checksum``, ``below_k`` and ``upto_k``; None unless ``counted``. The second has
        ``number`` and ``value``, in a random selection by ``share``; with ``by_value`` all of them, each value once,
        and ``times``. Without quantiles all rows are within.
        """

    def whole(self, keys: Any, groups: int) -> tuple[Tallies, Codes, Codes]:
        """All rows of some groups: their codes, sorted within each group, and where each group begins.

        ``keys`` is an Arrow table: the key columns and ``number``, that of a group; some may have no key.
        """
        import pyarrow as pa

        brackets = keys.append_column("share", pa.array(np.ones(keys.num_rows)))
        counts, rows = self.scan(brackets, 0, counted=True, by_value=False)
        return Tallies.placed(groups, counts, "number"), *by_group(rows, groups, self.kind)

    def find(self, assigned: Assigned, tallies: Tallies, reaches: Sequence[Reach]) -> list[Found]:
        """For each group and quantile a stretch that has the ranks in reach."""
        return _Search(self, assigned, tallies, reaches).found()

    def scanned(self, assigned: Assigned, brackets: Brackets, kind: Kind, *, counted: bool, by_value: bool) -> Scanned:
        """A scan, as codes by group."""
        quantiles = len(brackets.lows)
        asked = _table_of(assigned, brackets, kind, self.value_type)
        counts, rows = self.scan(asked, quantiles, counted=counted, by_value=by_value)
        groups = brackets.groups.size
        numbers: Codes | None = None
        if by_value:
            codes, starts, numbers = _by_value(rows, groups, kind)
        else:
            codes, starts = by_group(rows, groups, kind)
        if counts is None:
            nothing = np.zeros(groups, dtype=np.int64)
            return Scanned(
                Tallies(nothing, nothing), [nothing] * quantiles, [nothing] * quantiles, codes, starts, numbers
            )
        place = counts.column("number").to_numpy()

        def placed(name: str) -> Codes:
            found = np.zeros(groups, dtype=np.int64)
            found[place] = counts.column(name).to_numpy()
            return found

        below, upto = ([placed(f"{name}_{k}") for k in range(quantiles)] for name in ("below", "upto"))
        return Scanned(Tallies.placed(groups, counts, "number"), below, upto, codes, starts, numbers)


def by_group(rows: Any, groups: int, kind: Kind) -> tuple[Codes, Codes]:
    """Codes sorted within each group, and where each group begins."""
    held = KeyedRows("raise", available())
    for batch in rows.to_batches():
        held.add(batch.column("value"), batch.column("number").to_numpy(), None, None)
    return held.by_group(np.arange(groups, dtype=np.int32), groups, kind)


def _by_value(rows: Any, groups: int, kind: Kind) -> tuple[Codes, Codes, Codes]:
    """Distinct codes sorted within each group, where each group begins, and how many rows each code has."""
    parts = [(batch.column("number").to_numpy(), coded(batch.column("value"))[1]) for batch in rows.to_batches()]
    number = np.concatenate([np.zeros(0, dtype=np.int32), *(part[0] for part in parts)])
    codes = np.concatenate([np.zeros(0, dtype=np.int64), *(part[1] for part in parts)])
    order = np.lexsort((codes, number))
    times = rows.column("times").to_numpy().astype(np.int64, copy=False)[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=groups))])
    return codes[order], starts, times


def _table_of(assigned: Assigned, brackets: Brackets, kind: Kind, value_type: Any) -> Any:
    """The Arrow table that a scan is given."""
    import pyarrow as pa

    table = _numbered(assigned, brackets.groups)
    numbers = table.column("number").to_numpy()
    table = table.append_column("share", pa.array(brackets.share[numbers]))
    for k, ends in enumerate(zip(brackets.lows, brackets.highs, strict=True)):
        for name, codes, none in zip(("low", "high"), ends, (LEAST, MOST), strict=True):
            array = kind.array(codes[numbers], codes[numbers] == none)
            if array.type != value_type and pa.types.is_timestamp(value_type):
                array = array.cast(value_type)
            table = table.append_column(f"{name}_{k}", array)
    return table


def _numbered(assigned: Assigned, groups: NDArray[np.int64]) -> Any:
    """The keys of some groups, which are numbered anew."""
    import pyarrow as pa

    number_of = np.full(assigned.groups, -1, dtype=np.int32)
    number_of[groups] = np.arange(groups.size, dtype=np.int32)
    numbers = number_of[assigned.keys.column("group").to_numpy()]
    there = numbers >= 0
    table = assigned.keys.filter(pa.array(there)).drop_columns(["group"])
    return table.append_column("number", pa.array(numbers[there]))


class _Search:
    """From no bounds to brackets that hold the wanted ranks, for all groups at once."""

    def __init__(self, table: BracketedTable, assigned: Assigned, tallies: Tallies, reaches: Sequence[Reach]) -> None:
        self._table, self._assigned, self._tallies, self._kind = table, assigned, tallies, table.kind
        self._sizes = tallies.sizes
        self._ranges = [reach.ranks(self._sizes) for reach in reaches]

    def found(self) -> list[Found]:
        """All groups; those that were found together in one answer."""
        wanted = np.sum([np.maximum(last - first + 1, 0) for first, last in self._ranges], axis=0)
        whole = (self._sizes <= np.maximum(WHOLE, 2 * wanted)) | (int(self._sizes.sum()) <= FEW)
        small, large = np.flatnonzero(whole), np.flatnonzero(~whole)
        found = [self._whole(small)] if small.size else []
        return found + self._bracketed(large, wanted) if large.size else found

    def _scan(self, brackets: Brackets, *, counted: bool = False, by_value: bool = False) -> Scanned:
        return self._table.scanned(self._assigned, brackets, self._kind, counted=counted, by_value=by_value)

    def _whole(self, groups: NDArray[np.int64]) -> Found:
        """All rows of groups: one stretch without bounds serves all quantiles."""
        least, most = (np.full(groups.size, end, dtype=np.int64) for end in (LEAST, MOST))
        seen, codes, starts = self._table.whole(_numbered(self._assigned, groups), groups.size)
        self._tallies[groups].check(seen)
        if not np.array_equal(np.diff(starts), seen.sizes):
            raise changed()
        stretch = GroupStretches(seen.sizes, least, most, np.zeros_like(seen.sizes), codes, starts)
        return Found(groups, (stretch,) * len(self._ranges))

    def _bracketed(self, groups: NDArray[np.int64], wanted: Codes) -> list[Found]:
        """Brackets of groups become narrower until they hold few enough rows; where one has missed, it stays."""
        found: list[Found] = []
        outer, deviations = _Outer.unbounded(groups, self._sizes[groups], len(self._ranges)), DEVIATIONS
        while outer.groups.size:
            inside = outer.inside
            sample = self._scan(outer.brackets(_shares(inside)))
            narrow, expected, ties = self._narrowed(outer, sample, deviations)
            budget = max(COLLECTED, TIMES_WANTED * int(wanted[outer.groups].sum()))
            last = ties or expected <= budget or expected > 0.5 * inside.sum()
            brackets = narrow.brackets(np.full(narrow.groups.size, float(last)))
            seen = self._scan(brackets, counted=True, by_value=ties and last)
            self._tallies[narrow.groups].check(seen.tallies)
            narrow = _Outer(narrow.groups, narrow.lows, narrow.highs, seen.below, seen.upto)
            hit = self._hit(narrow)
            if last:
                found.append(self._stretches(narrow, seen, hit))
                outer = outer.of(~hit)
            else:
                outer = outer.replaced(narrow, hit)
            deviations *= 1 if hit.all() else WIDENING
        return [each for each in found if each.groups.size]

    def _ranges_of(self, groups: NDArray[np.int64]) -> list[Ranges]:
        return [(first[groups], last[groups]) for first, last in self._ranges]

    def _hit(self, brackets: "_Outer") -> NDArray[np.bool_]:
        """Which groups' brackets hold all wanted ranks."""
        hit = np.ones(brackets.groups.size, dtype=np.bool_)
        wanted = zip(self._ranges_of(brackets.groups), brackets.below, brackets.upto, strict=True)
        for (first, last), below, upto in wanted:
            hit &= (below <= first) & (last < upto)
        return hit

    def _narrowed(self, outer: "_Outer", sample: Scanned, deviations: int) -> tuple["_Outer", float, bool]:
        """Brackets that probably hold the wanted ranks, about how many rows they hold, and whether many are equal."""
        lows, highs = [], []
        expected, entries, values = 0.0, 0, 0
        for k, (first, last) in enumerate(self._ranges_of(outer.groups)):
            start, end = (
                sample.starts[:-1] + _below(sample, outer.lows[k]),
                sample.starts[:-1] + _upto(sample, outer.highs[k]),
            )
            size, inside = (end - start).astype(np.float64), np.maximum(outer.upto[k] - outer.below[k], 1)
            places = [size * (rank - outer.below[k]) / inside for rank in (first, last + 1)]
            margins = [
                deviations * (1 + np.sqrt(np.maximum(place * (size - place), 0) / np.maximum(size, 1)))
                for place in places
            ]
            at = np.floor(places[0] - margins[0]).astype(np.int64), np.ceil(places[1] + margins[1]).astype(np.int64)
            codes = np.append(sample.codes, np.int64(0))  # a place to point to where there is none
            low = np.where(at[0] >= 0, codes[np.minimum(start + np.maximum(at[0], 0), codes.size - 1)], outer.lows[k])
            high = np.where(
                at[1] < size, codes[np.minimum(start + np.maximum(at[1], 0), codes.size - 1)], outer.highs[k]
            )
            kept = np.minimum(at[1], size) - np.maximum(at[0], 0) + 1
            expected += float(np.sum(np.where(size > 0, np.minimum(kept / np.maximum(size, 1), 1), 1) * inside))
            lows.append(low)
            highs.append(high)
            some = np.repeat(low, np.diff(sample.starts)), np.repeat(high, np.diff(sample.starts))
            within = sample.codes[(sample.codes >= some[0]) & (sample.codes <= some[1])]
            entries, values = entries + within.size, values + int(np.count_nonzero(np.diff(within))) + 1
        return _Outer(outer.groups, lows, highs, outer.below, outer.upto), expected, entries >= TIES * values

    def _stretches(self, narrow: "_Outer", seen: Scanned, hit: NDArray[np.bool_]) -> Found:
        """The stretches of those groups whose brackets hold all wanted ranks."""
        found = []
        for k in range(len(self._ranges)):
            first, end = _below(seen, narrow.lows[k]), _upto(seen, narrow.highs[k])
            lengths = np.where(hit, end - first, 0)
            places = places_from(seen.starts[:-1] + first, lengths)
            numbers = None if seen.numbers is None else seen.numbers[places]
            starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
            stretch = GroupStretches(
                self._sizes[narrow.groups[hit]], narrow.lows[k][hit], narrow.highs[k][hit], narrow.below[k][hit],
                seen.codes[places], starts[np.append(np.flatnonzero(hit), hit.size)], numbers,
            )  # fmt: skip
            if not np.array_equal(stretch.ends, narrow.upto[k][hit]):
                raise changed()
            found.append(stretch)
        return Found(narrow.groups[hit], tuple(found))


@dataclass(frozen=True)
class _Outer:
    """Brackets of some groups that hold their wanted ranks, or may; with how many rows lie below each and up to it."""

    groups: NDArray[np.int64]
    lows: list[Codes] = field(repr=False)
    highs: list[Codes] = field(repr=False)
    below: list[Codes] = field(repr=False)
    upto: list[Codes] = field(repr=False)

    @classmethod
    def unbounded(cls, groups: NDArray[np.int64], sizes: Codes, quantiles: int) -> "_Outer":
        """All rows."""
        least, most = (np.full(groups.size, end, dtype=np.int64) for end in (LEAST, MOST))
        nothing = np.zeros(groups.size, dtype=np.int64)
        return cls(groups, *([each] * quantiles for each in (least, most, nothing, sizes)))

    @property
    def inside(self) -> NDArray[np.float64]:
        """About how many rows each group's brackets hold together."""
        ends = zip(self.below, self.upto, self.lows, self.highs, strict=True)
        found = [upto - below for below, upto, _, _ in ends]
        unbounded = all(
            (low == LEAST).all() and (high == MOST).all() for low, high in zip(self.lows, self.highs, strict=True)
        )
        return np.asarray(found[0] if unbounded else np.sum(found, axis=0), dtype=np.float64)

    def brackets(self, share: NDArray[np.float64]) -> Brackets:
        """As a scan takes them."""
        return Brackets(self.groups, share, self.lows, self.highs)

    def of(self, some: NDArray[np.bool_]) -> "_Outer":
        """Those of some groups."""
        return _Outer(self.groups[some], *([each[some] for each in several] for several in self.arrays))

    @property
    def arrays(self) -> tuple[list[Codes], ...]:
        """The lows, the highs, and the numbers below and up to these."""
        return self.lows, self.highs, self.below, self.upto

    def replaced(self, other: "_Outer", where: NDArray[np.bool_]) -> "_Outer":
        """These, but of some groups the others."""
        both = zip(self.arrays, other.arrays, strict=True)
        merged = ([np.where(where, new, old) for old, new in zip(*pair, strict=True)] for pair in both)
        return _Outer(self.groups, *merged)


def _shares(inside: NDArray[np.float64]) -> NDArray[np.float64]:
    """What part of each group's rows a sample has: so many that it and the rows of its bracket are fewest together."""
    wanted = np.clip((2 * inside) ** (2 / 3), LEAST_SAMPLE, max(LEAST_SAMPLE, SAMPLED / max(inside.size, 1)))
    return np.minimum(wanted / np.maximum(inside, 1), 1.0)


def _below(seen: Scanned, codes: Codes) -> Codes:
    """How many entries of each group are below a code of its own."""
    return _counted(seen, seen.codes < np.repeat(codes, np.diff(seen.starts)))


def _upto(seen: Scanned, codes: Codes) -> Codes:
    return _counted(seen, seen.codes <= np.repeat(codes, np.diff(seen.starts)))


def _counted(seen: Scanned, which: NDArray[np.bool_]) -> Codes:
    total = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(which)])
    return np.diff(total[seen.starts])
