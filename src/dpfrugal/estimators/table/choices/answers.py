"""The answers of a plan: every value between those of earlier ones, then an interval around each."""

import math
from collections.abc import Sequence
from fractions import Fraction

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.choices.levels import Step
from dpfrugal.estimators.table.choices.mechanism import CAP, Choice, Cut, choose_cut, rank
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.choices.radius import Interval, choose_interval
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.privacy.choice import Bits


def answers(rows: OrderStatistics, plan: Plan, base: Base, bits: Bits | None = None) -> tuple[int, ...]:
    """The codes of all quantiles in ascending order: every choice between the answers of earlier ones."""
    found: dict[int, Cut] = {}
    for step in plan.steps:
        public = choice_of(plan, step, base, found)
        found[step.quantile] = choose_cut(rows, public, target_of(step, rows, public), bits)
    return tuple(found[quantile].code for quantile in range(len(plan.quantiles)))


def choice_of(plan: Plan, step: Step, base: Base, found: dict[int, Cut]) -> Choice:
    """What is public about a step, once earlier ones have their answers."""
    low, high = (None if end is None else found[end] for end in (step.low, step.high))
    within = base.within(None if low is None else low.code, None if high is None else high.code)
    return Choice(within, plan.slopes[step.level], low, high, step.cuts)


def target_of(step: Step, rows: OrderStatistics, public: Choice) -> Fraction:
    """The wanted rank, raw: a share of all rows, or of those between two cuts."""
    if step.of_all:
        return step.share * rows.rows
    first = Fraction(0) if public.low is None else rank(rows, public.low)
    last = Fraction(rows.rows) if public.high is None else rank(rows, public.high)
    return first + step.share * (last - first)


def intervals_around(
    rows: OrderStatistics, plan: Plan, base: Base, values: Sequence[int], bits: Bits | None = None
) -> tuple[Interval, ...]:
    """An interval around each of the released values (Theorem 18)."""
    return tuple(
        choose_interval(rows, base, value, q, margin.rows(rows.rows), plan.interval_slope, bits)
        for q, margin, value in zip(plan.quantiles, plan.margins, values, strict=False)
    )


def ranks_of(plan: Plan, rows: int) -> list[tuple[int, int]]:
    """The first and last ranks of the rows that the plan looks at in a table of so many: raw.

    A choice between earlier answers inherits their errors, of which all but e^-40 are smaller than what is added here.
    """
    found = []
    for step in plan.steps:
        slope = plan.slopes[step.level] if step.of_all else min(plan.slopes)
        reach = math.ceil((CAP if step.of_all else CAP + 40) / slope) + 1
        found.append((step.quantile, reach))
    for at, margin in enumerate(plan.margins):
        found.append((at, math.ceil(margin.rows(rows)) + math.ceil(CAP / plan.interval_slope) + 1))
    ranks = [(math.floor(plan.quantiles[at] * rows), reach) for at, reach in found]
    return [(max(rank - reach, 0), min(rank + 1 + reach, rows - 1)) for rank, reach in ranks] if rows else []
