"""Several quantiles of one table: in which order they are chosen, among which rows, and at what slopes.

Some quantiles, the *pivots*, are chosen on all rows, one after the other. The others are found by halving (Kaplan,
Schnapp, Stemmer, *Differentially Private Approximate Quantiles*, arXiv:2110.05429v2): between two pivots the middle
quantile is chosen among the rows between their answers, then one on each side of it, and so on. A row takes part in one
choice of a level, so a level costs what two choices do, however many it has; a pivot is a level of its own. A choice
that others are made beside is a cut (``mechanism``). The number of pivots and the slopes of the levels are those with
the smallest predicted error, a public function of quantiles, guarantee and neighbours (docs/proofs.md, Theorem 17).

Worked number: the nine deciles at ε = 1 have the pivots 0.4 and 0.6, and are 15 rows off at most (root mean square);
nine choices on all rows would be 25 rows off.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base_measure import Base
from dpfrugal.estimators.table.mechanism import Choice, Cut, choose_cut, rank
from dpfrugal.estimators.table.order_statistics import OrderStatistics
from dpfrugal.privacy.choice import Bits, Ranges, slope
from dpfrugal.privacy.guarantees import Guarantee

Neighbours = Literal["replace", "add-remove"]
MOST_PIVOTS: Final = 8
MOST_MOVED: Final = 16  # with more quantiles than this, pivots stay where they are evenly placed
# By what factors the slope of a level is varied in the search for the smallest error, and the norm that stands for the
# largest error there: the maximum itself has corners at which a search of one level at a time stops.
FACTORS: Final = (1.5, 1.1, 1.02)
NORM: Final = 12
# By how much smaller the predicted errors must be for a plan with cuts: where many rows are equal, cuts cost more.
CUTS_COST: Final = 1.2


@dataclass(frozen=True)
class Step:
    """One choice: of which quantile, between which earlier ones, at what share of all rows or of those between.

    ``cuts`` says that later choices are made beside its answer, some of them among the rows between two answers.
    """

    quantile: int
    low: int | None
    high: int | None
    share: Fraction
    level: int
    of_all: bool
    cuts: bool


@dataclass(frozen=True)
class Plan:
    """The choices in order, and the slope of each level."""

    quantiles: tuple[Fraction, ...]
    steps: tuple[Step, ...]
    slopes: tuple[Fraction, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """The predicted error of each answer in rows, root mean square, where the base is even around the quantile."""
        slopes = np.array([float(part) for part in self.slopes])
        return tuple(np.sqrt(2 * _squares(self.steps) @ slopes**-2.0).tolist())

    def rows_off(self, beta: float) -> tuple[float, ...]:
        """How many rows each answer may be off with probability ``beta``, where the base is even around the quantile.

        Each of the k errors that the answer's rank inherits exceeds its own bound with probability beta / k.
        """
        return tuple(
            sum(part * math.log(len(terms) / beta) / float(self.slopes[level]) for level, part in terms)
            for terms in influences(self.steps)
        )


def evenly(number: int, pivots: int) -> tuple[int, ...]:
    """So many of the quantiles, about equally many others between them."""
    return tuple((2 * i * (number + 1) + pivots + 1) // (2 * (pivots + 1)) - 1 for i in range(1, pivots + 1))


def steps_of(quantiles: Sequence[Fraction], pivots: Sequence[int]) -> tuple[Step, ...]:
    """The choices: first the pivots, each a level, then all others by halving, side by side between the pivots."""
    number = len(quantiles)
    bounds = [*quantiles, Fraction(1), Fraction(0)]  # the last one has the index −1

    def share(middle: int, low: int, high: int) -> Fraction:
        return (bounds[middle] - bounds[low]) / (bounds[high] - bounds[low])

    outer = [-1, *pivots, number]  # the ends stand for no quantile
    first = _halved(0, len(pivots) + 1, lambda middle, low, high: share(outer[middle], outer[low], outer[high]))
    places = [(outer[middle], outer[low], outer[high], at, True) for at, (middle, low, high, _) in enumerate(first)]
    for first_end, last_end in pairwise(outer):
        others = _halved(first_end, last_end, share)
        places += [(middle, low, high, len(pivots) + level, False) for middle, low, high, level in others]
    # If one step is made among the rows between two answers, all ends must be ordered cuts: rows are divided once.
    divides = len(pivots) < number
    ends = {end for _, low, high, _, _ in places for end in (low, high)}
    return tuple(
        Step(
            quantile=middle,
            low=low if low >= 0 else None,
            high=high if high < number else None,
            share=quantiles[middle] if of_all else share(middle, low, high),
            level=level,
            of_all=of_all,
            cuts=divides and middle in ends,
        )
        for middle, low, high, level, of_all in sorted(places, key=lambda place: place[3])
    )


def _halved(low: int, high: int, share: Callable[[int, int, int], Fraction]) -> list[tuple[int, int, int, int]]:
    """The middle between two ends, with the ends and its level, then the middles on either side, and so on.

    Of two in the middle it is the one that divides more evenly.
    """
    found, waiting = [], [(low, high, 0)]
    for first, last, level in waiting:
        if last - first >= 2:
            around = (first + last) // 2, (first + last + 1) // 2
            middle = min(around, key=lambda each: abs(share(each, first, last) - Fraction(1, 2)))
            found.append((middle, first, last, level))
            waiting += [(first, middle, level + 1), (middle, last, level + 1)]
    return found


def range_of(share: Fraction) -> Fraction:
    """The range of a choice's distances where a row is added or removed."""
    return 2 * max(share, 1 - share)


def ranges(steps: Sequence[Step], neighbours: Neighbours) -> list[Ranges]:
    """The ranges of each level's choices together, under one row replaced, or one added or removed (Theorem 17)."""
    levels = []
    for level in range(steps[-1].level + 1):
        largest = sorted((range_of(step.share) for step in steps if step.level == level), reverse=True)[:2]
        if neighbours == "add-remove":
            levels.append(Ranges(largest[0], largest[0] ** 2))
        elif len(largest) == 1:
            levels.append(Ranges(Fraction(2), Fraction(4)))
        else:
            squares = largest[0] ** 2 + largest[1] ** 2
            levels.append(Ranges(largest[0] + largest[1], max(Fraction(4), squares)))
    return levels


def influences(steps: Sequence[Step]) -> list[list[tuple[int, float]]]:
    """For each quantile in order the choices whose error its rank inherits: their level, and what part of the error."""
    parts: dict[int, dict[int, float]] = {}
    for step in steps:
        own = {step.quantile: 1.0}
        for end, weight in () if step.of_all else ((step.low, 1 - step.share), (step.high, step.share)):
            for source, part in {} if end is None else parts[end].items():
                own[source] = own.get(source, 0.0) + float(weight) * part
        parts[step.quantile] = own
    level = {step.quantile: step.level for step in steps}
    return [[(level[source], part) for source, part in parts[quantile].items()] for quantile in sorted(parts)]


def _squares(steps: Sequence[Step]) -> NDArray[np.float64]:
    """For each quantile and level the sum of squares of the parts of errors that it inherits."""
    squares = np.zeros((len(steps), steps[-1].level + 1))
    for index, terms in enumerate(influences(steps)):
        for level, part in terms:
            squares[index, level] += part**2
    return squares


@lru_cache(maxsize=256)
def planned(
    quantiles: tuple[Fraction, ...], guarantee: Guarantee, neighbours: Neighbours, max_items_per_person: int = 1
) -> Plan:
    """The plan whose largest predicted error is smallest, for quantiles in ascending order."""
    plans = []
    # Whether the sum of ranges or that of their squares counts is the guarantee's affair: try both.
    for power in (1, 2):
        for pivots in _promising(quantiles, neighbours, power):
            steps = steps_of(quantiles, pivots)
            levels = ranges(steps, neighbours)
            relative = _relative_slopes(_sizes(levels, power), _squares(steps), power)
            pairs = [part.scaled(factor) for part, factor in zip(levels, relative, strict=True)]
            total = Ranges(sum((p.l1 for p in pairs), Fraction(0)), sum((p.l2_squared for p in pairs), Fraction(0)))
            steepest = slope(guarantee, total.scaled(Fraction(max_items_per_person)))
            plans.append(Plan(quantiles, steps, tuple(steepest * factor for factor in relative)))
    return min(plans, key=lambda plan: max(plan.errors) * (CUTS_COST if any(s.cuts for s in plan.steps) else 1.0))


def _promising(quantiles: tuple[Fraction, ...], neighbours: Neighbours, power: int) -> list[tuple[int, ...]]:
    """The pivots with the smallest errors at equal slopes: evenly placed, then moved one by one while errors fall."""

    @cache
    def error(pivots: tuple[int, ...]) -> float:
        steps = steps_of(quantiles, pivots)
        sizes = _sizes(ranges(steps, neighbours), power)
        return _cost(sizes, np.ones(sizes.size), power) * float(np.sqrt(_squares(steps).sum(axis=1)).max())

    found = []
    for number in range(1, min(len(quantiles), MOST_PIVOTS) + 1):
        best = evenly(len(quantiles), number)
        while len(quantiles) <= MOST_MOVED:
            moved = [(*best[:at], best[at] + by, *best[at + 1 :]) for at in range(number) for by in (-1, 1)]
            moved += [(best[0] + by, *best[1:-1], best[-1] - by) for by in (-1, 1) if number > 1]
            allowed = [each for each in moved if each[0] >= 0 and each[-1] < len(quantiles) and _rising(each)]
            nearest = min(allowed, key=error, default=best)
            if error(nearest) >= error(best):
                break
            best = nearest
        found.append(best)
    return sorted(found, key=error)[:3]


def _rising(numbers: Sequence[int]) -> bool:
    return all(first < second for first, second in pairwise(numbers))


def _sizes(levels: Sequence[Ranges], power: int) -> NDArray[np.float64]:
    """What the ranges of each level add to the sum that a guarantee bounds: of ranges, or of their squares."""
    return np.array([float(part.l1 if power == 1 else part.l2_squared) for part in levels])


def _cost(sizes: NDArray[np.float64], slopes: NDArray[np.float64], power: int) -> float:
    total = float(np.sum(sizes * slopes**power))
    return total if power == 1 else math.sqrt(total)


def _relative_slopes(sizes: NDArray[np.float64], squares: NDArray[np.float64], power: int) -> list[Fraction]:
    """Slopes of the levels relative to each other: varied one at a time while the predicted error falls."""

    def error(slopes: NDArray[np.float64]) -> float:
        return _cost(sizes, slopes, power) * float(np.linalg.norm(np.sqrt(squares @ slopes**-2.0), NORM))

    best = np.ones(sizes.size)
    for factor in FACTORS:
        improved = sizes.size > 1
        while improved:
            improved = False
            for level in range(sizes.size):
                for changed in (factor, 1 / factor):
                    trial = best.copy()
                    trial[level] *= changed
                    if error(trial) < error(best) * (1 - 1e-9):
                        best, improved = trial, True
    return [Fraction(round(1024 * part), 1024) for part in (best / best.max()).tolist()]


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
