"""A column of whatever a caller has: the same rows whoever holds them, and no type that rows have chosen."""

import datetime
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from dpfrugal.errors import DPFrugalError, ItemError, ItemTypeError, ParameterError, ParameterTypeError, TableError
from dpfrugal.estimators.table.sources.column_sources import ColumnSource, source_of

TABLE = pa.table({"ms": pa.array([3, None, 1], pa.int16()), "key": ["a", "b", "a"]})


def values(source: ColumnSource) -> list[Any]:
    return [value for part in source.read() for value in pa.array(part).to_pylist()]


@pytest.mark.parametrize(
    ("made", "held"),
    [
        (lambda table: table, True),
        (lambda table: pa.concat_tables([table.slice(0, 1), table.slice(1)]), True),
        (lambda table: pa_dataset.dataset(table), False),
        (lambda table: pl.from_arrow(table), True),
        (lambda table: pl.from_arrow(table).lazy(), True),
        (lambda table: table.to_pandas(types_mapper=pd.ArrowDtype), True),
        (lambda table: duckdb.from_arrow(table), False),
    ],
    ids=["table", "chunks", "dataset", "polars", "lazy", "pandas", "duckdb"],
)
def test_source__of_a_table_is_one_of_its_columns(made: Callable[[Any], Any], held: bool) -> None:
    source = source_of(made(TABLE), "ms")
    assert values(source) == values(source) == [3, None, 1]
    assert source.held == held
    assert source.again or held
    with pytest.raises(DPFrugalError, match="another") as caught:
        list(source_of(made(TABLE), "another").read())
    assert "3" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [np.array([3, 1], dtype=np.int16), pd.Series([3, 1], dtype="int16"), pl.Series([3, 1], dtype=pl.Int16),
     pa.array([3, 1], pa.int16()), pa.chunked_array([[3], [1]], pa.int16())],
    ids=lambda data: type(data).__module__,
)  # fmt: skip
def test_source__a_container_with_a_type_keeps_it(data: Any) -> None:
    parts = [pa.array(part) for part in source_of(data, None).read()]
    assert {part.type for part in parts} == {pa.int16()}
    assert [value for part in parts for value in part.to_pylist()] == [3, 1]


@pytest.mark.parametrize("data", [[3, 1], (3, 1), range(3, 0, -2), np.array([3, 1], dtype=object), {3: 0, 1: 0}.keys()])
def test_source__numbers_without_a_type_are_floats(data: Any) -> None:
    parts = [np.asarray(part) for part in source_of(data, None).read()]
    assert {part.dtype for part in parts} == {np.dtype(np.float64)}
    assert np.concatenate(parts).tolist() == [3.0, 1.0]


def test_source__an_empty_list_is_one_of_floats() -> None:
    assert [np.asarray(part).dtype for part in source_of([], None).read()] == [np.float64]


def test_source__a_list_of_times_is_one_of_times_without_a_zone() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    (part,) = source_of([datetime.datetime(2026, 3, 1, tzinfo=zone), None], None).read()
    assert part.type == pa.timestamp("us")
    (days,) = source_of([datetime.date(2026, 3, 1)], None).read()
    assert days.type == pa.date32()
    with pytest.raises(ItemTypeError, match="one type"):
        list(source_of([datetime.date(2026, 3, 1), 7], None).read())


def test_source__masked_rows_are_nulls() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    assert values(source_of(masked, None)) == [1.0, None, 3.0]


def test_source__of_files_is_read_again(tmp_path: Path) -> None:
    for name, part in (("a.parquet", TABLE.slice(0, 2)), ("b.parquet", TABLE.slice(2))):
        pq.write_table(part, tmp_path / name)
    for data in (tmp_path, str(tmp_path / "*.parquet"), [tmp_path / "a.parquet", tmp_path / "b.parquet"]):
        source = source_of(data, "ms")
        assert (source.again, source.held) == (True, False)
        assert values(source) == values(source) == [3, None, 1]


@pytest.mark.parametrize(
    ("data", "column", "error"),
    [
        (np.zeros((2, 2)), None, ItemError),
        (np.array(["4111"]), None, ItemTypeError),
        (["4111"], None, ItemTypeError),
        ([Decimal("1.5"), "4111"], None, ItemTypeError),
        (iter([1.0]), None, ParameterTypeError),
        (7, None, ParameterTypeError),
        (b"4111", None, ParameterTypeError),
        ({"ms": [1.0]}, None, ParameterTypeError),
        (TABLE, None, ParameterError),
        (pl.from_arrow(TABLE), None, ParameterError),
    ],
    ids=lambda each: type(each).__name__,
)
def test_source__what_is_no_column_is_refused_without_its_data(
    data: Any, column: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        list(source_of(data, column).read())
    assert "4111" not in str(caught.value)


def test_source__header_is_for_files() -> None:
    with pytest.raises(ParameterError, match="header"):
        source_of([1.0], None, header=False)


def test_source__the_message_of_a_plan_that_fails_is_left_behind() -> None:
    plan = pl.LazyFrame({"ms": ["4111-1111"]}).select(pl.col("ms").cast(pl.Int64))
    with pytest.raises(TableError) as caught:
        list(source_of(plan, "ms").read())
    assert "4111" not in str(caught.value)
    assert caught.value.__context__ is None


def column_of(array: object) -> pa.Array:
    return next(source_of(array, None).read())


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "10D", "h", "m", "s", "10s", "ms", "us", "ns"])
def test_column_source__keeps_the_instants_of_any_unit(unit: str) -> None:
    times = np.array([-3, 0, 17], dtype=np.int64).astype(f"M8[{unit}]")
    assert column_of(times).cast(pa.timestamp("ns")).to_numpy(zero_copy_only=False).tolist() == (
        times.astype("M8[ns]").tolist()
    )


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "30m", "s", "ms", "10ms", "us", "ns"])
def test_column_source__keeps_the_lengths_of_any_unit(unit: str) -> None:
    times = np.array([-3, 0, 17], dtype=np.int64).astype(f"m8[{unit}]")
    assert column_of(times).cast(pa.duration("ns")).to_numpy(zero_copy_only=False).tolist() == (
        times.astype("m8[ns]").tolist()
    )


def test_column_source__keeps_missing_times_and_byte_order() -> None:
    times = np.array(["2026-01-01T05", "NaT"], dtype="M8[h]")
    assert column_of(times).to_pylist() == [datetime.datetime(2026, 1, 1, 5), None]
    assert column_of(times.astype(">M8[s]")).to_pylist() == [datetime.datetime(2026, 1, 1, 5), None]


@pytest.mark.parametrize("kind", ["M8[ps]", "M8", "m8[Y]", "m8[M]", "m8[fs]", "m8"])
def test_column_source__refuses_units_that_no_column_has(kind: str) -> None:
    with pytest.raises(ItemTypeError, match="nanoseconds or a longer unit"):
        source_of(np.zeros(3, dtype=np.int64).astype(kind), None)


def test_column_source__asks_for_the_column_of_a_table_without_running_it() -> None:
    table = pa.table({"ms": [1.0, 2.0]})
    frame = pl.DataFrame({"ms": [1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # polars warns where the schema of a lazy frame is resolved
        for data in (table, table.to_pandas(), frame, frame.lazy(), pa_dataset.dataset(table)):
            with pytest.raises(ParameterError, match="column must name"):
                dpf.private_quantiles(data, 0.5, dpf.PureDP(epsilon=1.0))
