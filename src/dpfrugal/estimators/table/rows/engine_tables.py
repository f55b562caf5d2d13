"""What a table in an engine (DuckDB, Polars, Spark, a database) must answer: counts, and windows of order statistics.

Nothing random that protects happens in an engine: it delivers exact windows, so partitions, order, retries and
speculative copies cannot touch a guarantee. Everything it answers is raw, and stays in memory.

An engine is found by the library that a table's type comes from, and loaded only then.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError, TableError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.column_parts import part_of
from dpfrugal.estimators.table.rows.order_statistics import Reach
from dpfrugal.estimators.table.rows.stretches import GroupStretches
from dpfrugal.parameters import NanPolicy

MISSING: Final = 'The data has NaN or null rows; clean it, or use nan_policy="omit".'
NULL_PERSONS: Final = "person has null ids; clean the data."
CHANGED: Final = (
    "data: the table changed while it was read; try again when nothing writes to it, or keep the rows of a plan that "
    "gives others each time."
)
# A checksum of rows is the sum of hashes below this: so 2^41 rows fit into 64 bits, and a row that changes passes
# unnoticed once in four million times.
HASHES: Final = 1 << 22
ENGINES: Final = {
    "duckdb": "dpfrugal.engines.duckdb",
    "polars": "dpfrugal.engines.polars",
    "pyspark": "dpfrugal.engines.spark.table",
}


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read: of values, of keys, and of persons' ids with how many rows count of each."""

    value: str
    by: tuple[str, ...] = ()
    person: str | None = None
    max_items_per_person: int = 1
    max_keys_per_person: int | None = None

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        person = () if self.person is None else (self.person,)
        return list(dict.fromkeys((self.value, *self.by, *person)))


@dataclass(frozen=True)
class Assigned:
    """Which group each key's rows belong to: an Arrow table of the key columns and ``group``; others have none."""

    keys: Any = field(repr=False)
    groups: int


@dataclass(frozen=True)
class Tallies:
    """Of each group, how many rows count, and the sum of a hash of their values: equal for equal rows, in any order."""

    sizes: Codes = field(repr=False)
    checksums: Codes = field(repr=False)

    @classmethod
    def of(cls, assigned: Assigned, counts: Any) -> "Tallies":
        """What was counted of each key, added up for each group."""
        group, found = assigned.keys.column("group").to_numpy(), np.zeros((2, assigned.groups), dtype=np.int64)
        for sums, name in zip(found, ("present", "checksum"), strict=True):
            np.add.at(sums, group, counts.column(name).to_numpy())
        return cls(*found)

    @classmethod
    def placed(cls, groups: int, rows: Any, group: str) -> "Tallies":
        """Of the groups that a table has: its ``rows`` and ``checksum``."""
        found, place = np.zeros((2, groups), dtype=np.int64), rows.column(group).to_numpy()
        for sums, name in zip(found, ("rows", "checksum"), strict=True):
            sums[place] = rows.column(name).to_numpy()
        return cls(*found)

    def __getitem__(self, some: Any) -> "Tallies":
        return Tallies(self.sizes[some], self.checksums[some])

    def check(self, again: "Tallies") -> None:
        """Refuse rows that are not those that were counted before."""
        if not (np.array_equal(self.sizes, again.sizes) and np.array_equal(self.checksums, again.checksums)):
            raise changed()


def changed() -> TableError:
    """The refusal of rows that are not the same ones in each statement."""
    return TableError(CHANGED)


@dataclass(frozen=True)
class Found:
    """Stretches of some groups, one for each quantile; ``groups`` has their numbers in ascending order."""

    groups: NDArray[np.int64] = field(repr=False)
    stretches: tuple[GroupStretches, ...] = field(repr=False)


class EngineTable(ABC):
    """Columns of a table that an engine holds."""

    @property
    @abstractmethod
    def value_type(self) -> Any:
        """The Arrow type of the values: public."""

    @abstractmethod
    def counts(self) -> Any:
        """An Arrow table: for each key its columns, and ``rows``, ``present`` (neither null nor NaN), ``nobodies``.

        Without key columns it has one row. ``nobodies`` are the rows whose person is null, where persons count. A
        ``checksum`` is that of the rows that are present.
        """

    @abstractmethod
    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        """The rows of each group that count; ``counts`` is what was counted of each key."""

    @abstractmethod
    def find(self, assigned: Assigned, tallies: Tallies, reaches: Sequence[Reach]) -> list[Found]:
        """For each group and quantile a stretch that has the ranks in reach; exactly, or a refusal."""

    @property
    def kind(self) -> Kind:
        """The type of the column."""
        import pyarrow as pa

        return kind_of(pa.nulls(0, self.value_type))


def kind_of(array: Any) -> Kind:
    """The type of a column; one of nulls only, which has none, is refused."""
    kind = part_of(array).kind
    if kind is None:
        raise ItemTypeError("data must be numbers, dates, timestamps or durations; the column has no type.")
    return kind


class TableSource(ABC):
    """A table in an engine, of which no column is read yet."""

    groups_nulls: bool = False  # whether it finds rows whose key has a null, where these are a group

    @abstractmethod
    def open(self, columns: Columns) -> EngineTable:
        """Some of its columns; refused where they are not there."""


def engine_of(data: Any) -> TableSource | None:
    """The table of an engine that data is; None for data that no engine holds."""
    if isinstance(data, TableSource):
        return data
    for base in type(data).__mro__:
        name = ENGINES.get(base.__module__.partition(".")[0].lstrip("_"))
        if name is not None:
            source: TableSource | None = import_module(name).source_of(data)
            return source
    return None


def checked_counts(table: EngineTable, nan_policy: NanPolicy) -> Any:
    """The counts of a table, if its rows may be used."""
    counts = table.counts()
    rows, present = (_sum(counts, name) for name in ("rows", "present"))
    if rows > present and nan_policy == "raise":
        raise ItemError(MISSING)
    if _sum(counts, "nobodies"):
        raise ItemError(NULL_PERSONS)
    return counts


def _sum(counts: Any, name: str) -> int:
    return int(np.sum(counts.column(name).to_numpy())) if counts.num_rows else 0
