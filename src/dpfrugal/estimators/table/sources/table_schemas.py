"""Which columns of a table hold numbers or times, by their types: types are public, and no row is looked at.

A CSV file states no types; all its columns may hold numbers.
"""

from os import PathLike
from typing import Any

from dpfrugal.errors import ParameterError, ParameterTypeError, TableError
from dpfrugal.inputs import dataframes
from dpfrugal.inputs.columns import attempt, damaged
from dpfrugal.inputs.csv_and_json import header_of
from dpfrugal.inputs.file_sets import FileSet
from dpfrugal.inputs.files import Format, format_of


def numeric_columns(data: Any) -> list[str]:
    """The names of the columns of numbers, dates, timestamps and durations, in their order."""
    import pyarrow as pa

    types = pa.types
    schema = _file_schema(data) if isinstance(data, FileSet) else _schema(data)
    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_date, types.is_timestamp)
    found = [field.name for field in schema if any(check(field.type) for check in (*checks, types.is_duration))]
    if not found:
        raise TableError("data: no column holds numbers or times.")
    return found


def with_names(data: Any) -> Any:
    """CSV files with a header, whose cells that are no numbers are missing ones; refused where it may be data."""
    if data.header is False:
        raise TableError(f"{data.sources[0].path}: a file without a header has no columns to describe.")
    header_of(data.sources[0], stated=data.header is True)
    return data.of_any_text()


def has_no_types(data: Any) -> bool:
    """Whether these are CSV files, whose cells are text."""
    return isinstance(data, FileSet) and _format_of(data) == "csv"


def many_times(data: Any) -> Any:
    """The same table as something that each column can be read from: files, frames and readers that are held."""
    import pyarrow as pa

    if isinstance(data, str | PathLike) or (isinstance(data, list | tuple) and data):
        return FileSet.of(data)
    return data.read_all() if isinstance(data, pa.RecordBatchReader) else data


def _schema(data: Any) -> Any:
    import pyarrow as pa

    if isinstance(data, pa.Table | pa.RecordBatch) or hasattr(data, "scanner"):
        return data.schema
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas; a column of objects states no type
        return pa.Schema.from_pandas(data.head(0), preserve_index=False)
    empty = data
    for name in ("head", "limit"):  # polars; DuckDB and Spark
        if hasattr(data, "collect_schema") == (name == "head") and hasattr(data, name):
            empty = getattr(data, name)(0)
    empty = empty.collect() if hasattr(data, "collect_schema") and hasattr(empty, "collect") else empty
    empty = empty.toArrow() if hasattr(empty, "toArrow") else empty
    if hasattr(empty, "__arrow_c_stream__"):
        return attempt(lambda: pa.RecordBatchReader.from_stream(empty).schema, TableError(dataframes.UNREADABLE))
    raise ParameterTypeError(f"data must be a file or {dataframes.ACCEPTED}, not {type(data).__name__}.")


def _format_of(files: FileSet) -> Format:
    source = files.sources[0]
    failure = TableError(f"{source.path}: the file cannot be read.")
    return files.file_format or format_of(source, attempt(source.head, failure))


def _file_schema(files: FileSet) -> Any:
    """That of the first file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, kind = files.sources[0], _format_of(files)
    if kind == "csv":
        return pa.schema([(name, pa.float64()) for name in header_of(source)])
    if kind == "parquet":
        return attempt(lambda: pq.read_schema(source.opened()), damaged(source.path, "Parquet"))
    if kind == "arrow":

        def opened() -> Any:
            file = source.opened()
            try:
                return pa.ipc.open_file(file).schema
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).schema

        return attempt(opened, damaged(source.path, "Arrow IPC"))
    raise ParameterError(
        f"columns must name those to describe: a text file such as {source.path.name} does not say which hold numbers."
    )
