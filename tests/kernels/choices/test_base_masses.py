"""Cumulative masses, compiled: against Python's integers and fractions of any size."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.kernels.bit_layout import UNIT_BITS
from dpfrugal.kernels.choices import base_masses

codes = st.integers(-(2**63), 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(autouse=True)
def _wrapping_arithmetic() -> object:
    """Without the compiler, numpy warns where words wrap."""
    with np.errstate(all="ignore"):
        yield


@given(finite)
def test_code_of__is_undone_by_double_of(value: float) -> None:
    code = base_masses.code_of(np.float64(value))
    assert base_masses.double_of(np.int64(code)) == value
    above = math.nextafter(value, math.inf)
    if math.isfinite(above) and above != 0:
        assert base_masses.code_of(np.float64(above)) == code + 1


@settings(max_examples=60)
@given(st.integers(-(10**9), 10**9), st.integers(0, 5), st.integers(-2, 2))
def test_decimals_at__are_the_last_multiples_below_and_up_to(number: int, places: int, nudge: int) -> None:
    scale = 10.0**places
    value = number / scale
    for _ in range(abs(nudge)):
        value = math.nextafter(value, math.copysign(math.inf, nudge))
    before, upto = base_masses.decimals_at(np.float64(value), np.float64(scale))
    assert before / scale < value <= (before + 1) / scale
    assert upto / scale <= value < (upto + 1) / scale


@given(finite, st.integers(-60, 60))
def test_power_upto__is_the_last_multiple_of_a_power_of_two(value: float, exponent: int) -> None:
    found = int(base_masses.power_upto(np.float64(value), np.int64(exponent)))
    wanted = math.floor(Fraction(value) / Fraction(2) ** exponent)
    assert found == max(min(wanted, 2**53), -(2**53) - 1)


@given(codes, codes)
def test_distance_of__is_the_difference_of_any_two_integers(one: int, other: int) -> None:
    assert int(base_masses.distance_of(np.int64(one), np.int64(other))) == abs(one - other)


@given(st.integers(0, 2**64 - 1))
def test_first_mass__gives_every_binade_of_indices_the_same_mass(number: int) -> None:
    """The first 2^k - 1 indices have k units: 1, then 2 and 3, then 4 to 7, …"""
    high, low = (int(part) for part in base_masses.first_mass(np.uint64(number)))
    binade = (number + 1).bit_length() - 1 if number < 2**64 - 1 else 64
    within = number + 1 - 2**binade  # of the 2^binade indices of the next binade
    exact = Fraction(binade) + Fraction(within, 2**binade)
    assert Fraction(high) + Fraction(low, 2**UNIT_BITS) == exact


@given(st.integers(-100, 100), st.integers(0, 200), st.sampled_from([32, UNIT_BITS]), st.data())
def test_number_between__is_the_exact_difference(high: int, units: int, bits: int, data: st.DataObject) -> None:
    low, next_low = (data.draw(st.integers(0, 2**bits - 1)) for _ in range(2))
    if units == 0 and next_low < low:
        low, next_low = next_low, low
    pairs = np.int64(high), np.uint64(low), np.int64(high + units), np.uint64(next_low)
    upper, lower = base_masses.number_between(*pairs, np.uint64(bits))
    exact = units * 2**bits + next_low - low
    assert int(upper) * 2**64 + int(lower) == exact
    assert float(base_masses.mass_between(*pairs, np.uint64(bits))) == pytest.approx(exact, rel=2**-50)
