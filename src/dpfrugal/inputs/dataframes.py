"""Columns of a data frame as Arrow batches: pandas, polars, DuckDB, Arrow, or anything that exports Arrow."""

from collections.abc import Iterator
from typing import Any

from dpfrugal.errors import ParameterTypeError, TableError
from dpfrugal.inputs.names import listed

ACCEPTED = "a DataFrame of pandas or polars, a DuckDB relation, an Arrow table, or an object that exports Arrow"


def batches(data: Any, columns: list[str]) -> Iterator[Any]:
    """Record batches with at least these columns."""
    import pyarrow as pa

    from dpfrugal.inputs.columns import attempt

    if isinstance(data, pa.RecordBatchReader):
        reader = data
    else:
        if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__")):
            hint = "; collect() it first" if hasattr(data, "collect") else ""
            raise ParameterTypeError(f"data must be {ACCEPTED}, not {type(data).__name__}{hint}.")
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        present(columns, list(getattr(data, "column_names", getattr(data, "columns", columns))))
        reader = attempt(lambda: _reader(_narrowed(data, columns)), TableError(UNREADABLE), (TypeError, ValueError))
    present(columns, reader.schema.names)
    while (batch := attempt(lambda: next(reader, None), TableError(UNREADABLE))) is not None:
        yield batch


UNREADABLE = "data: the columns cannot be read as Arrow; each must hold values of one type."


def present(columns: list[str], names: list[Any]) -> None:
    """Refuse a column that is not there, or is there twice; names of columns are public."""
    for column in columns:
        if column not in names:
            raise TableError(f"data: there is no column {column!r}; there are {listed(names)}.")
        if names.count(column) > 1:
            raise TableError(f"data: there is more than one column {column!r}; rename all but one.")


def _narrowed(data: Any, columns: list[str]) -> Any:
    """The data without its other columns, so that those are not converted."""
    if hasattr(data, "iloc"):
        return data[columns]
    if type(data).__module__.partition(".")[0] in ("polars", "pyarrow"):
        return data.select(columns)
    if hasattr(data, "project"):
        return data.project(", ".join('"' + column.replace('"', '""') + '"' for column in columns))
    return data


def _reader(data: Any) -> Any:
    import pyarrow as pa

    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    from pyarrow.interchange import from_dataframe

    return from_dataframe(data).to_reader()
