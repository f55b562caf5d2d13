"""Plans: what they spend, and the errors that they predict."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.levels import Neighbours, ranges
from dpfrugal.estimators.table.plan import planned
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
THREE = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
several = st.sets(st.fractions(Fraction(1, 1000), Fraction(999, 1000)), min_size=1, max_size=12).map(
    lambda quantiles: tuple(sorted(quantiles))
)


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
        (THREE, "replace", PureDP(epsilon=1), 8.0),
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
