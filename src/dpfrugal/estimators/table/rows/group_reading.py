"""The reading of a table with keys, and of a source that can be read again, once more."""

from collections.abc import Iterator
from typing import Any, Final

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.rows.group_columns import Label, refuse_declared
from dpfrugal.estimators.table.rows.keyed_rows import Groups, KeyedRows
from dpfrugal.estimators.table.sources.table_batches import read_once, table_batches
from dpfrugal.kernels.threads import available
from dpfrugal.keys.columns import NULL, KeyColumns
from dpfrugal.keys.index import UNDECLARED
from dpfrugal.keys.person_limits import People, RowPriorities
from dpfrugal.parameters import NanPolicy, NullGroups, NullKeys

# So many rows are looked up at once: what they need beside the table itself is small.
ROWS_AT_ONCE: Final = 1 << 20
BYTES_PER_ROW: Final = 20
BYTES_PER_ROW_OF_PERSONS: Final = 66  # measured with ten rows per person, their ids included


class GroupReading:
    """Where rows come from, which key each has, and how many may be held at once."""

    index: KeyColumns

    def __init__(
        self,
        data: Any,
        column: str,
        names: list[str],
        keys: Any,
        *,
        label: Label | None,
        null_keys: NullGroups,
        nan_policy: NanPolicy,
        person: str | None,
        limits: tuple[int, int | None],
        max_keys: int,
        memory: int | None,
        header: bool | None = None,
    ) -> None:
        self._data, self._column, self._names, self._person = data, column, names, person
        self.groups_nulls = null_keys == "group"
        self._null_keys: NullKeys = "raise" if null_keys == "raise" else "drop"
        self._nan_policy, self._limits, self._header = nan_policy, limits, header
        self._threads, self._memory, self._declared = available(), memory, keys is not None
        self.index = KeyColumns(names, keys, max_keys=max_keys, typed=not self._declared, threads=self._threads)
        self.label = label
        if self._declared:
            refuse_declared(self.index, label)

    @property
    def most_rows(self) -> int:
        """How many rows may be held at once."""
        each = BYTES_PER_ROW if self._person is None else BYTES_PER_ROW_OF_PERSONS
        return max(1, (self._memory or 0) // each)

    def first(self) -> KeyedRows:
        """All rows, of each person those that count; only counted, where they are too many."""
        most = None if self._memory is None else self.most_rows
        rows = KeyedRows(self._nan_policy, self._threads, most_rows=most)
        people, priorities = People(self._threads), RowPriorities()
        for piece in self._pieces():
            who = None if self._person is None else people.codes(piece.column(self._person))
            drawn = None if who is None else priorities.next(piece.num_rows)
            rows.add(piece.column(self._column), self._groups(piece), who, drawn)
            if not rows.held and self._person is not None:
                raise ParameterError(
                    f"memory is too small for person, which takes {BYTES_PER_ROW_OF_PERSONS} bytes per row; raise it."
                )
            if not rows.held and read_once(self._data):
                raise ParameterError(
                    f"memory is too small for data that can be read once only ({BYTES_PER_ROW} bytes per row): raise "
                    "it, or give a table or a file that can be read again."
                )
        self.index.settle()
        if self._person is not None:
            rows.keep_chosen(*self._limits)
        return rows

    def again(self, wanted: Groups) -> KeyedRows:
        """The rows of some keys; ``wanted`` has -1 for the codes of the others."""
        rows = KeyedRows(self._nan_policy, self._threads, wanted=wanted)
        for piece in self._pieces():
            rows.add(piece.column(self._column), self._groups(piece), None, None)
        return rows

    def _groups(self, piece: Any) -> Groups:
        groups = self.index.codes([piece.column(name) for name in self._names], self._null_keys)
        if self._declared and self.label is not None:
            groups[groups == UNDECLARED] = self.index.size
        if self.groups_nulls:
            groups[groups == NULL] = self.index.size + (self.label is not None)
        return groups

    def _pieces(self) -> Iterator[Any]:
        beside = self._names if self._person is None else [*self._names, self._person]
        shown = [] if self._declared else self._names
        for batch in table_batches(self._data, self._column, beside, shown, self._header):
            for first in range(0, max(batch.num_rows, 1), ROWS_AT_ONCE):
                yield batch.slice(first, ROWS_AT_ONCE)
