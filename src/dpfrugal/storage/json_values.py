"""Values as JSON and back, exactly: floats as hexadecimal digits, integers as they are, guarantees by their name.

What is read back is checked: a field that is missing, of another type or out of its range raises ``ValueError``.
"""

import dataclasses
import types
import typing
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.person_moves import Exposure, Move
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

GUARANTEES = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
T = TypeVar("T")


def of_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee by its name: ``{"PureDP": {"epsilon": 1.0}}``."""
    return {type(guarantee).__name__: asdict(guarantee)}


def guarantee_of(record: Any) -> Guarantee:
    """The guarantee that ``of_guarantee`` wrote."""
    if not isinstance(record, dict) or len(record) != 1:
        raise ValueError("a guarantee has one name")
    ((name, parameters),) = record.items()
    kind = GUARANTEES.get(name)
    if kind is None or not isinstance(parameters, dict):
        raise ValueError("no such guarantee")
    if set(parameters) != {field.name for field in dataclasses.fields(kind)}:
        raise ValueError("a guarantee has other parameters")
    return kind(**parameters)


def of_exposure(exposure: Exposure | None) -> Any:
    """An exposure, field by field."""
    return None if exposure is None else packed(exposure)


def exposure_of(record: Any) -> Exposure | None:
    """The exposure that ``of_exposure`` wrote; what could not be one is refused by its own checks."""
    if record is None:
        return None
    if not isinstance(record, dict) or set(record) != {"noise", "budget", "moves"}:
        raise ValueError("not an exposure")
    moves = tuple(unpacked(Move, move) for move in list_of(record["moves"]))
    return Exposure(record["noise"], integer_of(record["budget"]), moves)


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


def list_of(record: Any, size: int | None = None) -> list[Any]:
    """A list, of that size where one is given."""
    if not isinstance(record, list) or (size is not None and len(record) != size):
        raise ValueError("not a list of its size")
    return record


def of_item(item: int | float) -> int | str:
    """An item that waits: an integer as it is, up to the grid's last, or all digits of a float."""
    return min(max(item, -(2**63)), 2**63 - 1) if isinstance(item, int) else of_float(item)


def item_of(record: Any) -> int | float:
    """The item that ``of_item`` wrote."""
    return integer_of(record, -(2**63)) if type(record) is int else float_of(record)


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
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if not isinstance(record, dict) or set(record) != names:
        raise ValueError(f"not the fields of {kind.__name__}")
    return kind(**{name: _unpacked(hints[name], record[name]) for name in names})


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
