"""How far the answers of a joint choice are off, where the base is even around every quantile.

The distances d₁, …, dₘ of ranks are then a walk of m + 1 steps from 0 to 0, with the density exp(−slope · Σ |step|).
The sum of k such steps has a density ∝ e^(−x)·θₖ₋₁(x) at x = slope·|d|, with the reverse Bessel polynomials θ₀ = 1,
θ₁ = x + 1, θₖ = (2k − 1)·θₖ₋₁ + x²·θₖ₋₂, so |dⱼ| has the density ∝ e^(−2x)·θⱼ₋₁(x)·θₘ₋ⱼ(x): one factor for the steps
on either side of it.

One answer needs no walk: its choice leans (``mechanism``), so d has the density exp(−above·d) above the rank and
exp(−below·|d|) below it.

Worked number: for one quantile without a lean that is e^(−2x), with the slope 1/4 at ε = 1: 2.8 rows (root mean
square); at q = 0.99 it is 3.1.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

POINTS: Final = 4096


def _area(densities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The trapezoids under each, in units of half the distance of the places; numpy 1.26 has no ``trapezoid``."""
    return np.asarray((densities[:, 1:] + densities[:, :-1]).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Bridge:
    """The densities of slope·|dⱼ| for each of m answers, at evenly spaced places from 0 on."""

    places: NDArray[np.float64]
    densities: NDArray[np.float64]

    def deviations(self) -> list[float]:
        """The root mean square of each."""
        squares = _area(self.densities * self.places**2)
        return np.sqrt(squares / _area(self.densities)).tolist()  # type: ignore[no-any-return]

    def bounds(self, beta: float) -> list[float]:
        """What each exceeds with a probability of at most ``beta``."""
        # Sums from the right over cells, each at its larger end: no smaller than the tails, which are tiny there.
        cells = np.maximum(self.densities[:, 1:], self.densities[:, :-1])
        tails = np.cumsum(cells[:, ::-1], axis=1)[:, ::-1]
        whole = np.minimum(self.densities[:, 1:], self.densities[:, :-1]).sum(axis=1)
        cells_below = [np.searchsorted(-tail, -beta * all_) for tail, all_ in zip(tails, whole, strict=True)]
        return self.places[cells_below].tolist()  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def bridge(answers: int, reach: float = 40.0) -> Bridge:
    """That of so many answers, up to where all but about e^(−2·reach) of it lies."""
    places = np.linspace(0.0, answers + reach, POINTS)
    sums = [np.exp(-places), np.exp(-places) * (1 + places)]  # e^-x · θₖ(x) / θₖ(0)
    for k in range(2, answers):
        sums.append(sums[-1] + places**2 * sums[-2] / ((2 * k - 1) * (2 * k - 3)))
    return Bridge(places, np.array([sums[j] * sums[answers - 1 - j] for j in range(answers)]))


def deviations(answers: int) -> list[float]:
    """Root mean squares of slope·|dⱼ|."""
    return bridge(answers).deviations()


def deviation_of_one(above: float, below: float) -> float:
    """The root mean square of d for one answer, by its slopes on either side."""
    return math.sqrt(2 * (above**-3 + below**-3) / (1 / above + 1 / below))


def bound_of_one(above: float, below: float, beta: float) -> float:
    """What |d| exceeds with a probability of at most ``beta``."""
    low, high = 0.0, math.log(1 / beta) / min(above, below)
    for _ in range(60):
        middle = (low + high) / 2
        tail = (below * math.exp(-above * middle) + above * math.exp(-below * middle)) / (above + below)
        low, high = (middle, high) if tail > beta else (low, middle)
    return high


def bounds(answers: int, beta: float) -> list[float]:
    """What slope·|dⱼ| exceeds with a probability of at most ``beta``, for each j."""
    return bridge(answers, 40.0 + math.ceil(math.log(1 / beta))).bounds(beta)
