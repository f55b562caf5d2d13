"""The answers of a plan: every value between the answers of earlier ones, then the ends of all intervals."""

from fractions import Fraction

from dpfrugal.estimators.table.base_measure import Base
from dpfrugal.estimators.table.levels import Step
from dpfrugal.estimators.table.mechanism import Choice, Cut, choose_cut, rank
from dpfrugal.estimators.table.order_statistics import OrderStatistics
from dpfrugal.estimators.table.plan import Plan
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


def ends(rows: OrderStatistics, plan: Plan, base: Base, bits: Bits | None = None) -> tuple[tuple[int, int], ...]:
    """The codes of both ends of each quantile's interval, in the order of the quantiles (Theorem 18)."""
    if plan.interval_slope is None:
        return ()
    public = Choice(base, plan.interval_slope)
    found = []
    for q, margin in zip(plan.quantiles, plan.margins, strict=True):
        middle, away = q * rows.rows, margin.rows(rows.rows)
        low, high = (choose_cut(rows, public, target, bits).code for target in (middle - away, middle + away))
        found.append((low, high))
    return tuple(found)
