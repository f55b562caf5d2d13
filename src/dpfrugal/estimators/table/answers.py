"""The answers of a plan: every value between those of earlier ones, or each within an interval of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpfrugal.estimators.table.base_measure import Base
from dpfrugal.estimators.table.levels import Step
from dpfrugal.estimators.table.mechanism import Choice, Cut, choose_cut, rank
from dpfrugal.estimators.table.order_statistics import OrderStatistics
from dpfrugal.estimators.table.plan import Plan
from dpfrugal.privacy.choice import Bits
from dpfrugal.privacy.guarantees import PureDP, Sensitivity
from dpfrugal.privacy.noise import add_noise

# Beside the first end of an interval so little of the mass is near it that the second end is not drawn to it, and so
# much that a narrow table far from zero is found.
NEAR_FIRST_END: Final = (1020, 3, 1)


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


@dataclass(frozen=True)
class Bounded:
    """The codes of a value and of the ends of its interval, and whether rows were found beyond the end chosen first."""

    value: int
    lower: int
    upper: int
    confirmed: bool


def bounded_answers(rows: OrderStatistics, plan: Plan, base: Base, bits: Bits | None = None) -> tuple[Bounded, ...]:
    """For each quantile a value within an interval (Theorem 18).

    The end on the side of the median is chosen first, as it has the most rows on both sides, then the other end beyond
    it, and the value between both. An answer from far outside of the table has no rows beyond it: the noisy number of
    those beyond the first end confirms all three.
    """
    found = [_bounded(rows, plan, base, at, bits) for at in range(len(plan.quantiles))]
    noisy = noisy_counts([beyond for _, beyond in found], plan.check_slope)
    return tuple(
        replace(answer, confirmed=number >= plan.confirming) for (answer, _), number in zip(found, noisy, strict=True)
    )


def _bounded(rows: OrderStatistics, plan: Plan, base: Base, at: int, bits: Bits | None) -> tuple[Bounded, int]:
    """One of them, not confirmed, and how many rows lie at or beyond the first end: raw."""
    q, away = plan.quantiles[at], plan.margins[at].rows(rows.rows)
    low: int | None = None
    high: int | None = None

    def chosen(target: Fraction) -> int:
        first, last = (None if end is None else Cut(end) for end in (low, high))
        both = low is not None and high is not None
        near = base.within(low, high) if both else base.within(low, high, NEAR_FIRST_END)
        public = Choice(near, plan.interval_slope, first, last)
        return choose_cut(rows, public, target, bits).code

    middle = q * rows.rows
    if is_upper(q):
        low = chosen(middle - away)
        high = chosen(middle + away)
        beyond = rows.rows - rows.counts(low)[0]
    else:
        high = chosen(middle + away)
        low = chosen(middle - away)
        beyond = rows.counts(high)[1]
    return Bounded(chosen(middle), low, high, confirmed=False), beyond


def is_upper(quantile: Fraction) -> bool:
    """Whether its lower end is the one on the side of the median."""
    return quantile >= Fraction(1, 2)


def noisy_counts(counts: Sequence[int], slope: Fraction) -> list[int]:
    """Numbers of rows with discrete Laplace noise: each is exp(−slope·distance) as likely as the true one."""
    epsilon = float(slope)
    if Fraction(epsilon) > slope:
        epsilon = math.nextafter(epsilon, 0.0)
    return add_noise(counts, PureDP(epsilon=epsilon), Sensitivity.of(1))
