"""Margins: their size, and how little they move with one row."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.intervals import IntervalRule, Margin


def test_margin__worked_number() -> None:
    margin = IntervalRule().margin(Fraction(1, 2), Fraction(5, 32))
    expected = math.sqrt(1.959964**2 * 2500 + (math.log(20) * 6.4) ** 2) + 1
    assert float(margin.rows(10_000)) == pytest.approx(expected, abs=1e-3)
    assert float(IntervalRule(of="table").margin(Fraction(1, 2), Fraction(1, 8)).rows(10_000)) == pytest.approx(
        8 * math.log(20) + 1, abs=1e-3
    )


@given(
    st.fractions(Fraction(1, 1000), Fraction(999, 1000)),
    st.fractions(Fraction(1, 10**4), Fraction(100)),
    st.sampled_from([0.5, 0.95, 0.9999]),
    st.integers(0, 10**12),
)
def test_margin__grows_by_no_more_than_it_states(q: Fraction, slope: Fraction, confidence: float, n: int) -> None:
    margin = IntervalRule(confidence).margin(q, slope)
    for rows in (0, n):
        assert 0 <= margin.rows(rows + 1) - margin.rows(rows) <= margin.growth


def test_margin__growth_is_attained() -> None:
    margin = Margin(10**9, 10**9)
    assert margin.rows(1) - margin.rows(0) > margin.growth * Fraction(8, 10)
    assert IntervalRule(of="table").margin(Fraction(1, 2), Fraction(1)).growth == 0
