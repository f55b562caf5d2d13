"""Adaptive steps: how far one row moves the estimate of a key, learnt from releases alone.

A step is 2^e grid units. A release shows how many steps an estimate has come since the last one, noise included. If
that is more than the noise usually is, twice in the same direction, the estimate is on its way: the step doubles. If
it is less, or the direction has turned, the estimate has arrived: the step halves, down to one grid unit. A key
without rows moves by noise only, and so comes to the smallest step.

Noise is drawn in steps, so it shrinks with them, and faster than the jitter of the walk, which goes as their square
root: a settled key's step comes down to where noise is no longer the larger of the two, or to one grid unit. All of
this is computed from released values: it is public (docs/proofs.md, Theorem 10).

Worked number: a median 1,000 grid units away, 100 rows a release, ε = 1: after 2, 4, 6, 10 and 20 releases the error is
900, 600, 35, 24 and 4 grid units on average.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.kernels.layout import STEP_EXPONENT

# The upper bits of a step's byte: whether the last release moved the estimate up or down by more than noise.
UP: Final = 0b0010_0000
DOWN: Final = 0b0100_0000
# 2^62 + 2^24 times the rows between two releases must stay below 2^63.
LARGEST_EXPONENT: Final = 24


def exponents(steps: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The e of every step."""
    return (steps & STEP_EXPONENT).astype(np.int64)


def adapted(steps: NDArray[np.uint8], moved: NDArray[np.float64], usual: float) -> NDArray[np.uint8]:
    """The next steps, after a release that moved the estimates by so many steps of theirs."""
    direction = np.where(moved > usual, UP, np.where(moved < -usual, DOWN, 0)).astype(np.uint8)
    last = steps & (UP | DOWN)
    again = (direction != 0) & (direction == last)
    first = (direction != 0) & (last == 0)
    change = np.where(again, 1, np.where(first, 0, -1))
    return np.clip((steps & STEP_EXPONENT).astype(np.int8) + change, 0, LARGEST_EXPONENT).astype(np.uint8) | direction
