"""Margins: their size, and how little they move with one row."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.choices.intervals import BITS, IntervalRule, Margin


def test_margin__worked_numbers() -> None:
    margin = IntervalRule().margin(Fraction(1, 2), Fraction(1, 4))
    assert float(margin.rows(10_000)) == pytest.approx(98 - 1.5, abs=0.01)
    assert float(margin.rows(400)) == pytest.approx(4 * (2.5 + math.log(20)), abs=0.01)
    assert IntervalRule(of="table").margin(Fraction(1, 2), Fraction(1, 4)).rows(10**9) == margin.rows(0)


@given(
    st.fractions(Fraction(1, 1000), Fraction(999, 1000)),
    st.fractions(Fraction(1, 10**4), Fraction(100)),
    st.sampled_from([0.5, 0.95, 0.9999]),
    st.integers(0, 10**12),
)
def test_margin__grows_by_no_more_than_it_states(q: Fraction, slope: Fraction, confidence: float, n: int) -> None:
    margin = IntervalRule(confidence).margin(q, slope)
    turn = (margin.least + margin.less) ** 2 // margin.per_row  # from here on the root is the larger one
    for rows in (0, n, turn, turn + 1):
        assert 0 <= margin.rows(rows + 1) - margin.rows(rows) <= margin.growth


def test_margin__growth_is_attained() -> None:
    margin = Margin(4**BITS, 100 * 2**BITS)
    assert margin.rows(10_001) - margin.rows(10_000) > margin.growth * Fraction(99, 100)
    assert IntervalRule(of="table").margin(Fraction(1, 2), Fraction(1)).growth == 0
