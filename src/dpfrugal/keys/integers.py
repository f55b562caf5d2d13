"""Keys as integers of 64 bits: integers themselves, truth values, dates, timestamps; and back again.

A number that the table's integers cannot hold is none of its keys: such rows are marked, never wrapped or rounded. An
instant is the same in every unit it can be written in.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.keys.arrays import NANOSECONDS, Kind

INT64 = np.iinfo(np.int64)
Outside = NDArray[np.bool_] | None


def home_type(kind: Kind, arrow_type: Any, *, unsigned: bool = False) -> Any:
    """The Arrow type whose 64 bits the table holds."""
    import pyarrow as pa

    if kind == "integers":
        return pa.uint64() if unsigned else pa.int64()
    if kind == "truth values":
        return pa.bool_()
    return pa.date32() if kind == "dates" else arrow_type


def integers_of(array: Any, home: Any) -> tuple[NDArray[Any], Outside]:
    """An Arrow array without nulls as int32 or int64, and which rows the table cannot hold."""
    import pyarrow as pa

    t = pa.types
    if t.is_boolean(home):
        return array.cast(pa.uint8()).to_numpy().astype(np.int32), None
    if t.is_date(home):
        return array.cast(home).view(pa.int32()).to_numpy(), None
    if t.is_timestamp(home):
        return _instants(array.view(pa.int64()).to_numpy(), NANOSECONDS[array.type.unit], NANOSECONDS[home.unit])
    values = array.to_numpy()
    kind, width = values.dtype.kind, values.dtype.itemsize
    if t.is_uint64(home):
        if kind == "i":
            below = values < 0
            return values.astype(np.int64), below if below.any() else None
        return values.astype(np.uint64, copy=False).view(np.int64), None
    if kind == "u" and width == 8:
        beyond = values > np.uint64(INT64.max)
        return values.view(np.int64), beyond if beyond.any() else None
    if width == 8 or (kind == "i" and width == 4):
        return values, None
    return values.astype(np.int64 if width == 4 else np.int32), None


def _instants(values: NDArray[np.int64], unit: int, home_unit: int) -> tuple[NDArray[np.int64], Outside]:
    if unit == home_unit:
        return values, None
    if unit > home_unit:
        factor = unit // home_unit
        beyond = (values > INT64.max // factor) | (values < -(INT64.max // factor))
        return np.where(beyond, 0, values) * factor, beyond if beyond.any() else None
    factor = home_unit // unit
    between = values % factor != 0
    return values // factor, between if between.any() else None


def arrow_of(values: NDArray[np.int64], home: Any) -> Any:
    """The integers of a table as what they stand for."""
    import pyarrow as pa

    t = pa.types
    if t.is_boolean(home):
        return pa.array(values.astype(np.bool_))
    if t.is_date(home):
        return pa.array(values.astype(np.int32)).view(home)
    if t.is_uint64(home):
        return pa.array(values.view(np.uint64))
    return pa.array(values).view(home)
