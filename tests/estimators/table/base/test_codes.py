"""Codes of doubles have their order."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.base_masses import code, double, doubles


@given(st.lists(doubles, min_size=2))
def test_codes__have_the_order_of_doubles_and_come_back(values: list[float]) -> None:
    places = [code(value) for value in values]
    for (x, a), (y, b) in zip(zip(values, places, strict=True), zip(values[1:], places[1:], strict=True), strict=False):
        assert (x < y) == (a < b)
        assert (x == y) == (a == b)
    assert [double(place) for place in places] == values
