"""Rows as they come, each with the code of its key, before it is known which keys are public; then by group.

Everything here is raw. What comes out depends on the multiset of rows only, and on their priorities, where a person's
rows are limited. Memory: 12 bytes per row while rows are read, 8 more while they are sorted, then 8; with persons 24
while they are read, and about 66 while a person's rows are chosen.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.estimators.table.base.codes import Codes, codes_of
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind
from dpfrugal.estimators.table.rows.column_parts import part_of
from dpfrugal.estimators.table.rows.native_rows import codes_of_rows
from dpfrugal.kernels.compiler import loading
from dpfrugal.kernels.threads import WORTH_A_THREAD, at_once, available, in_shares
from dpfrugal.keys.index import UNDECLARED
from dpfrugal.keys.person_limits import chosen_rows
from dpfrugal.parameters import NanPolicy

Groups = NDArray[np.int32]
Mask = NDArray[np.bool_]
# Groups of fewer rows than this are sorted so quickly that threads would only wait for the interpreter.
LARGE_GROUP: Final = 1 << 12


@dataclass
class _Part:
    """Some rows: their kind and codes, and the codes of their keys; with persons, whose they are, and priorities."""

    kind: Kind | None
    codes: Codes
    groups: Groups
    who: Groups | None
    priorities: NDArray[np.uint64] | None


class KeyedRows:
    """The rows of a table with a value, and how many rows there are in all.

    With ``wanted`` rows are held only if that has no -1 for the code of their key.
    """

    rows: int
    held: bool

    def __init__(
        self, nan_policy: NanPolicy, threads: int, *, most_rows: int | None = None, wanted: Groups | None = None
    ) -> None:
        self._nan_policy, self._threads = nan_policy, threads
        self._most_rows, self._wanted = most_rows, wanted
        self._parts: list[_Part] = []
        self._kinds: dict[str, Kind] = {}
        self._counted_before = np.zeros(0, dtype=np.int64)  # rows that were counted, and are not held
        self.rows = 0
        self.held = True  # whether all rows are; with ``most_rows`` more rows than that are only counted

    def add(self, values: Any, groups: Groups, who: Groups | None, priorities: NDArray[np.uint64] | None) -> None:
        """Take in an Arrow array of values with the groups of its rows; a missing value is refused or left out."""

        def read(rows: slice) -> None:
            kind, codes, present = coded(values[rows])
            if present is None:
                beside = [None if array is None else array[rows] for array in (groups, who, priorities)]
            elif self._nan_policy == "omit":
                beside = [None if array is None else array[rows][present] for array in (groups, who, priorities)]
            else:
                raise ItemError('The data has NaN or null rows; clean it, or use nan_policy="omit".')
            if self._wanted is not None and beside[0] is not None:
                kept = (beside[0] >= 0) & (self._wanted[beside[0]] >= 0)
                codes, beside[0] = codes[kept], beside[0][kept]
            self._parts.append(_Part(kind, codes, *beside))  # type: ignore[arg-type]

        in_shares(read, len(values), self._threads)
        self.rows += len(values)
        self._kinds |= {part.kind.name: part.kind for part in self._parts[-self._threads :] if part.kind is not None}
        if self._most_rows is not None and self.rows > self._most_rows:
            self.held = False
            size = max([self._counted_before.size, *(int(part.groups.max(initial=-1)) + 1 for part in self._parts)])
            self._counted_before, self._parts = self.counts(size), []

    def add_coded(self, kind: Kind, codes: Codes, groups: Groups, who: Groups | None, priorities: Any) -> None:
        """Take in rows that are codes already; they are this object's from now on."""
        self._parts.append(_Part(kind, codes, groups, who, priorities))
        self._kinds[kind.name] = kind
        self.rows += codes.size

    def keep_chosen(self, max_items_per_person: int, max_keys_per_person: int | None) -> None:
        """Set aside the rows beyond the limits per person, by their priorities."""
        groups, who, priorities = (self._given_up(name) for name in ("groups", "who", "priorities"))
        limits = {"max_items_per_person": max_items_per_person, "max_keys_per_person": max_keys_per_person}
        groups[~chosen_rows(priorities, who, groups, **limits)] = UNDECLARED  # type: ignore[arg-type]
        first = 0
        for part in self._parts:
            part.groups = groups[first : first + part.codes.size]
            first += part.codes.size

    def _given_up(self, name: str) -> NDArray[Any]:
        """One array of all parts, which lose theirs: there is memory for one of them."""
        whole: NDArray[Any] = np.concatenate([getattr(part, name) for part in self._parts])
        for part in self._parts:
            setattr(part, name, None)
        return whole

    @property
    def kind(self) -> Kind:
        """The type of the column, which is public; integers and floats together are floats."""
        kinds = self._kinds
        if len(kinds) > 1 and kinds.keys() - {FLOATS.name, INTEGERS.name}:
            raise ItemTypeError(f"data must be of one type; it has {' and '.join(sorted(kinds))}.")
        return FLOATS if len(kinds) > 1 else next(iter(kinds.values()), INTEGERS)

    def counts(self, groups: int) -> Codes:
        """How many rows each code of a key has; there are ``groups`` of them."""
        counts = self._counted(np.arange(groups, dtype=np.int32), groups, self._parts)
        counts[: self._counted_before.size] += self._counted_before
        return counts

    def by_group(self, relabel: Groups, groups: int, kind: Kind) -> tuple[Codes, Codes]:
        """The codes of each group in ascending order, and where each group begins; the rows are given up for it.

        ``relabel`` has for each code of a key the group that its rows belong to, or -1.
        """
        parts, self._parts = self._parts, []
        if kind is FLOATS:
            for part in parts:
                part.codes = codes_of(part.codes.astype(np.float64)) if part.kind is INTEGERS else part.codes
        threads = self._threads if sum(part.codes.size for part in parts) >= WORTH_A_THREAD else 1
        shares = [parts[k::threads] for k in range(threads)]
        counts = np.zeros((threads, groups), dtype=np.int64)

        def count(k: int) -> None:
            counts[k] = self._counted(relabel, groups, shares[k])

        at_once(count, threads)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts.sum(axis=0))])
        # The rows of a group that a thread has found follow those that the threads before it have.
        following = starts[:-1] + np.cumsum(counts, axis=0) - counts
        codes = np.empty(int(starts[-1]), dtype=np.int64)

        def place(k: int) -> None:
            from dpfrugal.kernels.sort_groups import place_rows

            for part in shares[k]:
                place_rows(part.groups, relabel, part.codes, following[k], codes)

        with loading("groups"):
            at_once(place, threads)
        parts.clear()
        shares.clear()
        _sort_each(codes, starts, self._threads)
        return codes, starts

    @staticmethod
    def _counted(relabel: Groups, groups: int, parts: list[_Part]) -> Codes:
        from dpfrugal.kernels.sort_groups import count_rows

        counts = np.zeros(groups, dtype=np.int64)
        with loading("groups"):
            for part in parts:
                count_rows(part.groups, relabel, counts)
        return counts


def sorted_in_groups(arrays: Sequence[Any], starts: Codes) -> Codes:
    """The codes of rows that lie group by group, none of them missing, sorted within each group."""
    codes, first = np.empty(int(starts[-1]), dtype=np.int64), 0
    for array in arrays:

        def read(rows: slice, array: Any = array, place: Codes = codes[first:]) -> None:
            place[rows] = coded(array[rows])[1]

        in_shares(read, len(array), available())
        first += len(array)
    _sort_each(codes, starts, available())
    return codes


def _sort_each(codes: Codes, starts: Codes, threads: int) -> None:
    """Sort each group in place; in threads, each with about as many rows, where groups are large."""
    groups = starts.size - 1
    threads = threads if codes.size >= max(WORTH_A_THREAD, LARGE_GROUP * groups) else 1
    cuts = np.searchsorted(starts, np.linspace(0, codes.size, threads + 1)[1:-1])
    ends = [0, *cuts.tolist(), groups]

    def sort(k: int) -> None:
        places = starts[ends[k] : ends[k + 1] + 1].tolist()
        for first, last in itertools.pairwise(places):
            if last - first > 1:
                codes[first:last].sort()

    at_once(sort, threads)


def coded(array: Any) -> tuple[Kind | None, Codes, Mask | None]:
    """The kind of an Arrow array, the codes of its rows that are not missing, and which those are (None: all)."""
    part = part_of(array)
    return part.kind, codes_of_rows(part.rows), _present(array) if part.missing else None


def _present(array: Any) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    present = array.is_valid()
    if pa.types.is_floating(array.type):
        present = pc.and_(present, pc.invert(pc.is_nan(array.cast(pa.float64())).fill_null(True)))
    mask: Mask = present.to_numpy(zero_copy_only=False)
    return mask
