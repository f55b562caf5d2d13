"""Adaptive steps: how far one row moves the estimate of a key, computed from releases alone.

A step is 2^e grid units. A release shows by how many steps an estimate has moved since the last one, noise included. If
that exceeds the noise's standard deviation twice in the same direction, the estimate is still converging and its step
doubles. If it does not, or the direction has changed, the estimate has converged and its step halves, down to one grid
unit. A key without rows moves by noise only, so its step becomes the smallest.

Noise is drawn in units of the step. It shrinks in proportion to the step, the sampling error of the walk only with its
square root: after convergence the step shrinks until noise is no longer the larger of the two, or to one grid unit. All
of this is computed from released values, and so is public (docs/proofs.md, Theorem 10).

Worked number: a median 1,000 grid units away, 100 rows a release, ε = 1: after 2, 4, 6, 10 and 20 releases the error is
900, 600, 35, 24 and 4 grid units on average.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.kernels.bit_layout import STEP_EXPONENT

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
