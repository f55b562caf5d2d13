"""Arrays of numpy or Arrow as parts of a column: native rows of a kind, and how many rows are missing.

A row that is missing (a null, NaN or NaT) is left out and counted. Messages name types, never a value.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfrugal.errors import ItemTypeError
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, LEAST, MOST, UNSIGNED, Kind, decimals_of, times_of
from dpfrugal.estimators.table.rows.native_rows import Rows, as_native


@dataclass(frozen=True)
class Part:
    """Rows that are there, their kind (None where all are nulls of no type), and how many are missing."""

    kind: Kind | None
    rows: Rows = field(repr=False)
    missing: int = field(repr=False)


def part_of(array: Any) -> Part:
    """An array of numpy or Arrow as a part of a column; without a copy where it can be had."""
    import pyarrow as pa

    if isinstance(array, np.ndarray):
        return _of_numpy(array, 0)
    kind = array.type
    if pa.types.is_dictionary(kind):
        part_of(pa.nulls(0, kind.value_type))  # what is no number is refused before it is copied
        return part_of(array.dictionary_decode())
    if pa.types.is_null(kind):
        return Part(None, np.zeros(0, dtype=np.int64), len(array))
    missing, array = array.null_count, array.drop_null() if array.null_count else array
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return _of_numpy(array.to_numpy(zero_copy_only=False), missing)
    if pa.types.is_decimal(kind):
        if kind.bit_width > 128:
            return _of_numpy(array.cast(pa.float64()).to_numpy(zero_copy_only=False), missing)
        return Part(decimals_of(kind.scale, kind), _unscaled(array.cast(pa.decimal128(38, kind.scale))), missing)
    if pa.types.is_date32(kind):
        days = array.view(pa.int32()).to_numpy(zero_copy_only=False)
        return Part(times_of("date", "D", np.datetime64, kind), days, missing)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date64(kind):
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        scalar = np.timedelta64 if pa.types.is_duration(kind) else np.datetime64
        return Part(
            times_of(str(kind), unit, scalar, kind), array.view(pa.int64()).to_numpy(zero_copy_only=False), missing
        )
    raise ItemTypeError(f"data must be numbers, dates, timestamps or durations; the column holds {kind}.")


def _of_numpy(array: Rows, missing: int) -> Part:
    rows = as_native(array)
    if rows.dtype.kind != "f":
        return Part(UNSIGNED if rows.dtype.kind == "u" else INTEGERS, rows, missing)
    if rows.size and np.isnan(rows.min()):
        present = rows[~np.isnan(rows)]
        missing, rows = missing + rows.size - present.size, present
    return Part(FLOATS, rows, missing)


def _unscaled(array: Any) -> Rows:
    """The integers of 128-bit decimals, saturated at 64 bits: such a code is ±infinity as an answer."""
    words = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = words[:, 0], words[:, 1]
    return np.where(high == low >> 63, low, np.where(high < 0, LEAST, MOST))
