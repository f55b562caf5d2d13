"""Values as JSON and back, exactly; and what was not written by it is refused."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.storage import json_values


@given(st.floats())
def test_of_float__keeps_every_bit(number: float) -> None:
    again = json_values.float_of(json.loads(json.dumps(json_values.of_float(number))))
    assert again == number or (math.isnan(again) and math.isnan(number))
    assert math.copysign(1, again) == math.copysign(1, number) or math.isnan(number)


@pytest.mark.parametrize("wrong", [1, 1.0, None, True, [], "", "xyz", "0x1p", "1" * 41], ids=repr)
def test_float_of__refuses_what_is_no_number(wrong: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever sentence
        json_values.float_of(wrong)


@pytest.mark.parametrize("wrong", [1.0, "1", None, True, -1, 2**63, [1]], ids=repr)
def test_integer_of__refuses_what_is_out_of_its_range(wrong: Any) -> None:
    with pytest.raises(ValueError, match="integer"):
        json_values.integer_of(wrong)


def test_integer_of__accepts_its_range() -> None:
    assert [json_values.integer_of(number) for number in (0, 2**63 - 1)] == [0, 2**63 - 1]
    assert json_values.integer_of(-5, -5, -5) == -5


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_floats_of__gives_the_array_back(numbers: list[float]) -> None:
    found = json_values.floats_of(json_values.packed(np.array(numbers, dtype=np.float64)))
    assert found.dtype == np.float64
    assert found.tolist() == numbers


def test_fields_of__asks_for_these_names_and_no_others() -> None:
    assert json_values.fields_of({"a": 1, "b": 2}, ("b", "a")) == {"a": 1, "b": 2}
    several: list[Any] = [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {}, [], None, "ab"]
    for wrong in several:
        with pytest.raises(ValueError, match="not a record of a, b"):
            json_values.fields_of(wrong, ("a", "b"))


def test_list_of__asks_for_a_list_of_its_size() -> None:
    assert json_values.list_of([1, 2], 2) == [1, 2]
    assert json_values.list_of([]) == []
    for wrong in ([1], [1, 2, 3], (1, 2), "ab", None, {"a": 1, "b": 2}):
        with pytest.raises(ValueError, match="not a list"):
            json_values.list_of(wrong, 2)


@given(st.integers(-(2**70), 2**70) | st.floats())
def test_of_item__keeps_an_integer_of_64_bits_and_makes_others_floats(item: float) -> None:
    again = json_values.item_of(json.loads(json.dumps(json_values.of_item(item))))
    if isinstance(item, int):
        assert again == (item if -(2**63) <= item < 2**64 else float(item))
        assert type(again) is (int if -(2**63) <= item < 2**64 else float)
    else:
        assert again == item or item != item


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint8, np.bool_])
def test_of_array__keeps_every_bit(dtype: type[np.generic]) -> None:
    array: NDArray[Any] = np.array([0, 1, 255, 3, 7, 1], dtype=np.uint8).astype(dtype)
    for part in (array, array[::2], array[:0]):
        again = json_values.array_of(json.loads(json.dumps(json_values.of_array(part))), dtype)
        assert again.dtype == dtype
        assert again.tolist() == part.tolist()


@dataclass
class Inner:
    number: float
    pair: tuple[float, int] = (0.0, 0)


@dataclass
class Outer:
    count: int
    flag: bool
    inner: Inner
    array: NDArray[np.float64]
    maybe: Inner | None = None
    limit: float | None = None
    several: tuple[float, float, float] = field(default=(1.0, 2.0, 3.0))


@given(
    count=st.integers(0, 2**62),
    flag=st.booleans(),
    numbers=st.lists(st.floats(allow_nan=False), min_size=4, max_size=9),
    present=st.booleans(),
)
def test_unpacked__gives_back_what_packed_wrote(count: int, flag: bool, numbers: list[float], present: bool) -> None:
    inner = Inner(numbers[0], (numbers[1], 7))
    outer = Outer(count, flag, inner, np.array(numbers), inner if present else None, numbers[2] if present else None)
    record = json.loads(json.dumps(json_values.packed(outer)))
    again = json_values.unpacked(Outer, record)
    assert again.array.tolist() == outer.array.tolist()
    again.array = outer.array = np.zeros(0)
    assert again == outer


def test_packed__makes_plain_values_of_numpy_ones() -> None:
    found = json_values.packed([np.int64(3), np.bool_(True), np.float32(0.5), "word", None])
    assert found == [3, True, "0x1.0000000000000p-1", "word", None]
    assert [type(value) for value in found[:2]] == [int, bool]


@pytest.mark.parametrize(
    "change",
    [
        {"count": "1"},
        {"count": -1},
        {"count": True},
        {"flag": 1},
        {"inner": None},
        {"inner": {"number": "0x1p0"}},
        {"array": [1]},
        {"array": None},
        {"several": ["0x1p0"]},
        {"limit": "nonsense"},
        {"more": 1},
    ],
    ids=repr,
)
def test_unpacked__refuses_what_packed_did_not_write(change: dict[str, Any]) -> None:
    record = json_values.packed(Outer(1, True, Inner(0.5), np.zeros(2)))
    assert json_values.unpacked(Outer, record).count == 1
    with pytest.raises(ValueError):  # noqa: PT011 - whichever sentence
        json_values.unpacked(Outer, record | change)
