"""Plans: what they spend, and the errors that they predict."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.choices.intervals import IntervalRule
from dpfrugal.estimators.table.choices.plan import Asked, Change, Plan, joint_range, plan_of
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.choice import Ranges
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dpfrugal.privacy.zcdp_conversions import rho_for
from tests.support.naive_table import planned

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
        total = spent(plan, neighbours)
        # Where a pilot has a part, slopes under zCDP are multiples of 2^-20 of each other.
        least = 1 - (Fraction(1, 2**18) if plan.pilot_slope else Fraction(1, 2**50))
        if isinstance(guarantee, PureDP):
            assert total.l1 == Fraction(0.7)
        else:
            assert Fraction(0.3) * least < total.l2_squared / 8 <= Fraction(0.3)


@pytest.mark.parametrize(
    ("quantiles", "neighbours", "guarantee", "most"),
    [
        ((Fraction(1, 2),), "replace", PureDP(epsilon=1), 2.83),
        ((Fraction(1, 2),), "add-remove", PureDP(epsilon=1), 1.42),
        (THREE, "replace", PureDP(epsilon=1), 5.0),
        (DECILES, "replace", PureDP(epsilon=1), 8.75),
        (DECILES, "add-remove", PureDP(epsilon=1), 7.9),
        (DECILES, "replace", ZCDP(rho=0.1), 9.6),
        (DECILES, "replace", ApproxDP(epsilon=1, delta=1e-6), 8.75),
    ],
)
def test_planned__predicts_errors_no_larger_than_documented(
    quantiles: tuple[Fraction, ...], neighbours: Neighbours, guarantee: Guarantee, most: float
) -> None:
    plan = planned(quantiles, guarantee, neighbours)
    assert max(plan.errors) <= most
    assert all(off > error for off, error in zip(plan.rows_off(0.05), plan.errors, strict=True))


def spent(plan: Plan, change: Change) -> Ranges:
    """What one row that is changed so can do to all answers, by the definition of each part."""
    asked, parts = plan.asked, []
    times, how = (2, "add-remove") if change == "regroup" else (1, change)
    pilot = [Fraction(2), 2 * max((q := asked.pilot_quantile), 1 - q) if change == "add-remove" else Fraction(2)]
    of_pilot = [Ranges(size, size**2).scaled(plan.pilot_slope * asked.rows_per_person) for size in pilot]
    for q, margin in zip(asked.quantiles, plan.margins, strict=False):
        size = 2 * (max(q, 1 - q) + margin.growth)
        size = max(size, Fraction(2)) if how == "replace" else size
        parts.append(Ranges(size, size**2).scaled(plan.interval_slope))
    size = joint_range(asked.quantiles, "replace" if how == "replace" else "add-remove")
    parts.append(Ranges(size, size**2).scaled(plan.slope))
    parts.append(Ranges(Fraction(1), Fraction(4)).scaled(plan.counts_slope))
    total = Ranges(sum((p.l1 for p in parts), Fraction(0)), sum((p.l2_squared for p in parts), Fraction(0)))
    of_groups = Ranges(times * total.l1, times * total.l2_squared).scaled(Fraction(asked.rows_per_person))
    parts = [of_groups, *of_pilot]
    return Ranges(sum((p.l1 for p in parts), Fraction(0)), sum((p.l2_squared for p in parts), Fraction(0)))


@settings(max_examples=40, deadline=None)
@given(
    several,
    st.sampled_from(["replace", "add-remove"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, IntervalRule(), IntervalRule(of="table")]),
    st.integers(1, 3),
)
def test_plan_of__all_parts_together_spend_the_guarantee_and_no_more(
    quantiles: tuple[Fraction, ...],
    neighbours: Neighbours,
    grouped: bool,
    counts: bool,
    intervals: IntervalRule | None,
    rows_per_person: int,
) -> None:
    for guarantee in (PureDP(epsilon=0.7), ZCDP(rho=0.3), ApproxDP(epsilon=0.7, delta=1e-6)):
        plan = plan_of(Asked(quantiles, guarantee, neighbours, grouped, rows_per_person, intervals, counts))
        totals = [spent(plan, change) for change in plan.asked.changes]
        l1, squares = max(total.l1 for total in totals), max(total.l2_squared for total in totals)
        if isinstance(guarantee, ZCDP):
            assert Fraction(0.3) * Fraction(9, 10) < squares / 8 <= Fraction(0.3)
        elif isinstance(guarantee, PureDP):
            assert Fraction(0.7) * Fraction(9, 10) < l1 <= Fraction(0.7)
        else:
            assert l1 <= Fraction(0.7) or squares / 8 <= Fraction(rho_for(0.7, 1e-6))
        assert sum(plan.asked.shares.values()) == 1
        assert (plan.counts_slope > 0) == counts
        assert (plan.pilot_slope > 0) == (grouped or len(quantiles) > 1)


def test_plan_of__a_row_that_changes_its_group_costs_two_removals() -> None:
    """At q = 1/2 a removal costs half of what a replacement does, so groups are free; at q = .99 they cost twice.

    The pilot of all groups costs a twenty-fifth.
    """
    for q, factor in ((Fraction(1, 2), 1), (Fraction(99, 100), Fraction(198, 100))):
        alone = plan_of(Asked((q,), PureDP(epsilon=1)))
        grouped = plan_of(Asked((q,), PureDP(epsilon=1), grouped=True))
        assert alone.slope * Fraction(24, 25) / grouped.slope == factor
