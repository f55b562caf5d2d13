"""Several columns of whatever holds a table, as record batches with public types first."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpfrugal.errors import ParameterTypeError, TableError
from dpfrugal.estimators.table.sources.table_batches import read_once, table_batches

TABLE = pa.table({"key": ["a", "b", "a"], "x": [1.5, 2.5, None], "other": [7, 8, 9]})
SOURCES: dict[str, Any] = {
    "arrow": lambda _: TABLE,
    "batch": lambda _: TABLE.to_batches()[0],
    "reader": lambda _: TABLE.to_reader(),
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars lazy": lambda _: pl.from_arrow(TABLE).lazy(),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "dataset": lambda _: ds.dataset(TABLE),
    "parquet": lambda folder: pq.write_table(TABLE, folder / "t.parquet") or folder / "t.parquet",
}


@pytest.mark.parametrize("source", SOURCES)
def test_table_batches__have_the_columns_and_begin_with_their_types(source: str, tmp_path: Path) -> None:
    batches = list(table_batches(SOURCES[source](tmp_path), "x", ["key"], ["key"]))
    whole = pa.Table.from_batches(batches).to_pydict()
    assert whole["key"] == ["a", "b", "a"]
    assert [None if value != value else value for value in whole["x"]] == [1.5, 2.5, None]
    assert batches[0].schema.field("x").type == pa.float64()
    if source != "parquet":
        assert batches[0].num_rows == 0


def test_table_batches__the_types_of_objects_do_not_depend_on_what_they_hold() -> None:
    frames = [pd.DataFrame({"key": ["a", "b"], "x": pd.Series(values, dtype=object)}) for values in ([1, 2], [1, 2.5])]
    kinds = {next(iter(table_batches(frame, "x", ["key"], [])))["x"].type for frame in frames}
    assert kinds == {pa.float64()}


def test_read_once__is_true_of_what_is_used_up() -> None:
    assert read_once(TABLE.to_reader())
    assert read_once(iter(TABLE.to_batches()))
    assert not read_once(TABLE)
    assert not read_once("file.csv")


@pytest.mark.parametrize("source", ["arrow", "pandas", "polars lazy", "dataset"])
def test_table_batches__refuse_a_column_that_is_not_there_by_its_name(source: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="'nope'"):
        list(table_batches(SOURCES[source](tmp_path), "nope", ["key"], []))


def test_table_batches__refuse_what_is_no_table_and_a_plan_that_fails() -> None:
    with pytest.raises(ParameterTypeError, match=r"data must be .*, not int\.$"):
        list(table_batches(5, "x", [], []))
    failing = pl.LazyFrame({"x": ["secret"], "key": ["a"]}).with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(TableError, match="its plan fails when it is run") as caught:
        list(table_batches(failing, "x", ["key"], []))
    assert "secret" not in str(caught.value)
