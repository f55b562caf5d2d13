"""Intervals of many groups: what is wanted of each, what the twin is asked for, and progress."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import Base, base_of_doubles, base_of_integers
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.choices import many_intervals
from dpfrugal.estimators.table.choices.intervals import IntervalRule, Margin
from dpfrugal.estimators.table.choices.many_intervals import choose_intervals, wanted
from dpfrugal.estimators.table.choices.radius import Interval, choose_interval
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits
from tests.support.whole_windows import whole

NOTHING = np.zeros(0, dtype=np.int64)


@given(st.lists(st.integers(0, 10**12), max_size=9), st.fractions(0, 1), st.integers(0, 4**18), st.integers(1, 2**24))
def test_wanted__is_the_margin_away_from_the_rank(sizes: list[int], q: Fraction, per_row: int, least: int) -> None:
    margin = Margin(per_row, least)
    begin, end = wanted(np.array(sizes, dtype=np.int64), q, margin)
    for at, size in enumerate(sizes):
        for found, exact in ((begin, q * size - margin.rows(size)), (end, q * size + margin.rows(size))):
            rest = exact - int(found.floors[at])
            assert 0 <= rest < 1
            assert float(found.rests[at]) == float(rest)


def test_choose_intervals__uncertain_groups_are_left_to_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points on, beside and away from the boundary between all radii and none, which is 1/2 without rows."""
    asked: list[int] = []

    def by_the_twin(
        rows: OrderStatistics, base: Base, value: int, q: Fraction, margin: Fraction, slope: Fraction, bits: Bits
    ) -> Interval:
        asked.append(value)
        return choose_interval(rows, base, value, q, margin, slope, bits)

    monkeypatch.setattr(many_intervals, "choose_interval", by_the_twin)
    half = 2**63
    points = [half, half - 2, half + 2**24, half - 2**45, half + 2**45, 0]
    drawn = np.array(points, dtype=np.uint64)[:, None]
    monkeypatch.setattr(choice, "words", lambda groups, each: drawn)
    starts, values = np.zeros(7, dtype=np.int64), np.arange(6)
    low, high, bounded = choose_intervals(
        *whole(NOTHING, starts), base_of_integers(-9, 9), values, Fraction(1, 2), Margin(0, 1), Fraction(1, 10**15)
    )
    assert asked == [0, 1, 2]
    assert bounded.tolist() == [False, True, False, True, False, True]
    assert [(int(low[at]), int(high[at])) for at in (4, 5)] == [(-9, 9), (5, 5)]


def test_choose_intervals__hold_the_margin_on_both_sides_in_every_group() -> None:
    rng = np.random.default_rng(3)
    rows = np.sort(codes_of(rng.lognormal(3, 1, (30, 1000))), axis=1)
    starts, values, slope = np.arange(31) * 1000, rows[:, 500].copy(), Fraction(1)
    margin = IntervalRule().margin(Fraction(1, 2), slope)
    low, high, bounded = choose_intervals(
        *whole(rows.ravel(), starts), base_of_doubles(), values, Fraction(1, 2), margin, slope
    )
    assert bounded.all()
    nearer = np.minimum(500 - (rows < low[:, None]).sum(axis=1), (rows <= high[:, None]).sum(axis=1) - 500)
    assert (abs(nearer - float(margin.rows(1000))) < 20).all(), "a radius off by 20 rows is e^-20 times as likely"


def test_choose_intervals__progress_counts_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_intervals, "AT_ONCE", 4)
    seen: list[int] = []
    starts, values = np.zeros(11, dtype=np.int64), np.zeros(10, dtype=np.int64)
    low, high, bounded = choose_intervals(
        *whole(NOTHING, starts),
        base_of_integers(-1, 1),
        values,
        Fraction(1, 2),
        Margin(0, 2**16),
        Fraction(1),
        seen.append,
    )
    assert seen == [4, 8, 10]
    assert low.dtype == high.dtype == np.int64
    assert bounded.dtype == np.bool_
    assert low.size == high.size == bounded.size == 10


def test_choose_intervals__of_no_groups_are_none() -> None:
    found = choose_intervals(
        *whole(NOTHING, np.zeros(1, dtype=np.int64)),
        base_of_doubles(),
        NOTHING,
        Fraction(1, 2),
        Margin(0, 1),
        Fraction(1),
    )
    assert [part.size for part in found] == [0, 0, 0]
