"""The rows of a table by group: for each public key the codes of its rows, in ascending order.

Everything here is raw, except for the public keys, the kind of the column and the number of rows of the whole table.
It stays in memory, is never stored, and nothing shows it. It depends on the multiset of rows only (and on the rows'
priorities, where a person's rows are limited): the order of rows and how a source cuts them cannot matter.

Memory: 20 bytes per row while rows are sorted into groups, then 8; with persons 66 while their rows are chosen. Where
that is more than may be taken, the table is read again for each part of the groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfrugal import parameters
from dpfrugal.errors import ParameterError, ParameterTypeError, TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.group_reading import GroupReading, Label
from dpfrugal.estimators.table.rows.keyed_rows import Groups, KeyedRows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.keys.columns import KeyColumns, typed
from dpfrugal.keys.discovery import KeyDiscovery
from dpfrugal.keys.index import MOST_KEYS, UNDECLARED
from dpfrugal.parameters import NanPolicy, NullGroups
from dpfrugal.privacy.guarantees import ApproxDP


@dataclass(frozen=True)
class GroupedRows:
    """The rows of each public key. Where keys are to be discovered, none is public before ``discover``.

    ``parts`` gives all groups, some at a time. Where the whole table may be held there is one part: this itself.
    """

    kind: Kind = field(repr=False)
    key_columns: dict[str, Any]  # the public keys: an Arrow array for each column of by
    rows: int = field(repr=False)  # of the whole table: with rows that are missing or belong to no public key
    starts: Codes = field(repr=False)  # where each group begins among the sorted codes of all; one more for the end
    _sorted_codes: Codes | None = field(repr=False, default=None)
    _hidden: "_Undiscovered | None" = field(repr=False, default=None)
    _again: "_Again | None" = field(repr=False, default=None)

    @property
    def keys(self) -> Any:
        """The public keys as one Arrow array; of structs, where several columns are the key."""
        import pyarrow as pa

        columns = list(self.key_columns.values())
        return columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, list(self.key_columns))

    @property
    def sizes(self) -> Codes:
        """How many rows each public key has: raw."""
        return np.diff(self.starts)

    @property
    def sorted_codes(self) -> Codes:
        """The codes of all rows: of group g, ascending, ``sorted_codes[starts[g] : starts[g + 1]]``. Raw."""
        if self._sorted_codes is None:
            raise ParameterError("memory does not allow all rows at once: read the groups by parts().")
        return self._sorted_codes

    def codes(self, group: int) -> Codes:
        """The codes of a group's rows in ascending order: raw."""
        return self.sorted_codes[self.starts[group] : self.starts[group + 1]]

    def statistics(self, group: int) -> OrderStatistics:
        """The rows of a group by rank."""
        return SortedRows(self.codes(group))

    def parts(self) -> Iterator[tuple[int, "GroupedRows"]]:
        """Consecutive groups whose rows may be held together, with the number of the first of them."""
        return iter([(0, self)]) if self._again is None else self._again.parts(self)

    def discover(self) -> "GroupedRows":
        """The rows of the keys that pass discovery, in the order of keys; itself where keys were declared.

        This draws noise, once, and must be paid for before.
        """
        return self if self._hidden is None else self._hidden.discover()


def read_groups(
    data: Any,
    column: str,
    by: str | Sequence[str],
    *,
    keys: Any = None,
    discover_keys: ApproxDP | None = None,
    other: Any = None,
    null_keys: NullGroups = "raise",
    person: str | None = None,
    max_items_per_person: int = 1,
    max_keys_per_person: int | None = None,
    nan_policy: NanPolicy = "raise",
    max_keys: int = MOST_KEYS,
    memory: int | None = None,
    header: bool | None = None,
) -> GroupedRows:
    """The rows of ``column`` for each key of ``by``, a column or several, of whatever the caller has.

    ``keys`` declares the keys: a batch of them, or for several columns a list of tuples or a table. Or
    ``discover_keys`` says what finding them may cost. Rows of other keys are dropped, or form one more group, the last
    one, which is shown as ``other``: a key of the same type that is not declared; for several columns a tuple. Rows
    with a null in a column of the key are one more group with ``null_keys="group"``, whose keys must be declared. With
    ``person``, a column of ids, the limits per person are enforced by random priorities over the whole table. Rows
    that are missing, or whose key is not declared and has no group, take no place of their person's. ``memory`` is how
    many bytes the rows may take, but for a group that takes more by itself.
    """
    names = _names(column, by, person)
    parameters.nan_policy(nan_policy), parameters.null_groups(null_keys)
    limits = parameters.max_items_per_person(max_items_per_person), parameters.max_keys_per_person(max_keys_per_person)
    memory = None if memory is None else parameters.integer("memory", memory, 1)
    if (keys is None) == (discover_keys is None):
        raise ParameterError(
            "Either keys or discover_keys must be given, and not both: which keys there are is data too. Declare "
            "them, or say what discovering them may cost: discover_keys=ApproxDP(epsilon=..., delta=...)."
        )
    if keys is None and null_keys == "group":
        raise ParameterError('null_keys must be "raise" or "drop" with discover_keys; "group" is for declared keys.')
    discovery = None if discover_keys is None else KeyDiscovery(discover_keys, limits[0] * (limits[1] or 1))
    label = _label(other, names)
    reading = GroupReading(
        data, column, names, keys, label=label, null_keys=null_keys, nan_policy=nan_policy, person=person,
        limits=limits, max_keys=max_keys, memory=memory, header=header,
    )  # fmt: skip
    rows, index = reading.first(), reading.index
    if discovery is None:
        everyone = np.arange(index.size + (label is not None) + reading.groups_nulls, dtype=np.int32)
        return _grouped(rows, reading, index.columns(), everyone)
    hidden = _Undiscovered(rows, reading, discovery)
    return GroupedRows(rows.kind, _no_keys(index), rows.rows, np.zeros(1, np.int64), np.zeros(0, np.int64), hidden)


def _names(column: str, by: str | Sequence[str], person: str | None) -> list[str]:
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, Sequence) else [by]
    given = {"column": [column], "by": names, "person": [] if person is None else [person]}
    for parameter, several in given.items():
        for name in several:
            if not isinstance(name, str):
                raise ParameterTypeError(f"{parameter} must be the name of a column, not {type(name).__name__}.")
    if not names or len(set(names)) < len(names):
        raise ParameterError("by must name at least one column, and none of them twice.")
    return names


def _label(other: Any, names: list[str]) -> Label | None:
    if other is None or len(names) == 1:
        return None if other is None else (other,)
    if not isinstance(other, tuple) or len(other) != len(names):
        raise ParameterTypeError(f"other must be a tuple of {len(names)}, one for each column of by.")
    return other


def _no_keys(index: KeyColumns) -> dict[str, Any]:
    """Columns without keys, and without types: these would say that some key is there."""
    import pyarrow as pa

    return {name: pa.nulls(0) for name in index.names}


def _grouped(rows: KeyedRows, reading: GroupReading, columns: dict[str, Any], relabel: Groups) -> GroupedRows:
    """The rows by group, where ``relabel`` has the group of each code; those of other keys and of none are the last."""
    import pyarrow as pa

    groups = len(next(iter(columns.values())))
    if reading.label is not None:
        labels = [typed(part, column.type) for part, column in zip(reading.label, columns.values(), strict=True)]
        columns = {
            name: pa.concat_arrays([column, one]) if len(column) else one
            for (name, column), one in zip(columns.items(), labels, strict=True)
        }
        groups += 1
    if reading.groups_nulls:
        columns = {name: pa.concat_arrays([column, pa.nulls(1, column.type)]) for name, column in columns.items()}
        groups += 1
    if rows.held:
        codes, starts = rows.by_group(relabel, groups, rows.kind)
        return GroupedRows(rows.kind, columns, rows.rows, starts, codes)
    sizes, counts = np.zeros(groups, dtype=np.int64), rows.counts(relabel.size)
    np.add.at(sizes, relabel[relabel >= 0], counts[relabel >= 0])
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    return GroupedRows(rows.kind, columns, rows.rows, starts, None, None, _Again(reading, relabel))


class _Again:
    """A table that is read once more for each part of its groups, as not all of its rows may be held at once."""

    def __init__(self, reading: GroupReading, relabel: Groups) -> None:
        self._reading, self._relabel = reading, relabel

    def parts(self, whole: GroupedRows) -> Iterator[tuple[int, GroupedRows]]:
        first, starts = 0, whole.starts
        while first < starts.size - 1:
            most = int(starts[first]) + self._reading.most_rows
            last = max(first + 1, int(np.searchsorted(starts, most, "right")) - 1)
            here = (self._relabel >= first) & (self._relabel < last)
            relabel = np.where(here, self._relabel - np.int32(first), np.int32(UNDECLARED))
            rows = self._reading.again(relabel)
            codes, found = rows.by_group(relabel, last - first, whole.kind)
            if rows.rows != whole.rows or not np.array_equal(found, starts[first : last + 1] - starts[first]):
                raise TableError("data changed between two readings; keep it as it is, or raise memory.")
            columns = {name: column[first:last] for name, column in whole.key_columns.items()}
            yield first, GroupedRows(whole.kind, columns, whole.rows, found, codes)
            first = last


class _Undiscovered:
    """All rows and all keys, of which none is public yet."""

    def __init__(self, rows: KeyedRows, reading: GroupReading, discovery: KeyDiscovery) -> None:
        self._rows, self._reading, self._discovery = rows, reading, discovery
        self._found: GroupedRows | None = None

    def discover(self) -> GroupedRows:
        if self._found is None:
            self._found = self._discovered()
        return self._found

    def _discovered(self) -> GroupedRows:
        import pyarrow as pa
        import pyarrow.compute as pc

        index, label = self._reading.index, self._reading.label
        size = index.size
        counts = self._rows.counts(size)
        same = UNDECLARED if label is None or not size else index.code(label)
        if same != UNDECLARED:
            counts[same] = 0  # rows that have the label as their key are others too
        self._discovery.restore(counts, np.zeros(size, dtype=np.bool_))
        found = self._discovery.found()
        columns = index.columns(found) if found.size else _no_keys(index)
        if found.size:  # in the order of keys, which says nothing about the order they came in
            order = pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns])
            found, columns = found[order.to_numpy()], {name: column.take(order) for name, column in columns.items()}
        relabel = np.full(size, UNDECLARED if label is None else found.size, dtype=np.int32)
        relabel[found] = np.arange(found.size, dtype=np.int32)
        return _grouped(self._rows, self._reading, columns, relabel)
