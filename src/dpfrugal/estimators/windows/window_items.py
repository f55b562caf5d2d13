"""A batch of items as codes: numbers or times in any container, all of them or none.

Numbers are floats, unless every batch states that it holds integers (an array or a Series of an integer type): the type
of the answers is public, so it must not depend on items. Dates, timestamps, durations and Arrow's decimals are answered
in their own type. No state changes here.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError
from dpfrugal.estimators.table.base.codes import Codes, codes_of
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind
from dpfrugal.estimators.table.rows.column_parts import part_of
from dpfrugal.estimators.windows.typed_items import typed_array
from dpfrugal.estimators.windows.window_kinds import recoded
from dpfrugal.inputs.numbers import chunks
from dpfrugal.parameters import NanPolicy

MISSING: Final = 'The batch has NaN or null items; clean the data, or use nan_policy="omit".'


@dataclass(frozen=True)
class Batch:
    """The codes of a batch's items, in order, those that are missing included; ``present`` is None if none is.

    ``kind`` is None of a list that holds nothing but None: it may be one of times.
    """

    kind: Kind | None
    codes: Codes
    present: NDArray[np.bool_] | None

    def of_kind(self, kind: Kind) -> Codes:
        """The codes among answers of another kind: integers become floats where others are floats."""
        return recoded(self.codes, self.kind, kind)


def batch_of(items: Any, nan_policy: NanPolicy) -> Batch:
    """The items of whatever the caller has; a missing one is refused or marked."""
    typed = typed_array(items)
    if typed is not None:
        return _of_typed(typed, nan_policy)
    kind = INTEGERS if states_integers(items) else FLOATS
    values: list[NDArray[Any]] = []
    present: list[NDArray[np.bool_]] = []
    missing = False
    for chunk in chunks(items, unsigned=True):
        there = np.ones(chunk.values.size, dtype=np.bool_) if chunk.missing is None else ~chunk.missing
        if chunk.values.dtype.kind == "f" and np.isnan(chunk.values).any():
            there &= ~np.isnan(chunk.values)
        if not there.all():
            missing = True
            if nan_policy == "raise":
                raise ItemError(MISSING)
        present.append(there)
        values.append(chunk.values)
    if any(part.dtype.kind == "f" for part in values):
        kind = FLOATS  # of nulls that another library has made NaN
    codes = _joined([_coded(part, kind) for part in values], np.int64)
    states_none = isinstance(items, list | tuple) and all(item is None for item in items)
    return Batch(None if states_none else kind, codes, _joined(present, np.bool_) if missing else None)


def _of_typed(array: Any, nan_policy: NanPolicy) -> Batch:
    part = part_of(array)
    if part.missing and nan_policy == "raise":
        raise ItemError(MISSING)
    there = array.is_valid().to_numpy(zero_copy_only=False)
    codes = np.zeros(there.size, dtype=np.int64)
    codes[there] = part.rows
    return Batch(part.kind or FLOATS, codes, there if part.missing else None)


def _coded(values: NDArray[Any], kind: Kind) -> Codes:
    if kind is INTEGERS:
        return values.astype(np.int64)
    return codes_of(values.astype(np.float64, copy=False))


def _joined(parts: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=dtype), *parts])


def states_integers(items: Any) -> bool:
    """Whether the container's type says that all of its items are integers that int64 holds.

    Those of uint64 count as floats, as int64 does not hold them all; a type says so, never an item.
    """
    stated = getattr(items, "dtype", None)
    if isinstance(stated, np.dtype):
        return stated.kind in "iu" and stated != np.uint64
    if stated is not None and hasattr(stated, "is_integer"):  # polars
        return bool(stated.is_integer()) and str(stated) != "UInt64"
    if isinstance(kind := getattr(stated, "kind", None), str):  # pandas' types with nulls, and those of Arrow in it
        return kind in "iu" and not str(stated).lower().startswith("uint64")
    if hasattr(items, "__arrow_c_stream__") or hasattr(items, "__arrow_c_array__"):
        import pyarrow as pa

        of_arrow = getattr(items, "type", None)
        of_arrow = of_arrow.value_type if isinstance(of_arrow, pa.DictionaryType) else of_arrow
        return isinstance(of_arrow, pa.DataType) and pa.types.is_integer(of_arrow) and not pa.types.is_uint64(of_arrow)
    return False
