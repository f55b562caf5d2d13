"""Which columns hold numbers or times: by their types, without looking at a row."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from dpfrugal.errors import ParameterError, ParameterTypeError, TableError
from dpfrugal.estimators.table.sources.table_schemas import many_times, numeric_columns
from dpfrugal.inputs.file_sets import FileSet

DAY = datetime.datetime(2026, 1, 2)
TABLE = pa.table(
    {
        "name": ["n"],
        "whole": pa.array([1], pa.int8()),
        "real": [0.5],
        "yes": [True],
        "price": [Decimal("1.5")],
        "day": pa.array([DAY], pa.date32()),
        "when": [DAY],
        "took": [datetime.timedelta(seconds=1)],
    }
)
NUMERIC = ["whole", "real", "price", "day", "when", "took"]


def parquet(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "t.parquet")
    return FileSet.of(folder / "t.parquet")


def arrow_file(folder: Path) -> Any:
    feather.write_feather(TABLE, folder / "t.arrow", compression="uncompressed")
    return FileSet.of(folder / "t.arrow")


def arrow_stream(folder: Path) -> Any:
    with pa.ipc.new_stream(folder / "s.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    return FileSet.of(folder / "s.arrow")


SOURCES: dict[str, Any] = {
    "arrow": lambda _: TABLE,
    "batch": lambda _: TABLE.to_batches()[0],
    "pandas on arrow": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars lazy": lambda _: pl.from_arrow(TABLE).lazy(),
    "dataset": lambda _: ds.dataset(TABLE),
    "parquet": parquet,
    "arrow file": arrow_file,
    "arrow stream": arrow_stream,
}


@pytest.mark.parametrize("source", SOURCES)
def test_numeric_columns__are_found_by_their_types(source: str, tmp_path: Path) -> None:
    assert numeric_columns(SOURCES[source](tmp_path)) == NUMERIC


def test_numeric_columns__of_a_duckdb_relation() -> None:
    assert numeric_columns(duckdb.sql("SELECT 1 AS a, 'x' AS b, 2.5 AS c")) == ["a", "c"]


def test_numeric_columns__objects_state_no_type() -> None:
    frame = pd.DataFrame({"object": pd.Series([1, 2], dtype=object), "whole": [1, 2]})
    assert numeric_columns(frame) == ["whole"]


def test_numeric_columns__refuse_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    with pytest.raises(ParameterError, match=r"a text file such as t\.jsonl does not say which hold numbers"):
        numeric_columns(FileSet.of(tmp_path / "t.jsonl"))
    with pytest.raises(TableError, match="no column holds numbers or times"):
        numeric_columns(pa.table({"name": ["n"]}))
    with pytest.raises(ParameterTypeError, match=r"data must be a file or .*, not int\.$"):
        numeric_columns(5)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 secret")
    with pytest.raises(TableError) as caught:
        numeric_columns(FileSet.of(tmp_path / "bad.parquet"))
    assert "secret" not in str(caught.value)


def test_many_times__holds_what_could_be_read_once() -> None:
    assert many_times(TABLE.to_reader()).num_rows == 1
    assert many_times(TABLE) is TABLE
    assert isinstance(many_times(__file__), FileSet)
