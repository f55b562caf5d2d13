"""A column of a table: native rows, in memory or read again at each scan, and the type of its answers.

Floats, integers to 64 bits, decimals, dates, timestamps and durations are read; a row that is missing (a null, NaN or
NaT) is refused or left out. The type of a column is public; a list of numbers has none, and counts as one of floats.
Messages name types and parameters, never a value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dpfrugal.errors import ItemError, ItemTypeError, TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind
from dpfrugal.estimators.table.rows.column_parts import part_of
from dpfrugal.estimators.table.rows.native_rows import Rows, codes_of_rows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.estimators.table.rows.sample import Sample
from dpfrugal.estimators.table.rows.selected_rows import SAMPLE, SelectedRows
from dpfrugal.estimators.table.sources.column_sources import ColumnSource, source_of
from dpfrugal.parameters import NanPolicy, integer

# Rows that are sorted rather than selected from: the sort takes a millisecond or two, and answers every question.
SORTED: Final = 1 << 17


@dataclass(frozen=True)
class Column:
    """Native rows of one kind: ``rows`` with those that are missing, ``present`` without them.

    ``sample`` is a uniform random sample of rows that are read again at each scan; None if all are held.
    """

    kind: Kind
    rows: int = field(repr=False)
    present: int = field(repr=False)
    dtype: np.dtype[Any] = field(repr=False)
    sample: Rows | None = field(repr=False)
    read: Callable[[], Iterator[Rows]] = field(repr=False)

    def arrays(self) -> Iterator[Rows]:
        """The rows that are there; the same ones at each call."""
        return (rows.astype(self.dtype, copy=False) for rows in self.read() if rows.size)

    @property
    def codes(self) -> Codes:
        """The codes of all rows, for columns of few."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *map(codes_of_rows, self.arrays())])

    def ordered(self, least: int | None = None, most: int | None = None) -> OrderStatistics:
        """The rows by rank; those beyond the public codes ``least`` and ``most`` count as these."""
        if self.present <= SORTED:
            return SortedRows(self.codes, least, most)
        return SelectedRows(self, least, most)


def read_column(
    data: Any, column: str | None, nan_policy: NanPolicy, memory: int | None = None, *, header: bool | None = None
) -> Column:
    """One column of whatever the caller has.

    Rows that are not in memory yet are held if they take at most ``memory`` bytes (None: always). Otherwise they are
    read again at each scan, and a source that can be read once is refused. ``header`` says whether files of text have
    one, where ``column`` does not say it.
    """
    limit = None if memory is None else integer("memory", memory, 1)
    source = source_of(data, column, header)
    reading = _Reading(source, limit)
    for array in source.read():
        reading.add(array)
    if reading.missing and nan_policy == "raise":
        raise ItemError('The data has NaN or null rows; clean it, or use nan_policy="omit".')
    return reading.column()


class _Reading:
    """The first reading of a source: what is held, how many rows there are, and of which kind."""

    def __init__(self, source: ColumnSource, limit: int | None) -> None:
        self._source, self._limit = source, None if source.held else limit
        self._kinds: dict[str, Kind] = {}
        self._types: set[np.dtype[Any]] = set()
        self._held: list[Rows] = []
        self._sample: Sample | None = None
        self._bytes = self._present = self.missing = 0

    def add(self, array: Any) -> None:
        """Another array of the source."""
        part = part_of(array)
        self.missing += part.missing
        self._present += part.rows.size
        if part.kind is None:
            return
        self._kinds[part.kind.name] = part.kind
        if len(self._kinds) > 1 and self._kinds.keys() - {"float", "integer"}:
            raise ItemTypeError(f"data must be of one type; it has {' and '.join(sorted(self._kinds))}.")
        self._types.add(part.rows.dtype)
        if self._sample is not None:
            self._sample.add(part.rows)
            return
        self._held.append(part.rows)
        self._bytes += part.rows.nbytes
        if self._limit is not None and self._bytes > self._limit:
            if not self._source.again:
                raise TableError(
                    f"data: the column takes more than memory={self._limit:,} bytes and can be read only once; allow "
                    "more, or write it to a file."
                )
            self._sample = Sample(SAMPLE)
            for rows in self._held:
                self._sample.add(rows)
            self._held = []

    def column(self) -> Column:
        """What was read."""
        kinds = list(self._kinds.values())
        kind = FLOATS if len(kinds) > 1 else kinds[0] if kinds else INTEGERS
        dtype = np.dtype(np.float64) if len(kinds) > 1 else np.result_type(*self._types or {np.dtype(np.int64)})
        rows = self._present + self.missing
        if self._sample is None:
            held = self._held
            return Column(kind, rows, self._present, dtype, None, lambda: iter(held))
        source = self._source
        sample = self._sample.rows.astype(dtype, copy=False)
        return Column(kind, rows, self._present, dtype, sample, lambda: (part_of(each).rows for each in source.read()))
