"""The rows of a table by group: for each public key the codes of its rows, in ascending order.

Everything here is raw, except for the public keys, the kind of the column and the number of rows of the whole table.
It stays in memory, is never stored, and nothing shows it. It depends on the multiset of rows only (and on the rows'
priorities, where a person's rows are limited): the order of rows and how a source cuts them cannot matter.

Memory: 20 bytes per row while rows are sorted into groups, then 8; with persons 66 while their rows are chosen. Where
that is more than may be taken, the table is read again for each part of the groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np

from dpfrugal import parameters
from dpfrugal.errors import ParameterError, ParameterTypeError, TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.columns import Column
from dpfrugal.estimators.table.rows.engine_rows import EngineColumn, EngineGroups, WholeTable, read_engine_groups
from dpfrugal.estimators.table.rows.engine_tables import Columns, engine_of
from dpfrugal.estimators.table.rows.group_columns import Label, key_columns_with, no_keys, with_null_key
from dpfrugal.estimators.table.rows.group_reading import GroupReading
from dpfrugal.estimators.table.rows.keyed_rows import Groups, KeyedRows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach, SortedRows
from dpfrugal.estimators.table.rows.sample import Sample
from dpfrugal.estimators.table.rows.selected_rows import SAMPLE
from dpfrugal.estimators.table.rows.stretches import Windows
from dpfrugal.estimators.table.sources.column_sources import NO_HEADER
from dpfrugal.keys.discovery import KeyDiscovery, declared_or_discovered
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

    def statistics(self, group: int, least: int | None = None, most: int | None = None) -> OrderStatistics:
        """The rows of a group by rank; those beyond the public codes ``least`` and ``most`` count as these."""
        return SortedRows(self.codes(group), least, most)

    def window(self, at: int, reach: Reach) -> Windows:
        """All rows: they hold those around any rank."""
        return Windows(self.sorted_codes, self.starts, np.zeros(self.starts.size - 1, dtype=np.int64))

    def together(self, least: int | None = None, most: int | None = None) -> OrderStatistics:
        """The rows of all public keys by rank; those beyond the public codes ``least`` and ``most`` count as these."""
        number, whole = int(self.starts[-1]), np.dtype(np.int64)
        if self._again is None:
            codes = self.sorted_codes
            return Column(self.kind, number, number, whole, None, lambda: iter([codes])).ordered(least, most)
        sample = Sample(SAMPLE)
        for _, part in self.parts():
            sample.add(part.sorted_codes)
        read = lambda: (part.sorted_codes for _, part in self.parts())  # noqa: E731
        return Column(self.kind, number, number, whole, sample.rows, read).ordered(least, most)

    def prepare(self, reaches: Sequence[Reach], of_all: Reach | None = None) -> None:
        """Nothing: all rows are at hand, or read part by part."""

    def parts(self) -> Iterator[tuple[slice, "GroupedRows"]]:
        """Groups whose rows may be held together."""
        return iter([(slice(0, self.sizes.size), self)]) if self._again is None else self._again.parts(self)

    def discover(self) -> "GroupedRows":
        """The rows of the keys that pass discovery, in the order of keys; itself where keys were declared.

        This draws noise, once, and must be paid for before.
        """
        return self if self._hidden is None else self._hidden.discover()


class GroupOptions(TypedDict, total=False):
    """``keys`` declares the keys: a batch of them, or for several columns a list of tuples or a table.

    Or ``discover_keys`` says what finding them may cost. Rows of other keys are dropped, or form one more group, the
    last one, which is shown as ``other``: a key of the same type that is not declared; for several columns a tuple.
    Rows with a null in a column of the key are one more group after declared keys with ``null_keys="group"``. With
    ``person``, a column of ids, the limits per person are enforced by random priorities over the whole table. Rows that
    are missing, or whose key is not declared and has no group, take no place of their person's. ``memory`` is how many
    bytes the rows may take, but for a group that takes more by itself; of a table in an engine no rows are held. A
    person may have rows in ``windows`` such tables, all of whose discovered keys are covered together.
    """

    keys: Any
    discover_keys: ApproxDP | None
    other: Any
    null_keys: NullGroups
    person: str | None
    max_items_per_person: int
    max_keys_per_person: int | None
    nan_policy: NanPolicy
    max_keys: int
    memory: int | None
    header: bool | None
    windows: int


def groups_of(
    data: Any, column: str, by: str | Sequence[str], **options: Unpack[GroupOptions]
) -> GroupedRows | EngineGroups:
    """The rows of ``column`` for each key of ``by``, a column or several, of whatever the caller has."""
    source = engine_of(data)
    if source is None:
        return read_groups(data, column, by, **options)
    asked = _Asked(column, by, options)
    if asked.null_keys == "group" and not source.groups_nulls:
        raise ParameterError(
            'null_keys must be "raise" or "drop" for this engine; give null keys a name there, with coalesce.'
        )
    if asked.header is not None:
        raise ParameterError(NO_HEADER)
    table = source.open(Columns(column, tuple(asked.names), asked.person, *asked.limits))
    # Of all rows of a person as many count as of those in all groups.
    most = asked.limits[0] * (asked.limits[1] or 1)
    whole = WholeTable(lambda: EngineColumn(source.open(Columns(column, (), asked.person, most)), asked.nan_policy))
    return read_engine_groups(
        table, asked.names, whole, keys=asked.keys, discovery=asked.discovery, label=asked.label,
        null_keys=asked.null_keys, nan_policy=asked.nan_policy, max_keys=asked.max_keys,
    )  # fmt: skip


def read_groups(data: Any, column: str, by: str | Sequence[str], **options: Unpack[GroupOptions]) -> GroupedRows:
    """The same of a table that no engine holds, or as if none did."""
    asked = _Asked(column, by, options)
    reading = GroupReading(
        data, column, asked.names, asked.keys, label=asked.label, null_keys=asked.null_keys,
        nan_policy=asked.nan_policy, person=asked.person, limits=asked.limits, max_keys=asked.max_keys,
        memory=asked.memory, header=asked.header,
    )  # fmt: skip
    rows, index = reading.first(), reading.index
    if asked.discovery is None:
        more = (asked.label is not None) + reading.groups_nulls
        everyone = np.arange(index.size + more, dtype=np.int32)
        return _grouped(rows, reading, index.columns(), everyone)
    hidden = _Undiscovered(rows, reading, asked.discovery)
    return GroupedRows(rows.kind, no_keys(index), rows.rows, np.zeros(1, np.int64), np.zeros(0, np.int64), hidden)


class _Asked:
    """What was asked for, checked."""

    def __init__(self, column: str, by: str | Sequence[str], options: GroupOptions) -> None:
        self.keys, self.person = options.get("keys"), options.get("person")
        self.names = checked_names(column, by, self.person)
        self.nan_policy = parameters.nan_policy(options.get("nan_policy", "raise"))
        self.null_keys = parameters.null_groups(options.get("null_keys", "raise"))
        self.limits = (
            parameters.max_items_per_person(options.get("max_items_per_person", 1)),
            parameters.max_keys_per_person(options.get("max_keys_per_person")),
        )
        memory, discover_keys = options.get("memory"), options.get("discover_keys")
        self.memory = None if memory is None else parameters.integer("memory", memory, 1)
        self.max_keys, self.header = options.get("max_keys", MOST_KEYS), options.get("header")
        declared_or_discovered(self.keys, discover_keys)
        if self.keys is None and self.null_keys == "group":
            raise ParameterError(
                'null_keys must be "raise" or "drop" with discover_keys; "group" is for declared keys.'
            )
        most = self.limits[0] * (self.limits[1] or 1) * options.get("windows", 1)
        self.discovery = None if discover_keys is None else KeyDiscovery(discover_keys, most)
        self.label = _label(options.get("other"), self.names)


def checked_names(column: str, by: str | Sequence[str], person: str | None) -> list[str]:
    """The columns of ``by``."""
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, Sequence) else [by]
    for parameter, several in {"column": [column], "by": names, "person": [] if person is None else [person]}.items():
        for name in several:
            parameters.column(parameter, name)
    if not names or len(set(names)) < len(names):
        raise ParameterError("by must name at least one column, and none of them twice.")
    return names


def _label(other: Any, names: list[str]) -> Label | None:
    if other is None or len(names) == 1:
        return None if other is None else (other,)
    if not isinstance(other, tuple) or len(other) != len(names):
        raise ParameterTypeError(f"other must be a tuple of {len(names)}, one for each column of by.")
    return other


def _grouped(rows: KeyedRows, reading: GroupReading, columns: dict[str, Any], relabel: Groups) -> GroupedRows:
    """The rows by group, where ``relabel`` has the group of each code; those of other keys and of none are the last."""
    groups = len(next(iter(columns.values())))
    if reading.label is not None:
        columns = key_columns_with(columns, reading.label)
        groups += 1
    if reading.groups_nulls:
        columns = with_null_key(columns)
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

    def parts(self, whole: GroupedRows) -> Iterator[tuple[slice, GroupedRows]]:
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
            yield slice(first, last), GroupedRows(whole.kind, columns, whole.rows, found, codes)
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
        columns = index.columns(found) if found.size else no_keys(index)
        if found.size:  # in the order of keys, which says nothing about the order they came in
            order = pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns])
            found, columns = found[order.to_numpy()], {name: column.take(order) for name, column in columns.items()}
        relabel = np.full(size, UNDECLARED if label is None else found.size, dtype=np.int32)
        relabel[found] = np.arange(found.size, dtype=np.int32)
        return _grouped(self._rows, self._reading, columns, relabel)
