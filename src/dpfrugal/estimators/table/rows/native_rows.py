"""Rows in the numpy type in which they were read, and codes: the two have the same order.

Rows are float64, float32, int64, int32 or uint64, without NaN. Whole columns are compared as they are; only what is
found of them becomes codes.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import INFINITY, Codes, codes_of, doubles_of

Rows = NDArray[Any]
TYPES: Final = tuple(np.dtype(name) for name in ("float64", "float32", "int64", "int32", "uint64"))
SIGN: Final = np.uint64(2**63)


def as_native(rows: Rows) -> Rows:
    """Numbers of any type as contiguous rows of one of ``TYPES``; floats wider than float64 are rounded."""
    kind, size = rows.dtype.kind, rows.dtype.itemsize
    if kind == "f":
        name = "float32" if size <= 4 else "float64"
    elif kind == "u" and size == 8:
        name = "uint64"
    else:
        name = "int32" if size < 4 or (kind == "i" and size == 4) else "int64"
    with np.errstate(over="ignore"):  # a long double beyond float64 is ±inf: above or below everything
        return np.require(rows, np.dtype(name), ["C_CONTIGUOUS", "ALIGNED"])


def codes_of_rows(rows: Rows) -> Codes:
    """The codes of rows."""
    if rows.dtype.kind == "f":
        return codes_of(rows.astype(np.float64, copy=False))
    if rows.dtype.kind == "u":
        return (rows ^ SIGN).view(np.int64)
    return rows.astype(np.int64, copy=False)


def ends_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest code that a row of a type can have."""
    if dtype.kind == "f":
        return -INFINITY, INFINITY
    if dtype.kind == "u":
        return -(2**63), 2**63 - 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def least_from(codes: Codes, dtype: np.dtype[Any]) -> Rows:
    """The least row of a type whose code is at least each of these, which lie between the type's ends."""
    rows, exact = _nearest(codes, dtype)
    if exact is None:
        return rows
    return np.where(rows < exact, np.nextafter(rows, np.inf, dtype=dtype), rows)


def most_upto(codes: Codes, dtype: np.dtype[Any]) -> Rows:
    """The largest row of a type whose code is at most each of these, which lie between the type's ends."""
    rows, exact = _nearest(codes, dtype)
    if exact is None:
        return rows
    return np.where(rows > exact, np.nextafter(rows, -np.inf, dtype=dtype), rows)


def _nearest(codes: Codes, dtype: np.dtype[Any]) -> tuple[Rows, Rows | None]:
    """The rows of these codes; or the nearest ones, and what they are near to."""
    if dtype == np.float64:
        return doubles_of(codes), None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            exact = doubles_of(codes)
            return exact.astype(dtype), exact
    if dtype.kind == "u":
        return codes.view(np.uint64) ^ SIGN, None
    return codes.astype(dtype), None
