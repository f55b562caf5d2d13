"""The choice of a radius: its list, and its weights against the definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base_measure import Base, base_of_doubles, base_of_integers
from dpfrugal.estimators.table.codes import codes_of, doubles_of
from dpfrugal.estimators.table.radius import Radii, Spares, choose_interval, radii_around
from tests.support.naive_table import statistics

BASES = {"doubles": base_of_doubles(), "integers": base_of_integers(), "few": base_of_integers(-5, 9)}
VALUES = [0.0, 1.0, -2.5, 1e-310, 3e-9, 1e9, -1.7e308, math.inf]


def code_of(base: Base, value: float) -> int:
    if base.of_doubles:
        return int(codes_of(np.array([value]))[0])
    return int(min(max(value, base.low), base.high)) if math.isfinite(value) else base.high


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("value", VALUES)
def test_radii__grow_around_the_value_from_itself_to_everything(name: str, value: float) -> None:
    base = BASES[name]
    code = code_of(base, value)
    radii = radii_around(base, code)
    assert (radii.low[0], radii.high[0]) == (code, code)
    assert (radii.low[-1], radii.high[-1]) == (base.low, base.high)
    assert (radii.low[1:] <= radii.low[:-1]).all()
    assert (radii.high[1:] >= radii.high[:-1]).all()
    assert (radii.masses > 0).all()
    assert 2 * radii.masses[-1] == radii.masses.sum()


def test_radii__name_every_radius_to_a_fortieth() -> None:
    radii = radii_around(base_of_doubles(), code_of(base_of_doubles(), 40.0))
    ends = doubles_of(radii.high)[:-1] - 40.0
    between = ends[(ends > 1e-9) & (ends < 100)]
    assert (np.diff(between) <= between[1:] / 40).all()


def spare(rows: list[int], low: int, high: int, q: Fraction) -> Fraction:
    rank = q * len(rows)
    return min(rank - sum(row < low for row in rows), sum(row <= high for row in rows) - rank)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-6, 12), max_size=30),
    st.integers(-5, 9),
    st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(1, 3)]),
    st.sampled_from([Fraction(1, 4), Fraction(3), Fraction(200)]),
    st.fractions(0, 20),
)
def test_spares__have_the_weights_of_the_definition(
    rows: list[int], value: int, q: Fraction, slope: Fraction, margin: Fraction
) -> None:
    """With a slope of 200 the cap is one row, so that the window has few of the rows."""
    rows = [min(max(row, -5), 9) for row in rows]
    radii = radii_around(BASES["few"], value)
    spares = Spares(statistics(rows), radii, q, margin, slope)
    weights = spares.exact()
    spared = [spare(rows, int(low), int(high), q) for low, high in zip(radii.low, radii.high, strict=True)]
    for index, weight in enumerate(weights):
        over = Fraction(0) if index == 0 else spared[index - 1] - margin
        under = Fraction(0) if index == radii.unbounded else margin - spared[index]
        assert weight.exponent == slope * min(max(over, under, Fraction(0)), Fraction(spares.cap))
        assert weight.mass == radii.masses[index]
        assert spares.approximate[index] == pytest.approx(float(weight.to_decimal(30)), rel=2**-43, abs=2.0**-700)


def test_choose_interval__holds_the_margin_on_both_sides() -> None:
    rng = np.random.default_rng(3)
    values = rng.lognormal(3, 1, 4000)
    rows = statistics(codes_of(values).tolist())
    value = code_of(base_of_doubles(), float(np.quantile(values, 0.9)))
    for _ in range(20):
        found = choose_interval(rows, base_of_doubles(), value, Fraction(9, 10), Fraction(60), Fraction(1, 4))
        assert found.bounded
        nearer = min(3600 - rows.counts(found.low)[0], rows.counts(found.high)[1] - 3600)
        assert 20 < nearer < 120, "it is off by 40 rows of 4 once in e^10 draws"


def test_choose_interval__holds_a_heap_that_the_base_cannot_name() -> None:
    """Knots turned into miles: the quantile is the heap of 60%, the released value lies in the gap below it."""
    heap, below = 13.80936, 11.5078
    rows = statistics(codes_of(np.repeat([below, heap, 20.71404], [300, 600, 100])).tolist())
    value = code_of(base_of_doubles(), 12.25)
    found = choose_interval(rows, base_of_doubles(), value, Fraction(1, 2), Fraction(31), Fraction(1, 4))
    low, high = doubles_of(np.array([found.low, found.high]))
    assert low <= heap <= high <= heap * 1.05


def test_choose_interval__of_a_table_with_too_few_rows_is_unbounded() -> None:
    rows = statistics(codes_of(np.arange(30.0)).tolist())
    assert not choose_interval(rows, base_of_doubles(), 0, Fraction(1, 2), Fraction(200), Fraction(1, 4)).bounded


def test_radii__are_plain_arrays() -> None:
    radii = radii_around(base_of_integers(), 7)
    assert isinstance(radii, Radii)
    assert radii.low.dtype == radii.high.dtype == radii.masses.dtype == np.int64
