"""Theorem 22 exactly: all small tables, all neighbours, both relations, every pilot; mistakes are detected."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import pytest

from dpfrugal.estimators.table.base.base_measure import Base, Component, Lattice
from dpfrugal.estimators.table.base.spacings import Multiples
from dpfrugal.estimators.table.base.spreads import Binades, Even
from dpfrugal.estimators.table.choices import pilot
from dpfrugal.estimators.table.choices.joint_choice import JointChoice
from dpfrugal.estimators.table.choices.pilot import Pilot
from dpfrugal.estimators.table.choices.plan import LATTICE, Asked, plan_of
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.guarantees import PureDP
from tests.support.naive_table import DIGITS, naive_jointly, naive_pilot, naive_votes, renyi
from tests.theorems.test_table import RELATIONS, Table, neighbours

# Even numbers, multiples of three, every number.
PARTS = Component(5, Binades(), Multiples(2)), Component(3, Binades(), Multiples(3)), Component(2, Even())
WORLD = Base(0, 4, PARTS, lattices=(Lattice((0,), 2), Lattice((1,), 1), Lattice((2,), 3)))
LETTERS = [0, 1, 3]
QUANTILES = [Fraction(1, 2), Fraction(7, 20), Fraction(4, 5)]
Voting = Callable[[Sequence[int], Base, Fraction, int], list[Fraction]]


def widest(quantile: Fraction, relation: Neighbours, reach: int, votes: Voting = naive_votes) -> Fraction:
    """The largest range of changes of the votes over all neighbours of at most six rows: in rationals."""

    @cache
    def known(rows: Table) -> list[Fraction]:
        return votes(rows, WORLD, quantile * len(rows), reach)

    largest = Fraction(0)
    for rows, other in neighbours([0, 1, 2, 3], 6, relation):
        changes = [first - second for first, second in zip(known(rows), known(other), strict=True)]
        largest = max(largest, max(changes) - min(changes))
    return largest


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("reach", [0, 1, 2, 9])
def test_votes__the_range_of_their_changes_is_within_the_bound(
    quantile: Fraction, relation: Neighbours, reach: int
) -> None:
    found = widest(quantile, relation, reach)
    assert found <= LATTICE
    if relation == "replace" or reach < 9:
        assert found == LATTICE, "it is attained: the enumeration can fail"


@pytest.mark.parametrize("relation", RELATIONS)
def test_votes__planted_mistakes_are_detected(relation: Neighbours) -> None:
    def with_all_equal_rows(rows: Sequence[int], base: Base, rank: Fraction, reach: int) -> list[Fraction]:
        """Of equal rows at the ends of the window also those beyond it."""
        kept = {row for at, row in enumerate(sorted(rows)) if abs(at - math.floor(rank)) <= reach}
        return naive_votes([row for row in rows if row in kept], base, Fraction(0), 99)

    def around_a_number(rows: Sequence[int], base: Base, rank: Fraction, reach: int) -> list[Fraction]:
        """The rows that lie near the one of this rank."""
        middle = sorted(rows)[min(math.floor(rank), len(rows) - 1)] if rows else 0
        return naive_votes([row for row in rows if abs(row - middle) <= reach], base, Fraction(0), 99)

    for mistake in (with_all_equal_rows, around_a_number):
        assert widest(Fraction(1, 2), relation, 1, mistake) > LATTICE, mistake.__name__


Draws = Callable[[Table], dict[tuple[Pilot, tuple[int, ...]], Decimal]]


def draws(asked: Asked, times: int = 1) -> Draws:
    """The distribution of pilot and answers together, the pilot being so many times as steep as it may be."""
    plan = plan_of(asked)

    @cache
    def drawn(rows: Table) -> dict[tuple[Pilot, tuple[int, ...]], Decimal]:
        found: dict[tuple[Pilot, tuple[int, ...]], Decimal] = {}
        with localcontext(prec=DIGITS):
            for each, chance in naive_pilot(rows, WORLD, asked.pilot_quantile, times * plan.pilot_slope).items():
                base = WORLD.towards(each.middle, each.lattice)
                answers = naive_jointly(rows, JointChoice(base, plan.quantiles, plan.slope))
                found |= {(each, codes): chance * p for codes, p in answers.items()}
        return found

    return drawn


def worst(relation: Neighbours, known: Draws, most: int = 2) -> float:
    largest = 0.0
    for rows, other in neighbours(LETTERS, most, relation):
        first, second = known(rows), known(other)
        assert first.keys() == second.keys(), "the same pilots and answers are possible, whatever the rows"
        largest = max(largest, *(float((p / second[at]).ln()) for at, p in first.items()))
    return largest


TWO = Fraction(1, 3), Fraction(1, 2)


@pytest.mark.parametrize("relation", RELATIONS)
def test_pilot__with_the_answers_every_ratio_of_probabilities_is_within_the_guarantee(relation: Neighbours) -> None:
    asked = Asked(TWO, PureDP(epsilon=1.0), relation)
    assert 0.25 < worst(relation, draws(asked)) <= 1 + 1e-12
    assert worst(relation, draws(asked, times=40)) > 1, "forty times as steep as is allowed"


def test_pilot__renyi_divergences_are_within_its_share_of_zcdp() -> None:
    slope = plan_of(Asked(TWO, PureDP(epsilon=1.0))).pilot_slope * 10
    rho = 2 * float(LATTICE * slope) ** 2 / 8
    for rows, other in neighbours(LETTERS, 3, "replace"):
        p, r = (naive_pilot(each, WORLD, Fraction(1, 2), slope) for each in (rows, other))
        for order in (1.25, 2.0, 6.0, 40.0):
            assert renyi(p, r, order) <= order * rho * (1 + 1e-9)


def test_pilot__one_that_is_not_paid_for_is_detected() -> None:
    """The middle row itself, and the lattice that most rows lie on."""
    plan = plan_of(Asked(TWO, PureDP(epsilon=1.0)))

    @cache
    def known(rows: Table) -> dict[tuple[Pilot, tuple[int, ...]], Decimal]:
        votes = naive_votes(rows, WORLD, Fraction(len(rows), 2), 9)
        base = WORLD.towards(rows[len(rows) // 2] if rows else 0, votes.index(max(votes)))
        answers = naive_jointly(rows, JointChoice(base, plan.quantiles, plan.slope))
        return {(Pilot(0, 0), codes): p for codes, p in answers.items()}

    assert worst("replace", known, most=3) > 1.2


@pytest.mark.parametrize("relation", RELATIONS)
def test_pilot__of_groups_changes_as_one_table_does(relation: Neighbours) -> None:
    """A row that changes value and key replaces one row of all rows together, or leaves or joins them."""
    plan = plan_of(Asked((Fraction(1, 2),), PureDP(epsilon=1.0), relation, grouped=True))
    slope, share = plan.pilot_slope, plan.asked.shares["pilot"]
    assert share == Fraction(1, 25)
    largest = 0.0
    for change in ("replace", "add-remove") if relation == "replace" else ("add-remove",):
        for rows, other in neighbours(LETTERS, 3, change):
            p, r = (naive_pilot(each, WORLD, plan.asked.pilot_quantile, slope) for each in (rows, other))
            largest = max(largest, *(float((chance / r[at]).ln()) for at, chance in p.items()))
    assert share / 4 < largest <= share
    assert pilot.CAP / slope > 1000, "no window cuts so few rows"
