"""The answers of a plan for every group of a table, by compiled code (docs/proofs.md, Theorem 19)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.choices.answers import answers, reaches_of, single_choice
from dpfrugal.estimators.table.choices.intervals import Margin
from dpfrugal.estimators.table.choices.joint_choice import JointChoice
from dpfrugal.estimators.table.choices.many_choices import AT_ONCE, Targets, choose_many
from dpfrugal.estimators.table.choices.many_intervals import choose_intervals
from dpfrugal.estimators.table.choices.many_joint_choices import choose_many_jointly
from dpfrugal.estimators.table.choices.pilot import directed
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.choices.radius import choose_interval
from dpfrugal.estimators.table.rows.engine_rows import EngineGroups
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach
from dpfrugal.estimators.table.rows.stretches import Windows
from dpfrugal.kernels.compiler import worth_loading
from dpfrugal.kernels.threads import in_chunks
from dpfrugal.privacy.guarantees import PureDP, Sensitivity
from dpfrugal.privacy.noise import add_noise_to_many

FEW_GROUPS: Final = 256  # so few are answered one by one sooner than the compiler is loaded
WORTH_OF_MANY: Final = 2  # several quantiles of a group are worth this times their square
Progress = Callable[[int, int], None]  # so many of so many steps are done


@dataclass(frozen=True)
class GroupAnswers:
    """Released codes, groups × quantiles in ascending order; and the noisy number of rows of each group.

    ``bounded`` is False where an interval says that a group has too few rows.
    """

    values: Codes
    lower: Codes
    upper: Codes
    bounded: NDArray[np.bool_]
    rows: Codes | None = field(default=None)


def answer_groups(
    grouped: GroupedRows | EngineGroups, plan: Plan, base: Base, progress: Progress | None = None
) -> GroupAnswers:
    """Choose a pilot for all groups, their values, intervals around these; then draw noise for numbers of rows."""
    groups, quantiles = grouped.sizes.size, len(plan.quantiles)
    values = np.empty((groups, quantiles), dtype=np.int64)
    lower, upper = np.full_like(values, base.low), np.full_like(values, base.high)
    bounded = np.ones(values.shape, dtype=np.bool_)
    told = _Told(progress, groups * quantiles * (2 if plan.margins else 1))
    reaches = reaches_of(plan)
    # Rows beyond public hints count as these.
    hints = (
        base.low if base.low > grouped.kind.base.low else None,
        base.high if base.high < grouped.kind.base.high else None,
    )
    base = directed(grouped.together(*hints), plan, base)
    for here, part in grouped.parts():
        group_rows = GroupRows(part, reaches, *hints)
        values[here] = _values(group_rows, plan, base, told)
        for at, margin in enumerate(plan.margins):
            chosen = np.ascontiguousarray(values[here, at])
            asked = (base, chosen, plan.quantiles[at], margin, plan.interval_slope)
            if chosen.size < FEW_GROUPS:
                ends = _few_intervals(group_rows, *asked)
                told.add(chosen.size)
            else:
                ends = choose_intervals(group_rows.window(at), part.sizes, group_rows.of, *asked, told.of())
            lower[here, at], upper[here, at], bounded[here, at] = ends
    return GroupAnswers(values, lower, upper, bounded, noisy_rows(grouped.sizes, plan))


class GroupPart(Protocol):
    """Some groups: how many rows each has, and those around the rank of a quantile."""

    @property
    def sizes(self) -> Codes:
        """How many rows each group has: raw."""

    def window(self, at: int, reach: Reach) -> Windows:
        """The rows around the rank of one quantile."""

    def statistics(self, group: int, least: int | None, most: int | None) -> OrderStatistics:
        """The rows of a group by rank."""


@dataclass(frozen=True)
class GroupRows:
    """The rows of some groups, clipped to public hints."""

    part: GroupPart
    reaches: tuple[Reach, ...]
    least: int | None
    most: int | None

    def of(self, group: int) -> OrderStatistics:
        """Of one group, by rank."""
        return self.part.statistics(group, self.least, self.most)

    def window(self, at: int) -> Windows:
        """Around the rank of one quantile, of all of them."""
        found = self.part.window(at, self.reaches[at])
        if self.least is None and self.most is None:
            return found
        return replace(found, codes=np.clip(found.codes, self.least, self.most))


def _values(rows: GroupRows, plan: Plan, base: Base, told: "_Told") -> Codes:
    """The values of some groups, ascending with the quantile."""
    sizes, many = rows.part.sizes, len(plan.quantiles)
    if not worth_loading(sizes.size * (1 if many == 1 else WORTH_OF_MANY * many**2), FEW_GROUPS):
        values = np.empty((sizes.size, many), dtype=np.int64)
        for group in range(sizes.size):
            values[group] = answers(rows.of(group), plan, base)
            told.add(many)
        return values
    windows = [rows.window(at) for at in range(many)]
    if many > 1:
        public = JointChoice(base, plan.quantiles, plan.slope)
        return choose_many_jointly(windows, sizes, rows.of, public, told.of(many))
    ((window,), (q,)) = windows, plan.quantiles
    before = window.before.tolist()
    ranks = [q.numerator * size - q.denominator * b for size, b in zip(sizes.tolist(), before, strict=True)]
    targets = Targets(ranks, q.denominator)
    return choose_many(window.codes, window.starts, single_choice(plan, base), targets, told.of())[:, None]


def _few_intervals(
    rows: GroupRows, base: Base, values: Codes, quantile: Fraction, margin: Margin, slope: Fraction
) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """What ``choose_intervals`` gives, without the compiler."""
    found = []
    for group, value in enumerate(values.tolist()):
        some = rows.of(group)
        found.append(choose_interval(some, base, value, quantile, margin.rows(some.rows), slope))
    low, high = (np.array([getattr(each, end) for each in found], dtype=np.int64) for end in ("low", "high"))
    return low, high, np.array([each.bounded for each in found], dtype=np.bool_)


def noisy_rows(sizes: Codes, plan: Plan) -> Codes | None:
    """Numbers of rows with discrete Laplace noise: each is exp(−slope·distance) as likely as the true one."""
    if not plan.counts_slope:
        return None
    guarantee, noisy = PureDP(epsilon=rounded_down(plan.counts_slope)), np.empty_like(sizes)

    def add(first: int, last: int) -> None:
        noisy[first:last] = add_noise_to_many(sizes[first:last], guarantee, Sensitivity.of(1))

    in_chunks(lambda: add, sizes.size, AT_ONCE)
    return np.maximum(noisy, 0)


def rounded_down(number: Fraction) -> float:
    """The largest float that is at most a number."""
    nearest = float(number)
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > number else nearest


class _Told:
    """Adds up what several steps report."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, number: int) -> None:
        self._done += number
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def of(self, each: int = 1) -> Callable[[int], None]:
        """For a step that reports how many groups it has done so far, each of which counts so much."""
        before = 0

        def report(done: int) -> None:
            nonlocal before
            self.add(each * (done - before))
            before = done

        return report
