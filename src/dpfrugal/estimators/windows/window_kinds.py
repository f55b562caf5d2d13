"""The type of a window's answers: how two types meet, and how one is stored."""

from typing import Final

import numpy as np

from dpfrugal.errors import ItemTypeError
from dpfrugal.estimators.table.base.codes import Codes, codes_of
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind
from dpfrugal.estimators.table.rows.column_parts import part_of

NUMBERS: Final = {kind.name: kind for kind in (FLOATS, INTEGERS)}


def recoded(codes: Codes, before: Kind | None, after: Kind) -> Codes:
    """The codes of integers as those of floats; others as they are."""
    return codes_of(codes.astype(np.float64)) if before is INTEGERS and after is FLOATS else codes


def common(kind: Kind | None, other: Kind | None) -> Kind | None:
    """The type of answers where both came; integers and floats together are floats."""
    if kind is None or other is None:
        return kind or other
    if kind.name == other.name:
        return kind
    if {kind.name, other.name} <= NUMBERS.keys():
        return FLOATS
    raise ItemTypeError(f"items must be of one type; there are {kind.name} and {other.name}.")


def record_of_kind(kind: Kind | None) -> str | None:
    """A type, as a checkpoint records it: its name, or Arrow's record of it."""
    if kind is None or kind.name in NUMBERS:
        return None if kind is None else kind.name
    import pyarrow as pa

    return str(pa.schema([(kind.name, kind.arrow_type)]).serialize().to_pybytes().hex())


def recorded_kind(record: str | None) -> Kind | None:
    """The type that a checkpoint records."""
    if record is None or record in NUMBERS:
        return None if record is None else NUMBERS[record]
    import pyarrow as pa

    try:
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(record)))
    except (pa.ArrowException, OSError):
        raise ValueError("not a type of answers") from None
    return part_of(pa.array([], schema.field(0).type)).kind
