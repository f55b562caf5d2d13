"""Keys as integers of 64 bits and back: what the table's integers cannot hold is marked, never wrapped or rounded."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.keys.integers import arrow_of, home_type, integers_of

INT64 = np.iinfo(np.int64)
HOMES = {
    "integers": (pa.array([5, -3, 2**62]), pa.int64()),
    "unsigned": (pa.array([5, 2**63, 2**64 - 1], pa.uint64()), pa.uint64()),
    "truth values": (pa.array([True, False, True]), pa.bool_()),
    "dates": (pa.array([datetime.date(1969, 12, 31), datetime.date(2030, 1, 1)]), pa.date32()),
    "timestamps": (pa.array([datetime.datetime(1960, 1, 1), datetime.datetime(2024, 2, 29)]), pa.timestamp("us")),
    "time zones": (pa.array([10**9, -5], pa.timestamp("ms", "UTC")), pa.timestamp("ms", "UTC")),
}


@pytest.mark.parametrize("kind", HOMES)
def test_arrow_of__gives_back_what_integers_of_made(kind: str) -> None:
    array, home = HOMES[kind]
    values, outside = integers_of(array, home)
    assert outside is None
    assert arrow_of(values.astype(np.int64), home).equals(array)


@pytest.mark.parametrize(
    ("kind", "arrow_type", "unsigned", "home"),
    [
        ("integers", pa.int8(), False, pa.int64()),
        ("integers", pa.uint64(), True, pa.uint64()),
        ("truth values", pa.bool_(), False, pa.bool_()),
        ("dates", pa.date64(), False, pa.date32()),
        ("timestamps", pa.timestamp("ns"), False, pa.timestamp("ns")),
    ],
)
def test_home_type__is_the_type_whose_bits_are_held(kind: Any, arrow_type: Any, unsigned: bool, home: Any) -> None:
    assert home_type(kind, arrow_type, unsigned=unsigned) == home


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_integers_of__marks_unsigned_numbers_beyond_int64(numbers: list[int]) -> None:
    values, outside = integers_of(pa.array(numbers, pa.uint64()), pa.int64())
    marked = [False] * len(numbers) if outside is None else outside.tolist()
    assert marked == [number > INT64.max for number in numbers]
    for number, value, beyond in zip(numbers, values.tolist(), marked, strict=True):
        assert beyond or value == number


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_of__marks_negative_numbers_where_keys_are_unsigned(numbers: list[int]) -> None:
    values, outside = integers_of(pa.array(numbers, pa.int64()), pa.uint64())
    marked = [False] * len(numbers) if outside is None else outside.tolist()
    assert marked == [number < 0 for number in numbers]
    for number, value, below in zip(numbers, values.tolist(), marked, strict=True):
        assert below or value == number


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@given(
    unit=st.sampled_from(sorted(UNITS)),
    home=st.sampled_from(sorted(UNITS)),
    numbers=st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1),
)
def test_integers_of__holds_an_instant_only_where_the_unit_can(unit: str, home: str, numbers: list[int]) -> None:
    values, outside = integers_of(pa.array(numbers, pa.timestamp(unit)), pa.timestamp(home))
    marked = [False] * len(numbers) if outside is None else outside.tolist()
    for number, value, beyond in zip(numbers, values.tolist(), marked, strict=True):
        nanoseconds = number * UNITS[unit]
        exact = nanoseconds % UNITS[home] == 0 and abs(nanoseconds // UNITS[home]) <= INT64.max
        assert beyond is not exact
        assert beyond or value * UNITS[home] == nanoseconds


@pytest.mark.parametrize("width", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.int64()])
def test_integers_of__widens_every_integer_type(width: Any) -> None:
    values, outside = integers_of(pa.array([0, 7, 127], width), pa.int64())
    assert outside is None
    assert values.tolist() == [0, 7, 127]
    assert values.dtype in (np.dtype(np.int32), np.dtype(np.int64))
