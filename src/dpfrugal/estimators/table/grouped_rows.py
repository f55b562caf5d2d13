"""The rows of a table by group: for each public key the codes of its rows, in ascending order.

Everything here is raw, except for the public keys, the kind of the column and the number of rows of the whole table.
It stays in memory, is never stored, and nothing shows it. It depends on the multiset of rows only (and on the rows'
priorities, where a person's rows are limited): the order of rows and how a source cuts them cannot matter.

Memory: 20 bytes per row while rows are sorted into groups, then 8; with persons 52 while their rows are chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpfrugal import parameters
from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.table.codes import Codes
from dpfrugal.estimators.table.columns import Kind
from dpfrugal.estimators.table.keyed_rows import Groups, KeyedRows
from dpfrugal.estimators.table.order_statistics import OrderStatistics
from dpfrugal.estimators.table.table_batches import table_batches
from dpfrugal.kernels.threads import available
from dpfrugal.keys.columns import KeyColumns, typed
from dpfrugal.keys.discovery import KeyDiscovery
from dpfrugal.keys.index import MOST_KEYS, UNDECLARED
from dpfrugal.keys.person_limits import People, RowPriorities
from dpfrugal.parameters import NanPolicy, NullKeys
from dpfrugal.privacy.guarantees import ApproxDP

# So many rows are looked up at once: what they need beside the table itself is small.
ROWS_AT_ONCE: Final = 1 << 20
Label = tuple[Any, ...]


@dataclass(frozen=True)
class GroupedRows:
    """The rows of each public key. Where keys are to be discovered, none is public before ``discover``."""

    kind: Kind = field(repr=False)
    key_columns: dict[str, Any]  # the public keys: an Arrow array for each column of by
    rows: int = field(repr=False)  # of the whole table: with rows that are missing or belong to no public key
    sorted_codes: Codes = field(repr=False)  # of group g, ascending: sorted_codes[starts[g] : starts[g + 1]]
    starts: Codes = field(repr=False)
    _undiscovered: "_Undiscovered | None" = field(repr=False, default=None)

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

    def codes(self, group: int) -> Codes:
        """The codes of a group's rows in ascending order: raw."""
        return self.sorted_codes[self.starts[group] : self.starts[group + 1]]

    def statistics(self, group: int) -> OrderStatistics:
        """The rows of a group by rank."""
        return OrderStatistics(self.codes(group))

    def discover(self) -> "GroupedRows":
        """The rows of the keys that pass discovery, in the order of keys; itself where keys were declared.

        This draws noise, once, and must be paid for before.
        """
        return self if self._undiscovered is None else self._undiscovered.discover()


def read_groups(
    data: Any,
    column: str,
    by: str | Sequence[str],
    *,
    keys: Any = None,
    discover_keys: ApproxDP | None = None,
    other: Any = None,
    null_keys: NullKeys = "raise",
    person: str | None = None,
    max_items_per_person: int = 1,
    max_keys_per_person: int | None = None,
    nan_policy: NanPolicy = "raise",
    max_keys: int = MOST_KEYS,
) -> GroupedRows:
    """The rows of ``column`` for each key of ``by``, a column or several, of whatever the caller has.

    ``keys`` declares the keys: a batch of them, or for several columns a list of tuples or a table. Or
    ``discover_keys`` says what finding them may cost. Rows of other keys are dropped, or form one more group, the last
    one, which is shown as ``other``: a key of the same type that is not declared; for several columns a tuple. With
    ``person``, a column of ids, the limits per person are enforced by random priorities over the whole table. Rows
    that are missing, or whose key is not declared and has no group, take no place of their person's.
    """
    import pyarrow as pa

    names = _names(column, by, person)
    parameters.nan_policy(nan_policy), parameters.null_keys(null_keys)
    limits = parameters.max_items_per_person(max_items_per_person), parameters.max_keys_per_person(max_keys_per_person)
    if (keys is None) == (discover_keys is None):
        raise ParameterError(
            "Either keys or discover_keys must be given, and not both: which keys there are is data too. Declare "
            "them, or say what discovering them may cost: discover_keys=ApproxDP(epsilon=..., delta=...)."
        )
    discovery = None if discover_keys is None else KeyDiscovery(discover_keys, limits[0] * (limits[1] or 1))
    threads = available()
    index = KeyColumns(names, keys, max_keys=max_keys, typed=discovery is not None, threads=threads)
    label = _label(other, names)
    if discovery is None and label is not None and index.code(label) != UNDECLARED:
        raise ParameterError("other must not be one of keys.")
    rows, people, priorities = KeyedRows(nan_policy, threads), People(threads), RowPriorities()
    beside, shown = names if person is None else [*names, person], [] if discovery is None else names
    for batch in table_batches(data, column, beside, shown):
        for first in range(0, max(batch.num_rows, 1), ROWS_AT_ONCE):
            piece = batch.slice(first, ROWS_AT_ONCE)
            groups = index.codes([piece.column(name) for name in names], null_keys)
            if discovery is None and label is not None:
                groups[groups == UNDECLARED] = index.size
            who = None if person is None else people.codes(piece.column(person))
            rows.add(piece.column(column), groups, who, None if who is None else priorities.next(piece.num_rows))
    if person is not None:
        rows.keep_chosen(*limits)
    if discovery is None:
        everyone = np.arange(index.size + (label is not None), dtype=np.int32)
        return _grouped(rows, index.columns(), label, everyone)
    nothing = {name: pa.nulls(0) for name in names}  # their types would say that some key is there
    hidden = _Undiscovered(rows, index, discovery, label)
    return GroupedRows(rows.kind, nothing, rows.rows, np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64), hidden)


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


def _label(other: Any, names: list[str]) -> tuple[Any, ...] | None:
    if other is None or len(names) == 1:
        return None if other is None else (other,)
    if not isinstance(other, tuple) or len(other) != len(names):
        raise ParameterTypeError(f"other must be a tuple of {len(names)}, one for each column of by.")
    return other


def _grouped(rows: KeyedRows, columns: dict[str, Any], label: Label | None, relabel: Groups) -> GroupedRows:
    """The rows by group, where ``relabel`` has the group of each code; with a label there is one more, the last."""
    import pyarrow as pa

    groups = len(next(iter(columns.values()))) + (label is not None)
    if label is not None:
        labels = [typed(part, column.type) for part, column in zip(label, columns.values(), strict=True)]
        columns = {
            name: pa.concat_arrays([column, one]) if len(column) else one
            for (name, column), one in zip(columns.items(), labels, strict=True)
        }
    return GroupedRows(rows.kind, columns, rows.rows, *rows.by_group(relabel, groups))


class _Undiscovered:
    """All rows and all keys, of which none is public yet."""

    def __init__(self, rows: KeyedRows, index: KeyColumns, discovery: KeyDiscovery, label: Label | None) -> None:
        self._rows, self._index, self._discovery, self._label = rows, index, discovery, label
        self._found: GroupedRows | None = None

    def discover(self) -> GroupedRows:
        if self._found is None:
            self._found = self._discovered()
        return self._found

    def _discovered(self) -> GroupedRows:
        import pyarrow as pa
        import pyarrow.compute as pc

        size = self._index.size
        counts = self._rows.counts(size)
        same = UNDECLARED if self._label is None or not size else self._index.code(self._label)
        if same != UNDECLARED:
            counts[same] = 0  # rows that have the label as their key are others too
        self._discovery.restore(counts, np.zeros(size, dtype=np.bool_))
        found = self._discovery.found()
        columns = self._index.columns(found) if found.size else {name: pa.nulls(0) for name in self._index.names}
        if found.size:  # in the order of keys, which says nothing about the order they came in
            order = pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns])
            found, columns = found[order.to_numpy()], {name: column.take(order) for name, column in columns.items()}
        relabel = np.full(size, UNDECLARED if self._label is None else found.size, dtype=np.int32)
        relabel[found] = np.arange(found.size, dtype=np.int32)
        return _grouped(self._rows, columns, self._label, relabel)
