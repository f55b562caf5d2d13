"""Theorems 18 and 19 exactly: all small tables, all neighbours, every radius; rows that change value and group."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import pytest

from dpfrugal.estimators.table.base.base_measure import base_of_integers
from dpfrugal.estimators.table.choices.answers import single_choice
from dpfrugal.estimators.table.choices.intervals import BITS, IntervalRule, Margin
from dpfrugal.estimators.table.choices.plan import Asked, Plan, plan_of
from dpfrugal.estimators.table.choices.radius import Spares, radii_around
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.choice import Weight
from dpfrugal.privacy.guarantees import PureDP
from tests.support.naive_table import DIGITS, drawn, statistics

EPSILON = 1.0
WORLD = base_of_integers(0, 5)
LETTERS = (0, 1, 2, 5)
RELATIONS: tuple[Neighbours, ...] = ("replace", "add-remove")
Table = tuple[int, ...]


def tables(most: int) -> list[Table]:
    return [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(LETTERS, n)]


def neighbours(most: int, relation: Neighbours) -> Iterator[tuple[Table, Table]]:
    for rows in tables(most):
        shorter = {tuple(rows[:at] + rows[at + 1 :]) for at in range(len(rows))}
        others = {tuple(sorted((*less, new))) for less in shorter for new in LETTERS}
        # A replaced row may also become one that does not count: the plan of replace must cover that too.
        yield from ((rows, other) for other in shorter)
        yield from ((other, rows) for other in shorter)
        if relation == "replace":
            yield from ((rows, other) for other in others - {rows})


def probabilities(rows: Table, q: Fraction, margin: Margin, slope: Fraction, value: int) -> list[Decimal]:
    radii = radii_around(WORLD, value)
    spares = Spares(statistics(rows), radii, q, margin.rows(len(rows)), slope)
    with localcontext(prec=DIGITS):
        weights = [weight.to_decimal(DIGITS) for weight in spares.exact()]
        total = sum(weights)
        return [weight / total for weight in weights]


def widest(q: Fraction, margin: Margin, slope: Fraction, relation: Neighbours, most: int = 4) -> float:
    """The largest range of logarithms of ratios, over all neighbours and released values."""
    largest = 0.0
    for value in (0, 2, 5):
        known = cache(lambda rows, value=value: probabilities(rows, q, margin, slope, value))
        for rows, other in neighbours(most, relation):
            ratios = [float((p / r).ln()) for p, r in zip(known(rows), known(other), strict=True)]
            largest = max(largest, max(ratios) - min(ratios))
    return largest


def only_interval(q: Fraction, relation: Neighbours) -> tuple[Margin, Fraction, float]:
    """Margin and slope of a plan, and the ε that the interval has of it."""
    plan = plan_of(Asked((q,), PureDP(epsilon=EPSILON), relation, intervals=IntervalRule()))
    return plan.margins[0], plan.interval_slope, float(plan.asked.shares["intervals"]) * EPSILON


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)])
@pytest.mark.parametrize("least", [None, Fraction(1, 2), Fraction(2)])
def test_interval__every_ratio_of_probabilities_is_within_its_share(
    q: Fraction, relation: Neighbours, least: Fraction | None
) -> None:
    """Small margins are those that tables of four rows can reach; their growth is paid for by a gentler slope."""
    margin, slope, share = only_interval(q, relation)
    if least is not None:
        margin = replace(margin, least=math.ceil(least * 2**BITS))
        change = max(q, 1 - q) + margin.growth
        slope = Fraction(share) / (2 * max(change, Fraction(1) if relation == "replace" else change))
    found = widest(q, margin, slope, relation)
    assert found <= share * (1 + 1e-12)
    if least == 2 and q != Fraction(9, 10):  # of so few rows the last one has none to spare
        assert found > share * 0.6, "the range is nearly attained: the enumeration can fail"


def test_interval__planted_mistakes_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    q = Fraction(1, 2)
    still = Margin(0, 2 * 2**BITS)
    right = Fraction(1, 2)  # ε / (2Δ) with Δ = 1 under replace
    assert widest(q, still, right, "replace") <= 1 + 1e-12
    assert widest(q, still, 2 * right, "replace") > 1.2, "a slope for half of the sensitivity"
    moving = Margin(9 * 4**BITS, 2**BITS // 8)
    paid = 1 / (2 * (q + moving.growth))
    assert widest(q, moving, paid, "add-remove") <= 1 + 1e-12
    assert widest(q, moving, Fraction(1), "add-remove") > 1.2, "a margin that moves with a private n, for nothing"

    class OfTheData(Spares):
        """Masses that depend on how many rows there are."""

        def exact(self) -> Sequence[Weight]:
            often = int(2 * (self._first + self._last))
            return [replace(each, mass=each.mass * (1 + k * often)) for k, each in enumerate(super().exact())]

    monkeypatch.setattr("tests.theorems.test_table_intervals.Spares", OfTheData)
    assert widest(q, still, right, "add-remove") > 1.2


# Groups: every row has a key, a or b, and a value; the answers of both groups are one transcript.
Row = tuple[str, int]


def grouped(rows: Sequence[Row], plan: Plan) -> dict[tuple[int, int], Decimal]:
    """The joint distribution of the values of both groups."""
    (q,), parts = plan.quantiles, []
    for key in "ab":
        table = statistics(tuple(sorted(value for each, value in rows if each == key)))
        parts.append(drawn(table, single_choice(plan, WORLD), q * table.rows))
    with localcontext(prec=DIGITS):
        return {(a, b): p * r for a, p in parts[0].items() for b, r in parts[1].items()}


def regrouped(most: int) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    every = [(key, value) for key in "ab" for value in (0, 1, 5)]
    for rows in itertools.combinations_with_replacement(every, most):
        for at, new in itertools.product(range(most), every):
            other = tuple(sorted((*rows[:at], new, *rows[at + 1 :])))
            if other != rows:
                yield rows, other


def worst(plan: Plan, most: int = 3) -> float:
    known: Callable[[tuple[Row, ...]], dict[tuple[int, int], Decimal]] = cache(lambda rows: grouped(rows, plan))
    return max(
        abs(float((p / known(other)[at]).ln())) for rows, other in regrouped(most) for at, p in known(rows).items()
    )


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10)])
def test_groups__a_row_that_changes_value_and_key_is_within_the_guarantee(q: Fraction) -> None:
    plan = plan_of(Asked((q,), PureDP(epsilon=EPSILON), grouped=True))
    found = worst(plan)
    assert found <= EPSILON * (1 + 1e-12)
    assert found > EPSILON * 0.3


def test_groups__charged_once_are_detected() -> None:
    """The slope of one group: a row that changes its key has the loss of two removals."""
    q = Fraction(9, 10)
    plan = plan_of(Asked((q,), PureDP(epsilon=EPSILON), grouped=True))
    charged_once = replace(plan, slope=4 * plan.slope)
    assert worst(charged_once) > EPSILON
