"""The choice of a radius: its list, and its weights against the definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import Base, base_of_doubles, base_of_integers
from dpfrugal.estimators.table.base.codes import codes_of, doubles_of
from dpfrugal.estimators.table.base.kinds import UNSIGNED
from dpfrugal.estimators.table.choices.radius import (
    FINEST,
    FIRST_STEP,
    LAST_STEP,
    ROUND,
    Radii,
    Spares,
    choose_interval,
    radii_around,
    radius_tables,
)
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


def test_radii__name_every_radius_to_a_fifteenth() -> None:
    radii = radii_around(base_of_doubles(), code_of(base_of_doubles(), 40.0))
    ends = doubles_of(radii.high)[:-1] - 40.0
    between = ends[(ends > 1e-9) & (ends < 100)]
    assert (np.diff(between) <= between[1:] / 15).all()


@pytest.mark.parametrize("value", [0, 1, 50])
def test_radii__of_unsigned_integers_have_the_octaves_of_their_values(value: int) -> None:
    """The code of the unsigned 0 is −2^63."""
    small, large = (radii_around(UNSIGNED.base, each - 2**63) for each in (value, 2**63 + value))
    assert (small.high - small.high[0])[:5].tolist() == [0, 1, 2, 3, 4]
    assert (large.high - large.high[0])[1] == 2 ** (64 - FINEST)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([BASES["integers"], BASES["few"], UNSIGNED.base]), st.integers(-(2**63), 2**63 - 1))
def test_radii__of_integers_are_whole_and_clipped(base: Base, value: int) -> None:
    """By Python's integers: the ends are the value ± 2^(k/16) or round, rounded down, as far as the base reaches."""
    value = min(max(value, base.low), base.high)
    radii = radii_around(base, value)
    whole = [int(Fraction(float(radius))) for radius in radius_tables().radii if radius < 2.0**70]
    ends = {(max(value - radius, base.low), min(value + radius, base.high)) for radius in whole}
    found = set(zip(radii.low[1:].tolist(), radii.high[1:].tolist(), strict=True))
    assert found <= ends | {(base.low, base.high)}


def test_radius_tables__have_16_radii_an_octave() -> None:
    tables = radius_tables()
    steps = np.arange(FIRST_STEP, LAST_STEP + 1)
    normal = (steps >= -1022 * 16) & (steps <= 1023 * 16)
    plain, octaves = normal & (tables.factors == 1), steps // 16
    expected = np.ldexp(2.0 ** (steps % 16 / 16), np.where(plain, octaves, 0))
    assert np.allclose(tables.radii[plain], expected[plain], rtol=2**-50, atol=0)
    round_ones = {float(f"{digit}e{power}") for power in range(-307, 308) for digit in (1, 2, 5)}
    assert set(tables.radii[tables.factors == ROUND].tolist()) == round_ones
    ratios = tables.radii[normal][1:] / tables.radii[normal][:-1]
    assert ratios.min() > 2 ** (1 / 33)
    assert ratios.max() < 2 ** (3 / 32)
    assert tables.radii[steps < -1074 * 16].tolist() == [5e-324] * ((FINEST - 1) * 16)
    assert (np.diff(tables.radii) >= 0).all()


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
        cap = Fraction(spares.cap)
        over = -cap if index == 0 else spared[index - 1] - margin
        under = -cap if index == radii.unbounded else margin - spared[index]
        assert weight.exponent == slope * min(max(over, under, -cap), cap)
        assert weight.mass == radii.masses[index]
        assert spares.approximate[index] == pytest.approx(float(weight.to_decimal(30)), rel=2**-43, abs=2.0**-700)


def test_spares__are_within_2_to_the_minus_43_for_wide_margins_and_steep_slopes() -> None:
    """What cancels between ranks and margins of thousands of rows is subtracted exactly."""
    rows, base, q, slope = statistics(range(100_000)), base_of_integers(), Fraction(1, 3), Fraction(25)
    radii = radii_around(base, 33_333)
    for low in radii.low[radii.low > 0].tolist()[-5:]:
        margin = q * 100_000 - low + Fraction(5, 7)  # by which this radius misses it
        spares = Spares(rows, radii, q, margin, slope)
        weights = spares.exact()
        assert any(weight.exponent == slope * Fraction(5, 7) for weight in weights)
        for weight, approximate in zip(weights, spares.approximate.tolist(), strict=True):
            assert approximate == pytest.approx(float(weight.to_decimal(30)), rel=2**-43, abs=2.0**-700)


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
