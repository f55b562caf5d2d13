"""Which quantiles are pivots, and how the slopes of levels compare: those with the smallest predicted error.

What a guarantee bounds is the sum of the levels' sizes times their slopes (``power`` 1), or of the squares of both
(``power`` 2). All of it is computed from public quantities, before any row is looked at.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.choices.levels import Step, evenly, influences, steps_of

MOST_PIVOTS: Final = 8
MOST_MOVED: Final = 16  # with more quantiles than this, pivots stay where they are evenly placed
# By what factors the slope of a level is varied in the search for the smallest error, and the norm that stands for the
# largest error there: the maximum itself has corners at which a search of one level at a time stops.
FACTORS: Final = (1.5, 1.1, 1.02)
NORM: Final = 12


def squares_of(steps: Sequence[Step]) -> NDArray[np.float64]:
    """For each quantile and level the sum of squares of the parts of errors that it inherits."""
    squares = np.zeros((len(steps), steps[-1].level + 1))
    for index, terms in enumerate(influences(steps)):
        for level, part in terms:
            squares[index, level] += part**2
    return squares


def promising(
    quantiles: tuple[Fraction, ...], sizes_of: Callable[[Sequence[Step]], NDArray[np.float64]], power: int
) -> list[tuple[int, ...]]:
    """The pivots with the smallest errors at equal slopes: evenly placed, then moved one by one while errors fall.

    ``sizes_of`` says what each level of such steps costs.
    """

    @cache
    def error(pivots: tuple[int, ...]) -> float:
        steps = steps_of(quantiles, pivots)
        sizes = sizes_of(steps)
        return _cost(sizes, np.ones(sizes.size), power) * float(np.sqrt(squares_of(steps).sum(axis=1)).max())

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


def _cost(sizes: NDArray[np.float64], slopes: NDArray[np.float64], power: int) -> float:
    total = float(np.sum(sizes * slopes**power))
    return total if power == 1 else math.sqrt(total)


def relative_slopes(sizes: NDArray[np.float64], squares: NDArray[np.float64], power: int) -> list[Fraction]:
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
