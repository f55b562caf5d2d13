"""Columns: read again where they do not fit the memory, and refused in words that show no row."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.base import kinds
from dpfrugal.estimators.table.rows import columns, selected_rows
from dpfrugal.estimators.table.rows.columns import Column, read_column

RNG = np.random.default_rng(4)
ROWS = 20_000
VALUES = RNG.normal(100, 30, ROWS).round(3)
TABLE = pa.table({"ms": VALUES, "name": ["x"] * ROWS})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples and limits so small that these tables are selected from."""
    monkeypatch.setattr(columns, "SORTED", 100)
    monkeypatch.setattr(columns, "SAMPLE", 500)
    monkeypatch.setattr(selected_rows, "SAMPLE", 500)


def written_ndjson(path: Path) -> None:
    path.write_text("".join(f'{{"ms": {value}}}\n' for value in VALUES.tolist()))


def written_arrow(path: Path) -> None:
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=3000)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.parquet": lambda path: pq.write_table(TABLE, path, row_group_size=3000),
    "a.csv": lambda path: pa.csv.write_csv(TABLE, path),
    "a.jsonl": written_ndjson,
    "a.arrow": written_arrow,
}


def same(column: Column) -> None:
    window = column.ordered().window(9_000, 9_100, None, None)
    expected = read_column(VALUES, None, "raise").ordered().window(9_000, 9_100, None, None)
    assert window.codes.tolist() == expected.codes.tolist()
    assert window.upto.tolist() == expected.upto.tolist()


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("memory", [None, 10**9, 40_000, 1])
def test_read_column__of_a_file_is_held_or_read_again(name: str, memory: int | None, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    column = read_column(tmp_path / name, "ms", "raise", memory)
    assert (column.rows, column.present) == (ROWS, ROWS)
    assert (column.sample is None) == (memory is None or memory >= ROWS * 8)
    assert column.sample is None or column.sample.size == 500
    same(column)
    same(column)


@pytest.mark.parametrize("name", WRITERS)
def test_read_column__of_a_file_that_changes_is_refused(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    column = read_column(tmp_path / name, "ms", "raise", 1000)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b"\n")
    with pytest.raises(dpf.TableError, match="changed while it was read"):
        same(column)


def test_read_column__data_that_come_once_are_held_or_refused(tmp_path: Path) -> None:
    same(read_column(TABLE.to_reader(), "ms", "raise", 10**6))
    with pytest.raises(dpf.TableError, match="more than memory=1,000 bytes and can be read only once"):
        read_column(TABLE.to_reader(), "ms", "raise", 1000)
    with pytest.raises(dpf.ParameterError, match="memory"):
        read_column(TABLE, "ms", "raise", 0)


def test_read_column__what_is_in_memory_is_not_limited(tmp_path: Path) -> None:
    for data in (TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy(), TABLE.to_batches()[0]):
        column = read_column(data, "ms", "raise", 1)
        assert column.sample is None
        same(column)
    array = VALUES.copy()
    assert next(read_column(array, None, "raise").arrays()) is array, "no copy is made"
    assert np.shares_memory(next(read_column(TABLE, "ms", "raise").arrays()), TABLE["ms"].chunk(0).to_numpy())


@pytest.mark.parametrize("memory", [None, 1000])
def test_read_column__of_datasets_relations_and_lists_of_files(memory: int | None, tmp_path: Path) -> None:
    import duckdb

    half = ROWS // 2
    for name, part in (("a.parquet", TABLE[:half]), ("b.parquet", TABLE[half:])):
        pq.write_table(part, tmp_path / name)
    names = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    sources: list[Any] = [ds.dataset(tmp_path), names, [str(name) for name in names], str(tmp_path / "*.parquet")]
    for data in sources:
        same(read_column(data, "ms", "raise", memory))
    with duckdb.connect() as connection:
        column = read_column(connection.read_parquet(str(tmp_path / "*.parquet")), "ms", "raise", memory)
        assert (column.sample is None) == (memory is None)
        same(column)


@pytest.mark.spark
def test_read_column__of_spark(spark: Any) -> None:
    column = read_column(spark.range(1000).withColumnRenamed("id", "a`b"), "a`b", "raise")
    assert column.kind is kinds.INTEGERS
    assert np.sort(column.codes).tolist() == list(range(1000))
    with pytest.raises(dpf.TableError, match="there are 'id'"):
        read_column(spark.range(10), "ms", "raise")


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1, None, 3], pa.int8()), "integer"),
        (pa.array([1, None, 3], pa.uint32()), "integer"),
        (pa.array([2**64 - 1, None, 0], pa.uint64()), "uint64"),
        (pa.array([1, None, 3], pa.float32()), "float"),
        (pa.array([1, None, 3], pa.float16()), "float"),
        (pa.array([1, None, 3], pa.decimal128(9, 2)), "decimal with 2 places"),
        (pa.array([1, None, 3], pa.decimal256(50, 2)), "float"),
        (pa.array([1, None, 3], pa.date32()), "date"),
        (pa.array([0, None, 86_400_000], pa.date64()), "date64[ms]"),
        (pa.array([1, None, 3], pa.timestamp("ns", "Asia/Tokyo")), "timestamp[ns, tz=Asia/Tokyo]"),
        (pa.array([1, None, 3], pa.duration("s")), "duration[s]"),
        (pa.array([1, None, 3]).dictionary_encode(), "integer"),
        (pa.nulls(3), "integer"),
        (pa.chunked_array([pa.array([], pa.int64())], pa.int64()), "integer"),
    ],
)
def test_read_column__every_type_has_its_kind_and_its_missing_rows(array: Any, kind: str) -> None:
    column = read_column(array, None, "omit")
    assert column.kind.name == kind
    assert column.rows == len(array)
    assert column.present == len(array) - array.null_count == column.codes.size
    for code in column.codes.tolist():
        assert column.kind.code(column.kind.answer(code)) == code
    if array.null_count:
        with pytest.raises(dpf.ItemError, match="NaN or null"):
            read_column(array, None, "raise")


def test_read_column__float32_rows_are_the_doubles_that_they_are() -> None:
    rows = np.array([0.1, np.nan, -0.0, np.inf], dtype=np.float32)
    column = read_column(rows, None, "omit")
    assert [column.kind.answer(code) for code in np.sort(column.codes).tolist()] == [
        0.0,
        float(np.float32(0.1)),
        np.inf,
    ]
    assert (column.rows, column.present) == (4, 3)


def test_read_column__dates_in_files_are_dates(tmp_path: Path) -> None:
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(300)]
    pq.write_table(pa.table({"day": days}), tmp_path / "a.parquet")
    column = read_column(tmp_path / "a.parquet", "day", "raise")
    assert column.kind.answer(int(column.codes[0])) == np.datetime64("2024-01-01")


def test_read_column__rows_choose_no_type() -> None:
    tokyo = datetime.timezone(datetime.timedelta(hours=9))
    names = {
        read_column([datetime.datetime(2024, 1, 1, tzinfo=zone)], None, "raise").kind.name
        for zone in (None, tokyo, datetime.UTC)
    }
    assert names == {"timestamp[us]"}
    for objects in ([1, 2], [1.5, 2], [None, 3]):
        frame = pd.DataFrame({"x": pd.Series(objects, dtype=object)})
        assert read_column(frame, "x", "omit").kind is kinds.FLOATS


def test_read_column__masked_rows_are_missing() -> None:
    column = read_column(np.ma.array([1, 2, 3], mask=[False, True, False]), None, "omit")
    assert (column.rows, column.codes.tolist()) == (3, [1, 3])


def test_read_column__a_lazy_plan_that_fails_is_refused_without_its_words() -> None:
    frame = pl.LazyFrame({"a": ["secret"]}).with_columns(pl.col("a").cast(pl.Int64))
    with pytest.raises(dpf.TableError, match="its plan fails") as refusal:
        read_column(frame, "a", "raise")
    assert refusal.value.__context__ is None
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "column", "sentence"),
    [
        (TABLE, "name", "the column holds string"),
        (TABLE, "nope", "there is no column 'nope'; there are 'ms', 'name'."),
        (TABLE.to_pandas(), "nope", "there are 'ms', 'name'."),
        (ds.dataset(TABLE), "nope", "there are 'ms', 'name'."),
        (pa.table({"x": [[1.0]]}), "x", "the column holds list"),
        (pa.table({"x": [True]}), "x", "the column holds bool"),
        (pd.DataFrame({"x": [True]}), "x", "this array holds bool"),
        (pd.DataFrame({"x": ["secret"]}), "x", "str"),
        (["secret"], None, "not str"),
        ([Path("nowhere.csv")], "x", "nowhere.csv: there is no such file"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "x", "more than one column 'x'"),
    ],
)
def test_read_column__refuses_in_one_sentence(data: Any, column: str | None, sentence: str) -> None:
    with pytest.raises(dpf.DPFrugalError, match=sentence) as refusal:
        read_column(data, column, "raise")
    assert "secret" not in str(refusal.value)


def test_read_column__a_header_is_for_files_of_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ms\n1\n2\n")
    assert read_column(tmp_path / "a.csv", None, "raise", header=True).rows == 2
    with pytest.raises(dpf.ParameterError, match="header is for files"):
        read_column(TABLE, "ms", "raise", header=True)
