"""The answers of a plan: values, chosen together, then an interval around each."""

import math
from collections.abc import Sequence

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.choices.joint_choice import JointChoice, cap_of, choose_jointly, ranges_around
from dpfrugal.estimators.table.choices.mechanism import CAP, Choice, choose_code
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.choices.radius import Interval, choose_interval
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.privacy.choice import Bits


def answers(rows: OrderStatistics, plan: Plan, base: Base, bits: Bits | None = None) -> tuple[int, ...]:
    """The codes of all quantiles in ascending order; a single one needs no walk (Theorem 17)."""
    if len(plan.quantiles) == 1:
        return (choose_code(rows, single_choice(plan, base), plan.quantiles[0] * rows.rows, bits),)
    return choose_jointly(rows, JointChoice(base, plan.quantiles, plan.slope), bits)


def single_choice(plan: Plan, base: Base) -> Choice:
    """The choice of one quantile: the walk to its rank and back is twice as long as its distance."""
    return Choice(base, 2 * plan.slope)


def intervals_around(
    rows: OrderStatistics, plan: Plan, base: Base, values: Sequence[int], bits: Bits | None = None
) -> tuple[Interval, ...]:
    """An interval around each of the released values (Theorem 18)."""
    return tuple(
        choose_interval(rows, base, value, q, margin.rows(rows.rows), plan.interval_slope, bits)
        for q, margin, value in zip(plan.quantiles, plan.margins, values, strict=False)
    )


def ranks_of(plan: Plan, rows: int) -> list[tuple[int, int]]:
    """The first and last ranks of the rows that the plan looks at in a table of so many: raw."""
    found = ranges_around([q * rows for q in plan.quantiles], cap_of(plan.slope, len(plan.quantiles)))
    for q, margin in zip(plan.quantiles, plan.margins, strict=False):
        rank, reach = math.floor(q * rows), math.ceil(margin.rows(rows)) + math.ceil(CAP / plan.interval_slope) + 1
        found.append((rank - reach, rank + 1 + reach))
    return [(max(first, 0), min(last, rows - 1)) for first, last in found] if rows else []
