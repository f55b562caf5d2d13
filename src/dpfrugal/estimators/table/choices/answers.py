"""The answers of a plan: values, chosen together, then an interval around each."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.choices.joint_choice import JointChoice, cap_of, choose_jointly
from dpfrugal.estimators.table.choices.mechanism import CAP, Choice, choose_code, lean_of
from dpfrugal.estimators.table.choices.pilot import reach_of_pilot
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.choices.radius import Interval, choose_interval
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach
from dpfrugal.privacy.choice import Bits

PER_DOUBLING: Final = 8  # a reach is taken at so many numbers of rows between one and its double
MOST_ROWS: Final = 60  # doublings of one row


def answers(rows: OrderStatistics, plan: Plan, base: Base, bits: Bits | None = None) -> tuple[int, ...]:
    """The codes of all quantiles in ascending order; a single one needs no walk (Theorem 17)."""
    if len(plan.quantiles) == 1:
        return (choose_code(rows, single_choice(plan, base), plan.quantiles[0] * rows.rows, bits),)
    return choose_jointly(rows, JointChoice(base, plan.quantiles, plan.slope), bits)


def single_choice(plan: Plan, base: Base) -> Choice:
    """The choice of one quantile: the walk to its rank and back is twice as long as its distance."""
    return Choice(base, 2 * plan.slope, lean_of(plan.quantiles[0]))


def intervals_around(
    rows: OrderStatistics, plan: Plan, base: Base, values: Sequence[int], bits: Bits | None = None
) -> tuple[Interval, ...]:
    """An interval around each of the released values (Theorem 18)."""
    return tuple(
        choose_interval(rows, base, value, q, margin.rows(rows.rows), plan.interval_slope, bits)
        for q, margin, value in zip(plan.quantiles, plan.margins, values, strict=False)
    )


def looked_at(plan: Plan) -> tuple[Fraction, ...]:
    """The quantiles around whose ranks rows are looked at: those of the plan, and of all rows that of the pilot."""
    has_more = plan.pilot_slope and not plan.asked.grouped
    return (*plan.quantiles, plan.asked.pilot_quantile) if has_more else plan.quantiles


def reaches(plan: Plan, rows: int) -> list[int]:
    """How many rows on either side of each of these ranks the plan looks at in a table of so many."""
    found = [cap_of(plan.slope, len(plan.quantiles)) + 1] * len(plan.quantiles)
    for at, margin in enumerate(plan.margins):
        found[at] = max(found[at], math.ceil(margin.rows(rows)) + math.ceil(CAP / plan.interval_slope) + 1)
    return [*found, reach_of_pilot(plan)] if len(looked_at(plan)) > len(found) else found


def ranks_of(plan: Plan, rows: int) -> list[tuple[int, int]]:
    """The first and last ranks of the rows that the plan looks at in a table of so many, for each quantile: raw."""
    ranks = zip((math.floor(q * rows) for q in looked_at(plan)), reaches(plan, rows), strict=True)
    return [(max(rank - reach, 0), min(rank + 1 + reach, rows - 1)) for rank, reach in ranks] if rows else []


@lru_cache(maxsize=256)
def reaches_of(plan: Plan) -> tuple[Reach, ...]:
    """The same for tables of any size, as a formula that holds at least these ranks: public."""
    numbers = [math.ceil(2 ** (k / PER_DOUBLING)) for k in range(PER_DOUBLING * MOST_ROWS + 1)]
    least, several = reaches(plan, 0), [reaches(plan, rows) for rows in numbers]
    # Between two numbers of rows the larger one's reach counts, over the root of the smaller one.
    steep = [
        max((more[at] - least[at]) / math.sqrt(rows) for rows, more in zip([1, *numbers], several, strict=False))
        for at in range(len(least))
    ]
    found = zip(looked_at(plan), least, steep, strict=True)
    return tuple(Reach(float(q), float(rows), root) for q, rows, root in found)


def prepare(rows: OrderStatistics, plan: Plan) -> None:
    """Find what the plan looks at: whatever the rows are read from is read before anything is spent."""
    rows.prepare(ranks_of(plan, rows.rows), reaches_of(plan))
