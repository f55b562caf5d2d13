"""The types of a window's answers: how two of them meet, and that a stored one comes back."""

import numpy as np
import pyarrow as pa
import pytest

from dpfrugal.errors import ItemTypeError
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind
from dpfrugal.estimators.table.rows.column_parts import part_of
from dpfrugal.estimators.windows.window_kinds import common, recoded, record_of_kind, recorded_kind

TYPES = [
    pa.timestamp("us"), pa.timestamp("ns", tz="Europe/Rome"), pa.duration("s"), pa.date32(), pa.date64(),
    pa.decimal128(9, 2),
]  # fmt: skip


def kind_of(arrow: pa.DataType) -> Kind:
    kind = part_of(pa.array([], arrow)).kind
    assert kind is not None
    return kind


def test_common__of_integers_and_floats_is_floats() -> None:
    assert common(None, None) is None
    assert common(INTEGERS, None) is common(None, INTEGERS) is common(INTEGERS, INTEGERS) is INTEGERS
    assert common(INTEGERS, FLOATS) is common(FLOATS, INTEGERS) is FLOATS
    codes = np.array([3, -4])
    assert recoded(codes, INTEGERS, INTEGERS) is codes
    assert recoded(codes, FLOATS, FLOATS) is codes


@pytest.mark.parametrize("arrow", TYPES, ids=str)
def test_common__of_times_and_another_type_is_refused(arrow: pa.DataType) -> None:
    kind = kind_of(arrow)
    assert common(kind, None) is common(None, kind) is common(kind, kind_of(arrow)) is kind
    for other in (FLOATS, INTEGERS, kind_of(pa.timestamp("ms")), kind_of(pa.decimal128(9, 3))):
        with pytest.raises(ItemTypeError, match="one type"):
            common(kind, other)


def test_record_of_kind__is_read_as_the_same_type() -> None:
    for kind in (None, FLOATS, INTEGERS, *map(kind_of, TYPES)):
        again = recorded_kind(record_of_kind(kind))
        assert again == kind
        assert again is None or kind is None or again.arrow_type == kind.arrow_type
    for broken in ("flaot", "00", "ff" * 40):
        with pytest.raises((ValueError, LookupError)):
            recorded_kind(broken)
