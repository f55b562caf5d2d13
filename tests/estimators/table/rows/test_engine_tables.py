"""What engines have in common: how one is found, which rows are refused, and what is left of their messages."""

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS
from dpfrugal.estimators.table.rows.engine_tables import (
    MISSING,
    NULL_PERSONS,
    Assigned,
    Columns,
    EngineTable,
    Found,
    TableSource,
    Tallies,
    checked_counts,
    engine_of,
    kind_of,
)
from dpfrugal.estimators.table.rows.order_statistics import Reach


class Counted(EngineTable):
    """A table of which only the counts are known."""

    value_type = pa.float64()

    def __init__(self, rows: list[int], present: list[int], nobodies: list[int]) -> None:
        self._counts = pa.table({"rows": rows, "present": present, "nobodies": nobodies})

    def counts(self) -> Any:
        return self._counts

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        raise NotImplementedError

    def find(self, assigned: Assigned, tallies: Tallies, reaches: Sequence[Reach]) -> list[Found]:
        raise NotImplementedError


def test_checked_counts__missing_rows_are_refused_unless_they_are_omitted() -> None:
    whole, missing = Counted([3, 4], [3, 4], [0, 0]), Counted([3, 4], [3, 3], [0, 0])
    assert checked_counts(whole, "raise").num_rows == checked_counts(missing, "omit").num_rows == 2
    with pytest.raises(ItemError, match=MISSING):
        checked_counts(missing, "raise")
    with pytest.raises(ItemError, match=NULL_PERSONS):
        checked_counts(Counted([3], [3], [1]), "omit")
    assert checked_counts(Counted([], [], []), "raise").num_rows == 0


def test_engine_of__is_found_by_the_library_of_a_table() -> None:
    frame = pl.DataFrame({"ms": [1.0]})
    for table in (frame, frame.lazy(), duckdb.sql("SELECT 1.0 AS ms")):
        source = engine_of(table)
        assert isinstance(source, TableSource)
        assert engine_of(source) is source
    for other in ([1.0], pa.table({"ms": [1.0]}), None, "data.csv"):
        assert engine_of(other) is None


def test_kind__of_a_column_is_public_and_one_of_nulls_has_none() -> None:
    assert kind_of(pa.nulls(0, pa.float32())) is FLOATS
    assert kind_of(pa.nulls(0, pa.int8())) is INTEGERS
    assert Counted([1], [1], [0]).kind is FLOATS
    with pytest.raises(ItemTypeError, match="has no type"):
        kind_of(pa.nulls(3))


def test_columns__are_named_once() -> None:
    assert Columns("ms", ("city", "ms"), "city").names == ["ms", "city"]
