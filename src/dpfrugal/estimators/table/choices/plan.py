"""The plan of a release: which choices are made, and how steep each is, under one guarantee.

A release consists of parts: the values, the ends of their intervals, per group a noisy number of rows, and before all
of these a pilot, unless it is of a single quantile in all. Each part has a stated share of the guarantee: of its ε or,
under zCDP, of its ρ. All of it is a public function of quantiles,
guarantee and neighbours (docs/proofs.md, Theorems 17 to 19).

Worked number: at ε = 1 without intervals the slope is 6/25 for any number of quantiles from two on; the middle one of
nine deciles is then 9 rows off (root mean square) where the base is even, the outermost ones 5.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from dpfrugal.estimators.table.choices.intervals import IntervalRule, Margin
from dpfrugal.estimators.table.choices.mechanism import lean_of
from dpfrugal.estimators.table.choices.walk_errors import bound_of_one, bounds, deviation_of_one, deviations
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.choice import Ranges, slope
from dpfrugal.privacy.guarantees import Guarantee

# The part of the guarantee that the noisy number of rows gets, where there is one; choices get the rest.
COUNTS_SHARE: Final = Fraction(1, 10)
# The part of the pilot that several quantiles, or those of many groups, have in common.
PILOT_SHARE: Final = Fraction(1, 25)
INTERVALS_SHARE: Final = Fraction(1, 2)  # of what these leave
# Rows beyond a quantile, in units of 1 / (2·slope), below which an answer may be drawn from far outside of the table:
# with so many that was one answer in 50 where values are within 5% of each other, the more seldom the wider they lie.
ENOUGH: Final = 15
# By how much several answers were farther off than on an even base, in the worst of 17 laws: 1.5 times.
UNEVEN: Final = 1.5
# A promise so weak that an answer half a row off has a weight below 10^-55 is not used up: floats hold e^256.
STEEPEST: Final = Fraction(128)
ROUNDED: Final = 2**20  # relative slopes of parts are multiples of 2^-20 where their squares add up

# What one row can do: be replaced in a table or group, be added or removed, leave one group for another; or, of two
# groups that are samples, make room for the next row in one and take the place of a row in the other.
Change = Literal["replace", "add-remove", "regroup", "replace-in-two"]
Part = dict[Change, list[Ranges]]
# Discrete Laplace noise of scale 1 on a number that moves by 1: a loss of at most 1, within an interval of length 2.
COUNT: Final = Ranges(Fraction(1), Fraction(4))
# The middle of a table.
MIDDLE: Final = Fraction(1, 5), Fraction(4, 5)
# The range of the number of rows of a window that lie on a lattice.
LATTICE: Final = Fraction(2)


@dataclass(frozen=True)
class Asked:
    """What a release shall hold, and whose change it shall hide: quantiles in ascending order.

    ``sampled`` says that the rows may be a sample of bounded size, of a whole table or of each group: where one row
    leaves it, another one may come. A person may have ``rows_per_person`` rows in each of ``windows`` releases.
    """

    quantiles: tuple[Fraction, ...]
    guarantee: Guarantee
    neighbours: Neighbours = "replace"
    grouped: bool = False
    rows_per_person: int = 1
    intervals: IntervalRule | None = None
    counts: bool = False
    sampled: Literal["table", "groups"] | None = None
    windows: int = 1

    @property
    def changes(self) -> tuple[Change, ...]:
        """What a row of a neighbour may do."""
        if self.neighbours == "add-remove" and self.sampled is None:
            return ("add-remove",)
        if not self.grouped:
            return ("replace",)
        if self.sampled == "groups":  # Theorem 20: of each group that a row leaves or joins, one row is replaced
            return ("replace", "replace-in-two") if self.neighbours == "replace" else ("replace",)
        return ("replace", "regroup")

    @property
    def has_pilot(self) -> bool:
        """Whether a pilot repays what it costs: a single quantile of all rows has nobody to share it with."""
        return self.grouped or len(self.quantiles) > 1

    @property
    def pilot_quantile(self) -> Fraction:
        """Where the pilot looks: in the middle of a table, as far from all quantiles as can be.

        Its surroundings have more mass the nearer they are to it, which would draw an answer that lies there.
        """
        low, high = MIDDLE
        inside = [low, *(q for q in self.quantiles if low < q < high), high]
        first, last = max(pairwise(inside), key=lambda gap: gap[1] - gap[0])
        return (first + last) / 2

    @property
    def shares(self) -> dict[str, Fraction]:
        """The parts of the guarantee: of its ε or ρ."""
        counts = COUNTS_SHARE if self.counts else Fraction(0)
        pilot = PILOT_SHARE if self.has_pilot else Fraction(0)
        intervals = Fraction(0) if self.intervals is None else (1 - counts - pilot) * INTERVALS_SHARE
        values = 1 - counts - pilot - intervals
        shares = {"values": values, "intervals": intervals, "rows": counts, "pilot": pilot}
        return {part: share for part, share in shares.items() if share}


@dataclass(frozen=True)
class Plan:
    """Public, and the whole of what is asked of the rows.

    ``slope`` is that of the distance of all values together. ``interval_slope`` is that of the radius of an interval,
    and ``margins`` say how many rows intervals must have to spare. ``counts_slope`` is the ε of discrete Laplace noise
    on numbers of rows, and ``pilot_slope`` that of both choices of the pilot.
    """

    asked: Asked
    slope: Fraction
    interval_slope: Fraction = Fraction(0)
    margins: tuple[Margin, ...] = ()
    counts_slope: Fraction = Fraction(0)
    pilot_slope: Fraction = Fraction(0)

    @property
    def quantiles(self) -> tuple[Fraction, ...]:
        """In ascending order."""
        return self.asked.quantiles

    @property
    def errors(self) -> tuple[float, ...]:
        """The predicted error of each answer in rows, root mean square, where the base is even around the quantile."""
        if len(self.quantiles) == 1:
            return (deviation_of_one(*self._slopes_of_one),)
        return tuple(each / float(self.slope) for each in deviations(len(self.quantiles)))

    def rows_off(self, beta: float) -> tuple[float, ...]:
        """How many rows each answer may be off with probability ``beta``, where the base is even around the quantile.

        Or nearly so: walks to several answers go farther where round numbers between the rows draw them.
        """
        if len(self.quantiles) == 1:
            return (bound_of_one(*self._slopes_of_one, beta),)
        return tuple(UNEVEN * each / float(self.slope) for each in bounds(len(self.quantiles), beta))

    @property
    def rows_needed(self) -> tuple[int, ...]:
        """How many rows a table should have for each quantile; with fewer an answer may come from far outside of it."""
        steeper = 1 + abs(lean_of(self.quantiles[0])) if len(self.quantiles) == 1 else Fraction(1)
        return tuple(math.ceil(ENOUGH / float(2 * self.slope * steeper * min(q, 1 - q))) for q in self.quantiles)

    @property
    def _slopes_of_one(self) -> tuple[float, float]:
        """Of a rank that is too high, and of one that is too low."""
        lean = lean_of(self.quantiles[0])
        return float(2 * self.slope * (1 + lean)), float(2 * self.slope * (1 - lean))


@lru_cache(maxsize=256)
def plan_of(asked: Asked) -> Plan:
    """The plan with the steepest values.

    Whether the sum of ranges or that of their squares counts is the guarantee's affair: try both.
    """
    return max((_shared(asked, power) for power in (1, 2)), key=lambda plan: plan.slope)


def range_of(share: Fraction) -> Fraction:
    """The range of the distance of one answer from its rank where a row is added or removed (Theorem 16)."""
    return 2 * max(share, 1 - share)


def joint_range(quantiles: Sequence[Fraction], neighbours: Neighbours) -> Fraction:
    """The range of the distance of all answers together (Theorem 17)."""
    if neighbours == "replace":
        return Fraction(4)
    return 4 * (1 - min(high - low for low, high in pairwise((Fraction(0), *quantiles, Fraction(1)))))


def _shared(asked: Asked, power: int) -> Plan:
    """The plan after every part has got its share.

    The ranges of the radii depend on their margins, these on their slope, and that on all ranges. A margin grows the
    less with n the gentler the slope is, so growths at a slope that is too steep bound those at the right one.
    """
    growths = [Fraction(0)] * len(asked.quantiles)
    while True:
        parts = {"values": _values(asked), "intervals": _intervals(asked, growths), "rows": _counts(asked)}
        parts["pilot"] = _pilot(asked)
        factors = {part: _factor(parts[part], share, power) for part, share in asked.shares.items()}
        totals = [
            _total([each.scaled(factor) for part, factor in factors.items() for each in parts[part][change]])
            for change in asked.changes
        ]
        most = Ranges(max(total.l1 for total in totals), max(total.l2_squared for total in totals))
        person = most.scaled(Fraction(asked.rows_per_person))
        affordable = slope(asked.guarantee, Ranges(person.l1 * asked.windows, person.l2_squared * asked.windows))
        steepest = min(affordable, STEEPEST)
        slopes = {part: steepest * factors.get(part, Fraction(0)) for part in parts}
        rule = asked.intervals
        margins = () if rule is None else tuple(rule.margin(q, slopes["intervals"]) for q in asked.quantiles)
        if all(margin.growth <= growth for margin, growth in zip(margins, growths, strict=False)):
            return Plan(asked, slopes["values"], slopes["intervals"], margins, slopes["rows"], slopes["pilot"])
        growths = [max(margin.growth, growth) for margin, growth in zip(margins, growths, strict=True)]


def _values(asked: Asked) -> Part:
    """The range of the values, all together."""

    def values(neighbours: Neighbours) -> list[Ranges]:
        size = joint_range(asked.quantiles, neighbours)
        return [Ranges(size, size**2)]

    return {change: _changed(change, values) for change in asked.changes}


def _intervals(asked: Asked, growths: Sequence[Fraction]) -> Part:
    """The ranges of each quantile's radius, if margins grow by so much with a row (Theorem 18)."""

    def radii(neighbours: Neighbours) -> list[Ranges]:
        alone = [range_of(q) + 2 * growth for q, growth in zip(asked.quantiles, growths, strict=True)]
        # A replaced row may also become one that does not count.
        sizes = [max(size, Fraction(2)) if neighbours == "replace" else size for size in alone]
        return [Ranges(size, size**2) for size in sizes]

    return {change: _changed(change, radii) for change in asked.changes}


def _counts(asked: Asked) -> Part:
    """The ranges of the noise on the numbers of rows."""
    return {change: _changed(change, lambda _: [COUNT]) for change in asked.changes}


def _pilot(asked: Asked) -> Part:
    """The ranges of both choices of the pilot: of the whole table one row changes, whatever group it leaves or joins.

    Where groups are samples, a row that changes its group replaces one in each (Theorem 22).
    """

    def choices(change: Change) -> list[Ranges]:
        times = 2 if change == "replace-in-two" else 1
        rank = range_of(asked.pilot_quantile) if change == "add-remove" else Fraction(2)
        return [Ranges(size, size**2) for size in (times * rank, times * LATTICE)]

    return {change: choices(change) for change in asked.changes}


def _changed(change: Change, under: Callable[[Neighbours], list[Ranges]]) -> list[Ranges]:
    """The ranges under a change; a row that changes its group is removed from one and added to another (Theorem 19)."""
    if change == "regroup":
        return [_total([alone, alone]) for alone in under("add-remove")]
    if change == "replace-in-two":
        return [_total([alone, alone]) for alone in under("replace")]
    return under(change)


def _total(parts: Sequence[Ranges]) -> Ranges:
    zero = Fraction(0)
    return Ranges(sum((part.l1 for part in parts), zero), sum((part.l2_squared for part in parts), zero))


def _factor(part: Part, share: Fraction, power: int) -> Fraction:
    """By what a part's slopes are multiplied so that it costs its share, up to a factor common to all parts."""
    totals = [_total(levels) for levels in part.values()]
    if power == 1:
        return share / max(total.l1 for total in totals)
    exact = share / max(total.l2_squared for total in totals)
    return Fraction(math.isqrt(exact.numerator * ROUNDED**2 // exact.denominator), ROUNDED)
