"""Whatever a caller calls data, as arrays of numpy or Arrow: a column, a table with a column, files.

A list of numbers has no type, and counts as floats: rows must not choose the type of an answer. So does a column of
Python objects in a data frame.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final

import numpy as np

from dpfrugal.errors import ItemError, ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.inputs.arrow_arrays import chunked
from dpfrugal.inputs.file_sets import FileSet

# The unit of Arrow that holds a unit of numpy exactly.
ARROW_UNITS: Final = {
    "Y": "D",
    "M": "D",
    "W": "D",
    "D": "D",
    "h": "s",
    "m": "s",
    "s": "s",
    "ms": "ms",
    "us": "us",
    "ns": "ns",
}
NO_HEADER: Final = "header is for files of text; this data is none."


@dataclass(frozen=True)
class ColumnSource:
    """How arrays are read. ``held``: they are in memory whether or not they are read; ``again``: others, once more."""

    read: Callable[[], Iterator[Any]]
    again: bool
    held: bool


def source_of(data: Any, column: str | None, header: bool | None = None) -> ColumnSource:
    """The arrays of one column of whatever the caller has; nothing is read yet but names and types."""
    import pyarrow as pa

    if isinstance(data, str | PathLike | FileSet) or _are_paths(data, column):
        return _of_files(data, column, header)
    if header is not None:
        raise ParameterError(NO_HEADER)
    if column is not None:
        return _of_table(data, column)
    if isinstance(data, pa.ChunkedArray):
        return _in_memory(data.chunks or [pa.array([], data.type)])
    return _in_memory([data] if isinstance(data, pa.Array) else list(_of_python(data)))


def _in_memory(arrays: list[Any]) -> ColumnSource:
    return ColumnSource(lambda: iter(arrays), again=True, held=True)


def _are_paths(data: Any, column: str | None) -> bool:
    """Whether a list is one of files; a list of strings only if a column is named, as it may be one of rows."""
    names = PathLike if column is None else str | PathLike
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(each, names) for each in data)


def _of_files(data: Any, column: str | None, header: bool | None) -> ColumnSource:
    files = FileSet.of(data)
    return ColumnSource(lambda: files.arrays(column, header=header), again=files.again, held=False)


def _of_table(data: Any, column: str) -> ColumnSource:
    import pyarrow as pa

    from dpfrugal.inputs import dataframes

    library = type(data).__module__.partition(".")[0]
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas: the column is at hand as it is
        dataframes.present([column], list(data.columns))
        return _in_memory(list(_of_python(data[column])))
    if isinstance(data, pa.Table):
        dataframes.present([column], data.column_names)
        return _in_memory(data.column(column).chunks)

    def read() -> Iterator[Any]:
        for batch in dataframes.batches(data, [column]):
            yield batch.column(batch.schema.names.index(column))

    if library == "pyspark" or hasattr(data, "collect_schema"):  # a plan, which is run once
        return _in_memory(list(read()))
    from_files = hasattr(data, "scanner")
    in_memory = library == "pyarrow" and not from_files and not isinstance(data, pa.RecordBatchReader)
    return ColumnSource(read, from_files or library == "duckdb", in_memory)


def _of_python(data: Any) -> Iterator[Any]:

    if isinstance(data, np.ndarray) or isinstance(getattr(data, "dtype", None), np.dtype):
        array = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
        if array.ndim != 1:
            raise ItemError(f"data must be one-dimensional, or have a column=; this array has {array.ndim} dimensions.")
        if array.dtype.kind in "Mm":
            yield _of_times(array)
        elif array.dtype.kind in "iuf":
            yield _unmasked(data, array)
        elif array.dtype.kind == "O":
            yield from _of_list(array.tolist())
        else:
            raise ItemTypeError(f"data must be numbers or times; this array holds {array.dtype.type.__name__}.")
    elif any(hasattr(type(data), name) for name in ("columns", "column_names", "scanner")):
        raise ParameterError("column must name a column of the table; it was not given.")
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        yield from chunked(data).chunks
    elif isinstance(data, Iterator):
        raise ParameterTypeError(f"data must be held or read again; {type(data).__name__} can be read once: list() it.")
    elif isinstance(data, Iterable) and not isinstance(data, bytes | dict):
        yield from _of_list(list(data))
    else:
        raise ParameterTypeError(f"data must be a column of numbers or times, or a table; not {type(data).__name__}.")


def _of_times(array: Any) -> Any:
    """An array of numpy's times as one of Arrow, which has fewer units: calendar units are dates, hours are seconds."""
    import pyarrow as pa

    unit, _ = np.datetime_data(array.dtype)
    if unit not in ARROW_UNITS or (array.dtype.kind == "m" and unit in "YM"):
        raise ItemTypeError(f"data must be times in whole nanoseconds or a longer unit; the array holds {array.dtype}.")
    longer = "s" if array.dtype.kind == "m" and unit in "YMWD" else ARROW_UNITS[unit]
    return pa.array(array.astype(f"{array.dtype.kind}8[{longer}]"))


def _unmasked(data: Any, array: Any) -> Any:
    """A masked array as one of Arrow, in which masked rows are nulls."""
    mask = getattr(data, "mask", None)
    if not isinstance(mask, np.ndarray | np.bool_) or not np.any(mask):
        return array
    import pyarrow as pa

    return pa.array(np.ascontiguousarray(array), mask=np.broadcast_to(mask, array.shape))


def _of_list(items: list[Any]) -> Iterator[Any]:
    """Times, or numbers, which count as floats: a list states no type, and rows must not choose one."""
    import pyarrow as pa

    from dpfrugal.inputs.numbers import chunks

    kinds = {type(item) for item in items if item is not None}
    if any(issubclass(kind, datetime.date | datetime.timedelta) for kind in kinds):
        array = None
        if len(kinds) == 1:
            with suppress(pa.ArrowException, TypeError, ValueError):
                array = pa.array(items)
        if array is None:
            raise ItemTypeError("data must be of one type: numbers, dates, timestamps or durations.")
        # The time zone that Arrow takes from the first row is no type of the list's.
        yield array.view(pa.timestamp(array.type.unit)) if pa.types.is_timestamp(array.type) else array
        return
    yield np.zeros(0)
    for chunk in chunks(items, unsigned=True):
        values = chunk.values.astype(np.float64)
        yield values if chunk.missing is None else np.where(chunk.missing, np.nan, values)
