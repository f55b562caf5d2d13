"""Plans of several quantiles: order, levels, costs, predicted errors; answers that are monotone."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base_measure import base_of_doubles, base_of_integers
from dpfrugal.estimators.table.codes import codes_of
from dpfrugal.estimators.table.levels import (
    MOST_PIVOTS,
    Neighbours,
    answers,
    evenly,
    influences,
    planned,
    range_of,
    ranges,
    steps_of,
)
from dpfrugal.privacy.choice import Ranges
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from tests.support.naive_table import statistics

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
THREE = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
several = st.sets(st.fractions(Fraction(1, 1000), Fraction(999, 1000)), min_size=1, max_size=12).map(
    lambda quantiles: tuple(sorted(quantiles))
)


@given(several, st.integers(1, MOST_PIVOTS))
def test_steps__choose_each_quantile_once_between_its_neighbours_of_earlier_levels(
    quantiles: tuple[Fraction, ...], pivots: int
) -> None:
    pivots = min(pivots, len(quantiles))
    steps = steps_of(quantiles, evenly(len(quantiles), pivots))
    assert sorted(step.quantile for step in steps) == list(range(len(quantiles)))
    assert [step.of_all for step in steps] == [True] * pivots + [False] * (len(quantiles) - pivots)
    assert [step.level for step in steps[:pivots]] == list(range(pivots))
    known: dict[int, int] = {}
    for step in steps:
        below, above = ([at for at in known if at < step.quantile], [at for at in known if at > step.quantile])
        assert step.low == max(below, default=None)
        assert step.high == min(above, default=None)
        assert all(known[end] < step.level for end in (step.low, step.high) if end is not None)
        first = Fraction(0) if step.low is None else quantiles[step.low]
        last = Fraction(1) if step.high is None else quantiles[step.high]
        share = quantiles[step.quantile] if step.of_all else (quantiles[step.quantile] - first) / (last - first)
        assert step.share == share
        known[step.quantile] = step.level
    divides = not all(step.of_all for step in steps)
    used = {end for step in steps for end in (step.low, step.high) if divides}
    assert all(step.cuts == (step.quantile in used) for step in steps)


def test_ranges__worked_numbers() -> None:
    """Three quantiles by halving: the middle one costs 2; 5/9 and 9/10 of what lies beside it cost 10/9 + 9/5."""
    steps = steps_of(THREE, (1,))
    assert [step.share for step in steps] == [Fraction(9, 10), Fraction(5, 9), Fraction(9, 10)]
    beside = Ranges(Fraction(131, 45), Fraction(10, 9) ** 2 + Fraction(9, 5) ** 2)
    assert ranges(steps, "replace") == [Ranges(Fraction(2), Fraction(4)), beside]
    most = Ranges(Fraction(9, 5), Fraction(81, 25))
    assert ranges(steps, "add-remove") == [most, most]
    # Two choices of range 1 each: a row that stays in one of them may still change it by 2.
    leaves = ranges(steps_of(DECILES, (1, 3, 5, 7)), "replace")
    assert leaves[-1] == Ranges(Fraction(2), Fraction(4))
    assert leaves[:-1] == [Ranges(Fraction(2), Fraction(4))] * 4


@settings(max_examples=15, deadline=None)
@given(several, st.sampled_from(["replace", "add-remove"]), st.integers(1, 3))
def test_planned__spends_the_guarantee_and_no_more(
    quantiles: tuple[Fraction, ...], neighbours: Neighbours, rows_per_person: int
) -> None:
    for guarantee in (PureDP(epsilon=0.7), ZCDP(rho=0.3)):
        plan = planned(quantiles, guarantee, neighbours, rows_per_person)
        pairs = list(zip(ranges(plan.steps, neighbours), plan.slopes, strict=True))
        if isinstance(guarantee, PureDP):
            assert sum(part.l1 * each for part, each in pairs) * rows_per_person == Fraction(0.7)
        else:
            spent = sum(part.l2_squared * each**2 for part, each in pairs) * rows_per_person**2 / 8
            assert Fraction(0.3) * (1 - Fraction(1, 2**50)) < spent <= Fraction(0.3)


@pytest.mark.parametrize(
    ("quantiles", "neighbours", "guarantee", "most"),
    [
        ((Fraction(1, 2),), "replace", PureDP(epsilon=1), 2.83),
        ((Fraction(1, 2),), "add-remove", PureDP(epsilon=1), 1.42),
        (THREE, "replace", PureDP(epsilon=1), 8.5),
        (DECILES, "replace", PureDP(epsilon=1), 14.8),
        (DECILES, "add-remove", PureDP(epsilon=1), 9.0),
        (DECILES, "replace", ZCDP(rho=0.1), 8.0),
        (DECILES, "replace", ApproxDP(epsilon=1, delta=1e-6), 14.8),
    ],
)
def test_planned__predicts_errors_no_larger_than_documented(
    quantiles: tuple[Fraction, ...], neighbours: Neighbours, guarantee: Guarantee, most: float
) -> None:
    plan = planned(quantiles, guarantee, neighbours)
    assert max(plan.errors) <= most
    assert all(off > error for off, error in zip(plan.rows_off(0.05), plan.errors, strict=True))


def test_influences__of_a_quantile_between_two_others() -> None:
    steps = steps_of((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), (0, 2))
    middle = influences(steps)[1]
    assert sorted(middle) == [(0, 0.5), (1, 0.5), (2, 1.0)]
    assert range_of(Fraction(1, 4)) == Fraction(3, 2)


@pytest.mark.parametrize("quantiles", [THREE, DECILES])
def test_answers__are_monotone_and_near_their_ranks(quantiles: tuple[Fraction, ...]) -> None:
    rng = np.random.default_rng(2)
    for values in (rng.lognormal(3, 1, 4000), np.round(rng.exponential(3, 4000)), rng.normal(1e9, 5, 4000)):
        plan = planned(quantiles, PureDP(epsilon=1), "replace")
        rows = statistics(codes_of(values).tolist())
        for _ in range(5):
            codes = answers(rows, plan, base_of_doubles())
            assert list(codes) == sorted(codes)
            for q, code in zip(quantiles, codes, strict=True):
                below, upto = rows.counts(code)
                assert max(below - q * 4000, q * 4000 - upto) < 400


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=20))
def test_answers__of_tiny_tables_are_monotone_too(rows: list[int]) -> None:
    plan = planned(DECILES, PureDP(epsilon=5), "add-remove")
    codes = answers(statistics(rows), plan, base_of_integers())
    assert list(codes) == sorted(codes)
    assert not math.isnan(sum(codes))


def test_answers__of_one_number_repeated_are_that_number() -> None:
    plan = planned(DECILES, PureDP(epsilon=1), "replace")
    assert set(answers(statistics([7] * 100_000), plan, base_of_integers())) == {7}
