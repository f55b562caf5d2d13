"""Batches of numbers of any kind, as chunks of plain numpy numbers.

``chunks`` takes lists, numpy arrays of any integer or float type, pandas and polars Series, pyarrow arrays and chunked
arrays, and any iterable of numbers, and yields one-dimensional contiguous arrays of int64, int32, float64 or float32.
It passes on arrays of that form without a copy, and converts all others ``CHUNK`` items at a time. Nothing here looks
at a value except to convert it; messages name types, never items.

Integers from 2^63 on saturate, which is exact for a walk: no estimate can come near them. For whoever compares items
with any number, ``unsigned=True`` passes them on as uint64, to 2^64 - 1, and larger ones of a list as floats.
"""

import itertools
import math
import numbers
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError

CHUNK: Final = 1 << 16
KERNEL_TYPES: Final = tuple(np.dtype(name) for name in ("int64", "int32", "float64", "float32"))
INT64: Final = np.iinfo(np.int64)
MOST_UNSIGNED: Final = 2**64 - 1


@dataclass(frozen=True)
class Chunk:
    """Consecutive items: a contiguous array of a kernel type, and a mask of the missing ones (nulls)."""

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None


def number(item: Any) -> int | float:
    """One item as a Python int or float, None as NaN; bool, str, complex and other objects are refused."""
    kind = type(item)
    if kind is float or kind is int:
        return item  # type: ignore[no-any-return]
    if isinstance(item, bool | np.bool_):
        raise ItemTypeError("An item must be a real number, not bool.")
    if isinstance(item, numbers.Integral):
        return int(item)
    if isinstance(item, numbers.Real | Decimal):
        try:
            return float(item)
        except OverflowError:
            return math.inf if cast(Any, item) > 0 else -math.inf
        except ValueError:  # Decimal's signalling NaN
            return math.nan
    if item is None or kind.__name__ == "NAType":  # a null of Python or pandas is a missing item
        return math.nan
    raise ItemTypeError(f"An item must be a real number, not {kind.__name__}.")


def chunks(items: Any, *, unsigned: bool = False) -> Iterator[Chunk]:
    """``items`` in order, as chunks for the kernels; ``unsigned``: also of uint64."""
    if isinstance(items, np.ndarray):
        yield from _of_array(items, unsigned)
    elif isinstance(items, str | bytes | bytearray | Mapping):
        raise ItemTypeError(f"items must be a batch of real numbers, not {type(items).__name__}.")
    elif isinstance(getattr(items, "dtype", None), np.dtype) and hasattr(items, "to_numpy"):  # pandas on numpy
        yield from _of_array(np.asarray(items.to_numpy()), unsigned)
    elif hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__"):
        yield from _of_arrow(items, unsigned)
    elif hasattr(items, "__array__") or isinstance(items, memoryview) or hasattr(items, "typecode"):
        yield from _of_array(np.asarray(items), unsigned)
    elif isinstance(items, Iterable):
        iterator = iter(items)
        while batch := list(itertools.islice(iterator, CHUNK)):
            yield from _of_list(batch, unsigned)
    else:
        raise ItemTypeError(
            f"items must be a batch of real numbers, not {type(items).__name__}; for one item call update."
        )


def _of_array(array: NDArray[Any], unsigned: bool) -> Iterator[Chunk]:
    if array.ndim != 1:
        raise ItemError(f"items must be one-dimensional; this array has {array.ndim} dimensions.")
    if array.dtype.kind not in "iuf":
        raise ItemTypeError(f"items must be real numbers; this array holds {array.dtype.type.__name__}.")
    missing = None
    # Whoever has a masked array has imported numpy.ma; the others are spared its import.
    if "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray):
        missing, array = np.ma.getmaskarray(array), array.data
    known = array.dtype in KERNEL_TYPES or (unsigned and array.dtype == np.uint64)
    plain = known and array.flags.c_contiguous and array.flags.aligned
    if plain and missing is None:
        if array.size:
            yield Chunk(array)
        return
    for first in range(0, array.size, CHUNK):
        part = slice(first, first + CHUNK)
        yield Chunk(
            _kernel_typed(array[part], unsigned), None if missing is None else np.ascontiguousarray(missing[part])
        )


def _kernel_typed(array: NDArray[Any], unsigned: bool) -> NDArray[Any]:
    """A native, contiguous, aligned copy in a kernel type; unless ``unsigned``, integers beyond int64 saturate."""
    if array.dtype.kind == "f":
        width: type[np.number[Any]] = np.float32 if array.dtype.itemsize <= 4 else np.float64
        with np.errstate(over="ignore"):  # a long double beyond float64 is ±inf: above or below everything
            return np.array(array, dtype=width, order="C")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        if unsigned:
            return np.array(array, dtype=np.uint64, order="C")
        array = np.minimum(array, np.uint64(INT64.max))
    narrow = array.dtype.itemsize < 4 or (array.dtype.kind == "i" and array.dtype.itemsize == 4)
    return np.array(array, dtype=np.int32 if narrow else np.int64, order="C")


def _of_list(batch: list[Any], unsigned: bool) -> Iterator[Chunk]:
    kinds = set(map(type, batch))
    if not kinds <= {int, float}:
        batch = [number(item) for item in batch]
        kinds = set(map(type, batch))
    if kinds == {float}:
        yield Chunk(np.array(batch, dtype=np.float64))
    elif kinds == {int}:
        try:
            yield Chunk(np.array(batch, dtype=np.int64))
        except OverflowError:
            if unsigned:
                for kind, run in itertools.groupby(batch, key=_width):
                    several: list[Any] = list(run)
                    if kind is float:
                        several = [_as_float(item) for item in several]
                    yield Chunk(np.array(several, dtype=kind))
                return
            yield Chunk(np.array([min(max(item, INT64.min), INT64.max) for item in batch], dtype=np.int64))
    else:  # as floats, integers beyond 2^53 would lose their exact value
        for _, run in itertools.groupby(batch, key=type):
            yield from _of_list(list(run), unsigned)


def _width(item: int) -> type:
    """The type that holds an integer: by itself, whatever integers are beside it."""
    return np.int64 if INT64.min <= item <= INT64.max else np.uint64 if 0 < item <= MOST_UNSIGNED else float


def _as_float(item: int) -> float:
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf


def _of_arrow(items: Any, unsigned: bool) -> Iterator[Chunk]:
    from dpfrugal.inputs.arrow_arrays import chunked

    if hasattr(items, "columns"):
        raise ItemError("items must be one-dimensional; choose one column of the table.")
    for part in chunked(items).chunks:
        yield from _of_arrow_part(part, unsigned)


def _of_arrow_part(part: Any, unsigned: bool) -> Iterator[Chunk]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = part.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    number_like = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (number_like or pa.types.is_null(kind)):
        raise ItemTypeError(f"items must be real numbers; this Arrow array holds {part.type}.")
    plain = (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and kind == part.type
    if plain and part.null_count == 0:
        yield from _of_array(part.to_numpy(zero_copy_only=True), unsigned)
        return
    for first in range(0, len(part), CHUNK):
        piece = part.slice(first, CHUNK)
        missing = pc.is_null(piece).to_numpy(zero_copy_only=False)
        if pa.types.is_null(kind):
            values = np.zeros(len(piece), dtype=np.int64)
        else:
            target = pa.float64() if pa.types.is_decimal(kind) else kind
            filled = pc.fill_null(piece.cast(target), pa.scalar(0).cast(target))
            values = filled.to_numpy(zero_copy_only=False)
        yield Chunk(_kernel_typed(values, unsigned), missing if missing.any() else None)
