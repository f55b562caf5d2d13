"""Several quantiles of one table: in which order they are chosen, and among which rows.

Some quantiles, the *pivots*, are chosen on all rows, one after the other. The others are found by halving (Kaplan,
Schnapp, Stemmer, *Differentially Private Approximate Quantiles*, arXiv:2110.05429v2): between two pivots the middle
quantile is chosen among the rows between their answers, then one on each side of it, and so on. A row takes part in one
choice of a level, so a level costs what two choices do, however many it has; a pivot is a level of its own. A choice
that others are made beside is a cut (``mechanism``).

Worked number: of the quantiles .5, .9 and .99 with the pivot .9, the other two are one level, in which .5 is 5/9 of
what lies below the pivot, and .99 is 9/10 of what lies above.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.choice import Ranges


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
