"""Items that are answered in a type of their own: dates, timestamps, durations, and Arrow's decimals."""

import datetime
from typing import Any, Final

import numpy as np

from dpfrugal.errors import ItemTypeError
from dpfrugal.inputs.arrow_arrays import chunked

ONE_TYPE: Final = "items must be of one type: numbers, dates, timestamps or durations."
Time = datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64
TIMES: Final = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)


def typed_array(items: Any) -> Any:
    """An Arrow array of these items where their container, or a list's first one, is of such a type; else None."""
    stated = getattr(items, "dtype", None)
    if isinstance(stated, np.dtype):
        array = np.asarray(items) if stated.kind in "Mm" else None
        return None if array is None or array.ndim != 1 else _array_of(array)
    if isinstance(items, list | tuple):
        first = next((item for item in items if item is not None), None)
        return _array_of_list(list(items), first) if isinstance(first, TIMES) else None
    if not (hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__")) or hasattr(items, "columns"):
        return None
    import pyarrow as pa

    if isinstance(items, pa.RecordBatch):
        return None
    array = chunked(items).combine_chunks()
    if pa.types.is_dictionary(array.type) and _is_typed(array.type.value_type):
        return array.dictionary_decode()
    return array if _is_typed(array.type) else None


def _is_typed(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return bool(kind.bit_width <= 128)
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind))


def _array_of_list(items: list[Any], first: Any) -> Any:
    """Microseconds, as Python has them, whatever the items are: rows must not choose the type of an answer."""
    import pyarrow as pa

    is_duration = isinstance(first, datetime.timedelta | np.timedelta64)
    is_date = not is_duration and not isinstance(first, datetime.datetime | np.datetime64)
    own: tuple[type, ...] = (datetime.timedelta, np.timedelta64)
    if not is_duration:
        own = (datetime.date,) if is_date else (datetime.datetime, np.datetime64)
    known = [_of_python(item) for item in items if item is None or isinstance(item, own)]
    if len(known) < len(items) or (is_date and any(isinstance(item, datetime.datetime) for item in known)):
        raise ItemTypeError(ONE_TYPE)
    return _array_of(known, pa.duration("us") if is_duration else pa.date32() if is_date else pa.timestamp("us"))


def _of_python(item: Any) -> Any:
    """A time of numpy or pandas as one of Python, to the microsecond; None for NaT."""
    if item is None or item != item:
        return None
    if isinstance(item, np.datetime64):
        return item.astype("datetime64[us]").item()
    if isinstance(item, np.timedelta64):
        return item.astype("timedelta64[us]").item()
    if hasattr(item, "to_pydatetime"):
        return item.to_pydatetime(warn=False)
    return item.to_pytimedelta() if hasattr(item, "to_pytimedelta") else item


def _array_of(items: Any, kind: Any = None) -> Any:
    """As Arrow has them; its own messages quote items, so they are left behind."""
    import pyarrow as pa

    try:
        return pa.array(items, kind, safe=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise ItemTypeError(ONE_TYPE)
