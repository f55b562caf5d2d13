"""The rows of a table that an engine holds, as the choices need them: by rank, in all or for each public key.

Only windows of order statistics reach Python, and for groups the keys with their numbers of rows. All of it is raw.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.engine_tables import Assigned, EngineTable, Found, Tallies, checked_counts
from dpfrugal.estimators.table.rows.group_columns import (
    Label,
    key_columns_with,
    no_keys,
    refuse_declared,
    with_null_key,
)
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach
from dpfrugal.estimators.table.rows.stretches import Stretch, StretchRows, Windows
from dpfrugal.keys.columns import NULL, KeyColumns
from dpfrugal.keys.discovery import KeyDiscovery
from dpfrugal.keys.index import UNDECLARED
from dpfrugal.parameters import NanPolicy, NullGroups, NullKeys


class EngineColumn:
    """A column in an engine: its type, the number of its rows, missing ones too, and its rows by rank."""

    def __init__(self, table: EngineTable, nan_policy: NanPolicy) -> None:
        import pyarrow as pa

        self._table, self.kind = table, table.kind
        counts = checked_counts(table, nan_policy)
        self.number = int(counts.column("rows").to_numpy().sum())
        self._all = Assigned(pa.table({"group": pa.array([0], pa.int32())}), 1)
        self._tallies = table.tallies(self._all, counts)

    @property
    def present(self) -> int:
        """How many rows count: raw."""
        return int(self._tallies.sizes[0])

    def ordered(self, least: int | None = None, most: int | None = None) -> OrderStatistics:
        """The rows by rank; those beyond the public codes ``least`` and ``most`` count as these."""
        return _EngineRows(self.present, self.find, least, most)

    def find(self, reaches: Sequence[Reach]) -> list[Stretch]:
        """The rows that these reaches say: raw."""
        if not self.present:
            return []
        (found,) = self._table.find(self._all, self._tallies, reaches)
        return [each.stretch(0) for each in found.stretches]


class _EngineRows(StretchRows):
    """Rows by rank of which an engine delivers those around the ranks that are asked for."""

    def __init__(
        self, rows: int, find: Callable[[Sequence[Reach]], list[Stretch]], least: int | None, most: int | None
    ) -> None:
        super().__init__(rows, [], lambda: find([all_rows(rows)])[0], least, most)
        self._find = find

    def prepare(self, ranges: Sequence[tuple[int, int]], reaches: Sequence[Reach] = ()) -> None:
        """Find the rows of all these ranks at once."""
        if not all(any(first >= each.below and last < each.end for each in self._known) for first, last in ranges):
            self._known += self._find(reaches or [_reach_of(*each, self.rows) for each in ranges])


def all_rows(rows: int) -> Reach:
    """Every rank of so many rows."""
    return Reach(0.5, float(rows), 0.0)


def _reach_of(first: int, last: int, rows: int) -> Reach:
    return Reach((first + last) / 2 / rows, (last - first) / 2 + 1, 0.0)


class WholeTable:
    """The rows of a table without its keys, of which ``open`` makes a column when they are asked for."""

    def __init__(self, open_column: Callable[[], EngineColumn]) -> None:
        self._column, self._known = cache(open_column), list[Stretch]()

    def prepare(self, reach: Reach) -> None:
        """Find the rows that a reach says."""
        if not self._known:
            self._known.extend(self._column().find([reach]))

    def ordered(self, least: int | None, most: int | None) -> OrderStatistics:
        """By rank."""
        column = self._column()
        everything = lambda: column.find([all_rows(column.present)])[0]  # noqa: E731
        return StretchRows(column.present, self._known, everything, least, most)


@dataclass(frozen=True)
class EngineGroups:
    """The rows of each public key, in an engine. Where keys are to be discovered, none is public before ``discover``.

    ``prepare`` finds all that a plan looks at.
    """

    kind: Kind = field(repr=False)
    key_columns: dict[str, Any]
    rows: int = field(repr=False)
    _tallies: Tallies = field(repr=False)
    _table: EngineTable = field(repr=False)
    _assigned: Assigned = field(repr=False)
    _whole: WholeTable = field(repr=False)
    _hidden: "Callable[[], EngineGroups] | None" = field(repr=False, default=None)
    _found: list[Found] = field(repr=False, default_factory=list)

    @property
    def sizes(self) -> Codes:
        """How many rows each public key has: raw."""
        return self._tallies.sizes

    def prepare(self, reaches: Sequence[Reach], of_all: Reach | None = None) -> None:
        """Find the rows of each group that ``reaches`` say, and those of the whole table; no others are read."""
        if self._hidden is None and not self._found and self.sizes.size:
            self._found.extend(self._table.find(self._assigned, self._tallies, reaches))
            if of_all is not None:
                self._whole.prepare(of_all)

    def together(self, least: int | None = None, most: int | None = None) -> OrderStatistics:
        """The rows of the whole table by rank, whatever their keys; those beyond two public codes count as these."""
        return self._whole.ordered(least, most)

    def parts(self) -> Iterator[tuple[NDArray[np.int64], "EnginePart"]]:
        """The groups whose rows were found at once."""
        return ((each.groups, EnginePart(self, each)) for each in self._found)

    def discover(self) -> "EngineGroups":
        """The keys that pass discovery, in the order of keys; itself where keys were declared.

        This draws noise, once, and must be paid for before.
        """
        return self if self._hidden is None else self._hidden()

    def everything(self, group: int) -> Stretch:
        """All rows of one group."""
        keys = self._assigned.keys
        some = keys.filter(np.equal(keys.column("group").to_numpy(), group))
        alone = Assigned(some.set_column(some.column_names.index("group"), "group", _zeros(some.num_rows)), 1)
        (found,) = self._table.find(alone, self._tallies[group : group + 1], [all_rows(int(self.sizes[group]))])
        return found.stretches[0].stretch(0)


def _zeros(rows: int) -> Any:
    import pyarrow as pa

    return pa.array(np.zeros(rows, dtype=np.int32))


class EnginePart:
    """Groups whose stretches are at hand."""

    def __init__(self, whole: EngineGroups, found: Found) -> None:
        self._whole, self._found, self.sizes = whole, found, whole.sizes[found.groups]

    def window(self, at: int, reach: Reach) -> Windows:
        """The rows around the rank of one quantile."""
        return self._found.stretches[at].windows(reach.ranks(self.sizes))

    def statistics(self, group: int, least: int | None = None, most: int | None = None) -> OrderStatistics:
        """The rows of a group by rank."""
        stretches = [each.stretch(group) for each in self._found.stretches]
        number = int(self._found.groups[group])
        return StretchRows(int(self.sizes[group]), stretches, lambda: self._whole.everything(number), least, most)


def read_engine_groups(
    table: EngineTable,
    names: list[str],
    whole: WholeTable,
    *,
    keys: Any,
    discovery: KeyDiscovery | None,
    label: Label | None,
    null_keys: NullGroups,
    nan_policy: NanPolicy,
    max_keys: int,
) -> EngineGroups:
    """The groups of a table: its keys and their numbers of rows are read, and assigned to the public keys."""
    index = KeyColumns(names, keys, max_keys=max_keys, typed=keys is None)
    if keys is not None:
        refuse_declared(index, label)
    kind, counts = table.kind, checked_counts(table, nan_policy)
    rows = int(counts.column("rows").to_numpy().sum()) if counts.num_rows else 0
    codes = _codes(index, counts, names, "raise" if null_keys == "raise" else "drop")
    index.settle()
    if discovery is None:
        nulls = null_keys == "group"
        return _assigned(table, whole, kind, rows, names, counts, index.columns(), codes, label, nulls=nulls)

    @cache
    def discovered() -> EngineGroups:
        return _discovered(table, whole, kind, rows, names, counts, index, codes, label, discovery)

    nothing = np.zeros(0, dtype=np.int64)
    empty = Assigned(counts.slice(0, 0), 0), Tallies(nothing, nothing)
    return EngineGroups(kind, no_keys(index), rows, empty[1], table, empty[0], whole, discovered)


def _codes(index: KeyColumns, counts: Any, names: list[str], null_keys: NullKeys) -> NDArray[np.int32]:
    found = [index.codes([batch.column(name) for name in names], null_keys) for batch in counts.to_batches()]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int32)


def _assigned(
    table: EngineTable,
    whole: WholeTable,
    kind: Kind,
    rows: int,
    names: list[str],
    counts: Any,
    columns: dict[str, Any],
    codes: NDArray[np.int32],
    label: Label | None,
    *,
    nulls: bool = False,
) -> EngineGroups:
    """Groups whose numbers are the codes; then undeclared keys, where there is a label, and null ones with ``nulls``.

    The keys of rows with a null are then among those that are assigned: an engine compares them as equal.
    """
    import pyarrow as pa

    groups = len(next(iter(columns.values())))
    if label is not None:
        codes, columns = np.where(codes == UNDECLARED, np.int32(groups), codes), key_columns_with(columns, label)
        groups += 1
    if nulls:
        codes, columns = np.where(codes == NULL, np.int32(groups), codes), with_null_key(columns)
        groups += 1
    kept = pa.array(codes >= 0)
    assigned = Assigned(counts.select(names).append_column("group", pa.array(codes)).filter(kept), groups)
    return EngineGroups(kind, columns, rows, table.tallies(assigned, counts.filter(kept)), table, assigned, whole)


def _discovered(
    table: EngineTable,
    whole: WholeTable,
    kind: Kind,
    rows: int,
    names: list[str],
    counts: Any,
    index: KeyColumns,
    codes: NDArray[np.int32],
    label: Label | None,
    discovery: KeyDiscovery,
) -> EngineGroups:
    import pyarrow as pa
    import pyarrow.compute as pc

    size, there = index.size, pa.array(codes >= 0)
    every = Assigned(counts.select(names).append_column("group", pa.array(codes)).filter(there), size)
    present = table.tallies(every, counts.filter(there)).sizes
    same = UNDECLARED if label is None or not size else index.code(label)
    if same != UNDECLARED:
        present = present.copy()
        present[same] = 0  # rows that have the label as their key are others too
    discovery.restore(present, np.zeros(size, dtype=np.bool_))
    found = discovery.found()
    columns = index.columns(found) if found.size else no_keys(index)
    if found.size:  # in the order of keys, which says nothing about the order they came in
        order = pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns])
        found, columns = found[order.to_numpy()], {name: column.take(order) for name, column in columns.items()}
    relabel = np.full(size, UNDECLARED, dtype=np.int32)
    relabel[found] = np.arange(found.size, dtype=np.int32)
    again = np.where(codes >= 0, relabel[np.maximum(codes, 0)], codes) if size else codes
    return _assigned(table, whole, kind, rows, names, counts, columns, again, label)
