"""Where an edge is placed between two numbers whose unit and scale are not known."""

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpfrugal.estimators.segments.edge_placement import (
    after,
    between,
    decimal_near,
    logit,
    multiple_of,
    power_of_ten_up_to,
    roundest,
)

LARGEST = 2.0**1000  # no edge lies beyond
numbers = st.floats(-LARGEST, LARGEST)


@given(ends=st.tuples(numbers, numbers), part=st.floats(0, 1))
def test_between__stays_between_the_ends(ends: tuple[float, float], part: float) -> None:
    low, high = sorted(ends)
    slack = 1e-12 * max(abs(low), abs(high))
    assert low - slack <= between(low, high, part) <= high + slack


@given(ends=st.tuples(numbers, numbers), parts=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_between__rises_with_the_part(ends: tuple[float, float], parts: tuple[float, float]) -> None:
    low, high = sorted(ends)
    less, more = sorted(parts)
    assert between(low, high, less) <= between(low, high, more) + 1e-12 * max(abs(low), abs(high))


@pytest.mark.parametrize(
    ("low", "high", "part", "found"),
    [
        (50.0, 100.0, 0.5, 75.0),  # within a factor of four: by distance
        (1.0, 4.0, 0.5, 2.5),
        (1.0, 10_000.0, 0.5, 100.0),  # by ratio
        (1.0, 10_000.0, 0.25, 10.0),
        (-10_000.0, -1.0, 0.5, -100.0),
        (-10_000.0, -1.0, 0.75, -10.0),
        (-5.0, 15.0, 0.5, 5.0),  # across zero: by distance
        (0.0, 1e9, 0.5, 5e8),
        (3.0, 3.0, 0.7, 3.0),
    ],
)
def test_between__goes_by_ratio_where_the_ends_span_magnitudes(
    low: float, high: float, part: float, found: float
) -> None:
    assert between(low, high, part) == pytest.approx(found, rel=1e-12)


def test_between__takes_no_more_than_forty_halvings_into_account() -> None:
    """Otherwise half of the edges between 1e-300 and 1 would lie where nothing is."""
    assert between(1e-300, 1.0, 0.5) == pytest.approx(2.0**-20)
    assert between(-1.0, -1e-300, 0.5) == pytest.approx(-(2.0**-20))


@given(number=st.floats(-LARGEST, LARGEST))
def test_after__has_nothing_between_it_and_the_number(number: float) -> None:
    following = after(number)
    assert following > number
    assert not number < number + (following - number) / 2 < following


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0.41, 0.57, 0.5),
        (17.2, 31.0, 20.0),
        (-3.0, 8.0, 0.0),
        (-31.0, -17.2, -30.0),
        (0.99, 1.01, 1.0),
        (99.5, 100.5, 100.0),
        (1234.0, 1236.0, 1235.0),
        (2.0, 2.0, None),
        (3.0, 2.0, None),
        (-1e308, -1e-308, None),  # wider than any power of ten that would help
    ],
)
def test_roundest__has_the_fewest_digits(low: float, high: float, found: float | None) -> None:
    assert roundest(low, high) == found


def digits(number: float) -> int:
    """How many significant digits the shortest decimal of a number has; none for zero."""
    return len(Decimal(repr(number)).normalize().as_tuple().digits) if number else 0


@given(ends=st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)))
def test_roundest__lies_strictly_between_and_is_no_longer_than_the_middle(ends: tuple[float, float]) -> None:
    low, high = sorted(ends)
    assume(high - low > max(1e-6 * abs(low), 1e-6 * abs(high), 1e-15))  # below that, powers of ten are not exact
    found = roundest(low, high)
    assert found is not None
    assert low < found < high
    assert digits(found) <= digits((low + high) / 2)


@pytest.mark.parametrize(
    ("unit", "number", "found"),
    [
        (1.0, 2.4, 2.0),
        (1.0, -2.6, -3.0),
        (100.0, 1_249.0, 1_200.0),
        (0.1, 0.33, 0.3),
        (0.01, 1.234, 1.23),
        (10.0, 0.0, 0.0),
    ],
)
def test_multiple_of__is_the_nearest(unit: float, number: float, found: float) -> None:
    assert multiple_of(unit, number) == found


@given(power=st.integers(-9, 9), count=st.integers(-(10**6), 10**6))
def test_multiple_of__is_exactly_the_decimal(power: int, count: int) -> None:
    """0.1 · 3 is 0.30000000000000004; the edge must be 0.3, which is what occurs."""
    decimal = float(Decimal(count).scaleb(power))
    assert multiple_of(10.0**power, decimal) == decimal


def test_multiple_of__leaves_alone_what_would_overflow() -> None:
    assert multiple_of(1e-300, 1e300) == 1e300


@pytest.mark.parametrize(
    ("spacing", "unit"),
    [
        (0.012, 0.01),
        (0.03, None),
        (1.0, 1.0),
        (1.5, 1.0),
        (0.7, 1.0),
        (5.0, None),
        (130.0, 100.0),
        (0.0, None),
        (-1.0, None),
    ],
)
def test_decimal_near__knows_the_power_of_ten_that_is_meant(spacing: float, unit: float | None) -> None:
    assert decimal_near(spacing) == unit


@pytest.mark.parametrize("spacing", [1e-301, math.inf, 1e301, math.nan])
def test_decimal_near__answers_nothing_beyond_all_spacings(spacing: float) -> None:
    assert decimal_near(spacing) is None


@given(number=st.floats(1e-290, 1e290))
def test_power_of_ten_up_to__is_reached_and_the_next_is_not(number: float) -> None:
    found = power_of_ten_up_to(number)
    assert found <= number * (1 + 1e-12)
    assert number < 10 * found * (1 + 1e-12)


@pytest.mark.parametrize("number", [0.0, -5.0, 1e-301, 1e301, math.inf])
def test_power_of_ten_up_to__is_zero_where_nothing_matters(number: float) -> None:
    assert power_of_ten_up_to(number) == 0.0


@given(share=st.floats(1e-9, 1 - 1e-9))
def test_logit__is_odd_about_a_half_and_inverts_the_logistic(share: float) -> None:
    assert logit(share) == pytest.approx(-logit(1 - share), rel=1e-6, abs=1e-9)
    assert 1 / (1 + math.exp(-logit(share))) == pytest.approx(share, rel=1e-9)
    assert logit(0.5) == 0.0
