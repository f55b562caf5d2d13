"""Columns of a table as Arrow batches: of pandas, polars, DuckDB, Spark, Arrow, or anything that exports Arrow."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from dpfrugal.errors import DPFrugalError, ParameterTypeError, TableError
from dpfrugal.outside_text import listed

ACCEPTED: Final = "a DataFrame of pandas or polars, a DuckDB relation, an Arrow table, or an object that exports Arrow"
UNREADABLE: Final = "data: the columns cannot be read as Arrow; each must hold values of one type."
FAILED: Final = "data: its plan fails when it is run; run it by itself to see why."


def batches(data: Any, columns: list[str]) -> Iterator[Any]:
    """Record batches with at least these columns."""
    from dpfrugal.inputs.columns import attempt

    opened = reader(data, columns)
    while (batch := attempt(lambda: next(opened, None), TableError(UNREADABLE))) is not None:
        yield batch


def reader(data: Any, columns: list[str]) -> Any:
    """A reader of at least these columns, and where that is easily said of no others."""
    import pyarrow as pa

    from dpfrugal.inputs.columns import attempt

    if hasattr(data, "collect_schema"):  # a lazy frame of polars, or a frame
        present(columns, run(data.collect_schema).names())
        data = run(data.lazy().select(columns).collect)
    elif hasattr(data, "toArrow"):  # a DataFrame of Spark
        present(columns, list(data.columns))
        quoted = ["`" + column.replace("`", "``") + "`" for column in columns]
        data = run(lambda: data.select(*quoted).toArrow())
    elif hasattr(data, "scanner"):  # a dataset of Arrow
        present(columns, data.schema.names)
        data = attempt(lambda: data.scanner(columns=columns).to_reader(), TableError(UNREADABLE))
    elif isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        opened = data
    else:
        if not (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__")):
            raise ParameterTypeError(f"data must be {ACCEPTED}, not {type(data).__name__}.")
        present(columns, list(getattr(data, "column_names", getattr(data, "columns", columns))))
        opened = attempt(lambda: _stream(_narrowed(data, columns)), TableError(UNREADABLE), (TypeError, ValueError))
    present(columns, opened.schema.names)
    return opened


def run(plan: Callable[[], Any], said: str = FAILED) -> Any:
    """What a plan gives; the messages of one that fails may quote data, so they are left behind."""
    try:
        return plan()
    except DPFrugalError:
        raise
    except Exception:  # noqa: S110 - each library has its own; what it says is not passed on
        pass
    raise TableError(said)


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


def _stream(data: Any) -> Any:
    import pyarrow as pa

    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    from pyarrow.interchange import from_dataframe

    return from_dataframe(data).to_reader()
