"""Theorems 16 and 17 exactly: all small tables, all neighbours, both relations, every answer; mistakes are detected."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpfrugal.estimators.table.base.base_measure import Base, base_of_doubles
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.choices import mechanism
from dpfrugal.estimators.table.choices.joint_choice import JointChoice
from dpfrugal.estimators.table.choices.mechanism import Choice, Scores, lean_of
from dpfrugal.estimators.table.choices.plan import Asked, joint_range, plan_of
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.choice import Ranges, Weight, slope
from dpfrugal.privacy.guarantees import ZCDP, PureDP
from tests.support.naive_table import DIGITS, SMALL_WORLD, naive_distance, naive_jointly, planned, renyi, statistics

EPSILON = 1.0
Table = tuple[int, ...]
LETTERS = codes_of(np.array([-math.inf, -1.5, 0.0, 5e-324, 1.0, math.inf])).tolist()
RELATIONS: tuple[Neighbours, ...] = ("replace", "add-remove")


def tables(letters: Sequence[int], most: int) -> list[Table]:
    """All multisets: the mechanism sorts, so the order of rows cannot matter."""
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(letters, n)]


def neighbours(letters: Sequence[int], most: int, relation: Neighbours) -> Iterator[tuple[Table, Table]]:
    for rows in tables(letters, most):
        if relation == "add-remove":
            shorter = {tuple(rows[:at] + rows[at + 1 :]) for at in range(len(rows))}
            yield from ((rows, other) for other in shorter)
            yield from ((other, rows) for other in shorter)
        else:
            others = {tuple(sorted((*rows[:at], new, *rows[at + 1 :]))) for at in range(len(rows)) for new in letters}
            yield from ((rows, other) for other in others - {rows})


# One quantile, over all doubles. The density per base mass is constant on each region, so it is compared at every
# letter and beside each: that covers every region of both tables.
PLACES = sorted(
    {place for code in LETTERS for place in (code - 1, code, code + 1)} | {codes_of(np.array([0.7]))[0].item()}
)
PLACES = [place for place in PLACES if abs(place) <= LETTERS[-1]]


def densities(rows: Table, public: Choice, target: Fraction) -> dict[int, Decimal]:
    """The probability of each place per base mass; 0 where the base has none."""
    scores = Scores(statistics(rows), public, target)
    codes = scores._window.codes.tolist()
    weights = scores.exact()
    found = {}
    with localcontext(prec=DIGITS):
        total = sum(weight.to_decimal(DIGITS) for weight in weights)
        for place in PLACES:
            at = np.searchsorted(codes, place)
            region = 2 * int(at) + (at < len(codes) and codes[at] == place)
            within = public.base.low <= place <= public.base.high
            found[place] = weights[region].to_decimal(DIGITS) / weights[region].mass / total if within else Decimal(0)
    return found


Rule = Callable[[Table], Choice]


def losses(q: Fraction, rule: Rule, relation: Neighbours, most: int = 3) -> tuple[float, float]:
    """The largest ln of a ratio of probabilities, and the largest range of such logarithms."""

    @cache
    def known(rows: Table) -> dict[int, Decimal]:
        return densities(rows, rule(rows), q * len(rows))

    largest, widest = 0.0, 0.0
    for rows, other in neighbours(LETTERS, most, relation):
        pairs = [(known(rows)[place], known(other)[place]) for place in PLACES]
        if any(bool(p) != bool(r) for p, r in pairs):
            return math.inf, math.inf
        ratios = [float((p / r).ln()) for p, r in pairs if p]
        largest, widest = max(largest, *ratios), max(widest, max(ratios) - min(ratios))
    return largest, widest


QUANTILES = [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("cap", [1, 75])
def test_one_quantile__every_ratio_of_probabilities_is_within_the_guarantee(
    q: Fraction, relation: Neighbours, cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mechanism, "CAP", cap)
    steepness = 2 * planned((q,), PureDP(epsilon=EPSILON), relation).slope
    largest, widest = losses(q, lambda _: Choice(base_of_doubles(), steepness, lean_of(q)), relation)
    assert largest <= EPSILON * (1 + 1e-12)
    assert widest <= EPSILON * (1 + 1e-12), "bounded range, which zCDP rests on"
    if cap == 75 and q != QUANTILES[-1]:  # of so few rows the last one is too far out
        assert widest > EPSILON * 0.999, "the range is attained: the enumeration can fail"
        assert largest > EPSILON * 0.6


def test_one_quantile__planted_mistakes_are_detected() -> None:
    q = Fraction(3, 4)
    right = Choice(base_of_doubles(), slope(PureDP(epsilon=EPSILON), Ranges(Fraction(2), Fraction(4))))

    def base_of_the_data(rows: Table) -> Choice:
        return replace(right, base=replace(right.base, low=rows[0], high=rows[-1])) if rows else right

    class CapOfTheData(Choice):
        cap = 1

    def cap_of_the_data(rows: Table) -> Choice:
        high = any(row > 0 for row in rows)
        return CapOfTheData(right.base, right.slope) if high else right

    def sensitivity_one(rows: Table) -> Choice:
        return replace(right, slope=Fraction(EPSILON))

    class DepthTwice(Scores):
        def exact(self) -> Sequence[Weight]:
            return [replace(each, exponent=min(each.exponent, 2 * each.exponent)) for each in super().exact()]

    assert losses(q, lambda _: right, "replace")[1] <= EPSILON * (1 + 1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.theorems.test_table.Scores", DepthTwice)
        assert losses(Fraction(1, 2), lambda _: right, "replace", most=4)[1] > EPSILON * 1.2
    assert losses(q, base_of_the_data, "replace", most=3)[1] > EPSILON * 1.2
    assert losses(Fraction(9, 10), cap_of_the_data, "replace", most=4)[1] > EPSILON * 1.2
    # Under add-remove a lean may go as far as the quantile's own, and no farther (Theorem 16).
    steep = planned((q,), PureDP(epsilon=EPSILON), "add-remove").slope
    leaning = replace(right, slope=2 * steep, lean=2 * q - 1)
    assert losses(q, lambda _: leaning, "add-remove", most=4)[1] <= EPSILON * (1 + 1e-12)
    assert losses(q, lambda _: replace(leaning, lean=Fraction(1)), "add-remove", most=4)[1] > EPSILON * 1.2
    assert losses(q, sensitivity_one, "replace", most=4)[1] > EPSILON * 1.2
    assert losses(q, sensitivity_one, "add-remove", most=4)[1] > EPSILON * 1.2


def test_one_quantile__a_replaced_row_that_becomes_missing_is_covered() -> None:
    """With nan_policy="omit" a replaced row may vanish: that is a removal, at the slope of a replacement."""
    steepness = 2 * planned((Fraction(9, 10),), PureDP(epsilon=EPSILON), "replace").slope
    for q in QUANTILES:
        public = Choice(base_of_doubles(), steepness, lean_of(q))
        assert losses(q, lambda _: public, "add-remove")[1] <= EPSILON * (1 + 1e-12)  # noqa: B023


# Several quantiles. Only the order of codes counts, so answers lie at every letter, between each two, and beyond them.
SEVERAL = {
    "two": (Fraction(1, 3), Fraction(1, 2)),
    "near the ends": (Fraction(1, 10), Fraction(9, 10)),
    "three": (Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)),
    "four": (Fraction(1, 5), Fraction(2, 5), Fraction(3, 5), Fraction(4, 5)),
}
FEW_LETTERS = [1, 3, 5]
FEW_PLACES = range(7)
Distance = Callable[[Table, Sequence[Fraction], Sequence[int]], Fraction]


def widest(
    quantiles: tuple[Fraction, ...], relation: Neighbours, most: int, cap: int = 1000, of: Distance = naive_distance
) -> Fraction:
    """The largest range of changes of the distance, over all neighbours of at most so many rows: in rationals."""
    answers = list(itertools.combinations_with_replacement(FEW_PLACES, len(quantiles)))

    @cache
    def known(rows: Table) -> list[Fraction]:
        return [min(of(rows, quantiles, each), Fraction(cap)) for each in answers]

    largest = Fraction(0)
    for rows, other in neighbours(FEW_LETTERS, most, relation):
        changes = [first - second for first, second in zip(known(rows), known(other), strict=True)]
        largest = max(largest, max(changes) - min(changes))
    return largest


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("cap", [1, 1000])
def test_several_quantiles__the_range_of_distances_is_within_the_bound(
    name: str, relation: Neighbours, cap: int
) -> None:
    quantiles = SEVERAL[name]
    bound = joint_range(quantiles, relation)
    found = widest(quantiles, relation, 2 if name == "four" else 4, cap)
    assert found <= bound
    if cap > 1 and name != "four":
        assert found > bound * Fraction(3, 5), "most of the range is attained: the enumeration can fail"


def test_several_quantiles__a_replaced_row_that_becomes_missing_is_covered() -> None:
    assert all(joint_range(asked, "add-remove") <= joint_range(asked, "replace") for asked in SEVERAL.values())


def test_several_quantiles__planted_mistakes_are_detected() -> None:
    def to_the_nearest_rank(rows: Table, quantiles: Sequence[Fraction], answers: Sequence[int]) -> Fraction:
        """Every answer takes the rank nearest to its own target, whatever the others take."""
        walk = [Fraction(0)]
        for q, code in zip(quantiles, answers, strict=True):
            below, upto = (sum(row < code for row in rows), sum(row <= code for row in rows))
            walk.append(min(max(Fraction(0), below - q * len(rows)), upto - q * len(rows)))
        return sum((abs(after - before) for before, after in itertools.pairwise([*walk, Fraction(0)])), Fraction(0))

    def sum_of_distances(rows: Table, quantiles: Sequence[Fraction], answers: Sequence[int]) -> Fraction:
        """Each quantile by itself, all at the price of one."""
        return sum(
            (naive_distance(rows, (q,), (code,)) for q, code in zip(quantiles, answers, strict=True)), Fraction(0)
        )

    def cap_of_the_data(rows: Table, quantiles: Sequence[Fraction], answers: Sequence[int]) -> Fraction:
        return min(naive_distance(rows, quantiles, answers), Fraction(0 if 5 in rows else 8))

    three = SEVERAL["three"]
    for mistake in (to_the_nearest_rank, sum_of_distances, cap_of_the_data):
        assert widest(three, "replace", 4, of=mistake) > joint_range(three, "replace"), mistake.__name__
    two = SEVERAL["two"]
    assert widest(two, "add-remove", 4, of=sum_of_distances) > joint_range(two, "add-remove")


# With probabilities: the whole distribution, in a world of few answers, one of which no row has.
WORLD: Base = replace(SMALL_WORLD, high=3)
LETTERS_OF_WORLD = [0, 1, 3]


def joint(public: JointChoice) -> Callable[[Table], dict[tuple[int, ...], Decimal]]:
    return cache(lambda rows: naive_jointly(rows, public))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["two", "three"])
def test_several_quantiles__every_ratio_of_probabilities_is_within_the_guarantee(
    name: str, relation: Neighbours
) -> None:
    def largest(steepness: Fraction) -> float:
        known, found = joint(JointChoice(WORLD, SEVERAL[name], steepness)), 0.0
        for rows, other in neighbours(LETTERS_OF_WORLD, 3, relation):
            first, second = known(rows), known(other)
            assert first.keys() == second.keys(), "the same answers are possible, whatever the rows"
            found = max(found, *(float((p / second[at]).ln()) for at, p in first.items()))
        return found

    steepness = planned(SEVERAL[name], PureDP(epsilon=EPSILON), relation).slope
    assert 0.25 * EPSILON < largest(steepness) <= EPSILON * (1 + 1e-12)
    assert largest(4 * steepness) > EPSILON, "four times as steep as is allowed"


@pytest.mark.parametrize("relation", RELATIONS)
def test_several_quantiles__renyi_divergences_are_within_zcdp(relation: Neighbours) -> None:
    quantiles = SEVERAL["three"]
    known = joint(JointChoice(WORLD, quantiles, planned(quantiles, ZCDP(rho=0.125), relation).slope))
    for rows, other in neighbours(LETTERS_OF_WORLD, 3, relation):
        for order in (1.25, 2.0, 6.0, 40.0):
            assert renyi(known(rows), known(other), order) <= order * 0.125 * (1 + 1e-9)


def test_several_quantiles__a_row_that_changes_its_group_is_within_the_guarantee() -> None:
    """It is removed from one group and added to the other: the losses of both add up."""
    quantiles = SEVERAL["two"]
    plan = plan_of(Asked(quantiles, PureDP(epsilon=EPSILON), grouped=True))

    def worst(steepness: Fraction) -> float:
        known = joint(JointChoice(WORLD, quantiles, steepness))
        removed, added = 0.0, 0.0
        for rows, other in neighbours(LETTERS_OF_WORLD, 3, "add-remove"):
            loss = max(float((p / known(other)[at]).ln()) for at, p in known(rows).items())
            removed, added = (max(removed, loss), added) if len(rows) > len(other) else (removed, max(added, loss))
        return removed + added

    assert 0.25 * EPSILON < worst(plan.slope) <= EPSILON * (1 + 1e-12)
    assert worst(4 * plan.slope) > EPSILON
