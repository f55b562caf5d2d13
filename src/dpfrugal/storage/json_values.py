"""Values as JSON and back, exactly: floats as hexadecimal digits, integers as they are, arrays as base64.

What is read back is checked: a field that is missing, of another type or out of its range raises ``ValueError``.
"""

import base64
import dataclasses
import math
import types
import typing
from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def of_float(number: float) -> str:
    """All digits: ``0x1.8p+1`` for 3.0; ``inf``, ``-inf`` and ``nan`` as they are."""
    return float(number).hex()


def float_of(record: Any) -> float:
    """The float that ``of_float`` wrote."""
    if not isinstance(record, str) or len(record) > 40:
        raise ValueError("not a number")
    return float.fromhex(record)


def integer_of(record: Any, low: int = 0, high: int = 2**63 - 1) -> int:
    """An integer within its range."""
    if type(record) is not int or not low <= record <= high:
        raise ValueError("not an integer of its range")
    return record


def floats_of(record: Any) -> NDArray[np.float64]:
    """An array of floats."""
    return np.array([float_of(part) for part in list_of(record)], dtype=np.float64)


def fields_of(record: Any, names: Collection[str]) -> dict[str, Any]:
    """A dictionary with these names and no others."""
    if not isinstance(record, dict) or set(record) != set(names):
        raise ValueError(f"not a record of {', '.join(names)}")
    return record


def list_of(record: Any, size: int | None = None) -> list[Any]:
    """A list, of that size where one is given."""
    if not isinstance(record, list) or (size is not None and len(record) != size):
        raise ValueError("not a list of its size")
    return record


def of_item(item: int | float) -> int | str:
    """An item that waits: an integer of up to 64 bits as it is, or all digits of a float."""
    if isinstance(item, int):
        if -(2**63) <= item < 2**64:
            return item
        try:
            item = float(item)
        except OverflowError:
            item = math.inf if item > 0 else -math.inf
    return of_float(item)


def item_of(record: Any) -> int | float:
    """The item that ``of_item`` wrote."""
    return integer_of(record, -(2**63), 2**64 - 1) if type(record) is int else float_of(record)


def of_array(array: NDArray[Any]) -> str:
    """The bytes of an array: a list of its numbers would be an object each for the garbage collector."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def array_of(record: str, dtype: type[np.generic]) -> NDArray[Any]:
    """The array, in one dimension, that ``of_array`` wrote."""
    return np.frombuffer(base64.b64decode(record), dtype=dtype).copy()


def packed(value: Any) -> Any:
    """A dataclass of numbers, tuples, arrays and other dataclasses, field by field."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return of_float(float(value))
    if isinstance(value, tuple | list):
        return [packed(part) for part in value]
    if isinstance(value, np.ndarray):
        return [packed(part) for part in value.tolist()]
    return {field.name: packed(getattr(value, field.name)) for field in dataclasses.fields(value)}


def unpacked(kind: type[T], record: Any) -> T:
    """The dataclass of that kind that ``packed`` wrote; its annotations say what each field must be."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    parts = fields_of(record, names)
    return kind(**{name: _unpacked(hints[name], parts[name]) for name in names})


def _unpacked(hint: Any, record: Any) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):  # only "something or None" occurs
        (kind,) = (part for part in parts if part is not type(None))
        return None if record is None else _unpacked(kind, record)
    if origin is tuple:
        return tuple(_unpacked(part, item) for part, item in zip(parts, list_of(record, len(parts)), strict=True))
    if origin is np.ndarray:
        return floats_of(record)
    if hint is bool:
        if not isinstance(record, bool):
            raise ValueError("not a truth value")
        return record
    if hint is int:
        return integer_of(record)
    if hint is float:
        return integer_of(record) if type(record) is int else float_of(record)
    return unpacked(hint, record)
