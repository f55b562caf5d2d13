"""Privacy loss distributions of (ε, δ)-DP mechanisms and their composition, on a lattice and rounded upwards.

Randomised response dominates every (ε, δ)-DP mechanism: with probability δ its loss is infinite, otherwise it is ε or
-ε, at odds of e^ε (Kairouz, Oh, Viswanath, arXiv:1311.0776v4). Losses of several mechanisms add up, and
δ(ε) = E[max(0, 1 - e^(ε - loss))]. ``dp-accounting`` composes the same distribution (``from_privacy_parameters``) and
is the oracle of the tests. Here distributions are convolved directly, without a Fourier transform: every term is
positive, so a small δ keeps its digits, and every installation decides alike.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_POINTS: Final = 1 << 16
MOST_PAIRS: Final = 2000  # more would take seconds
LARGEST_EPSILON: Final = 100.0


@dataclass(frozen=True)
class Losses:
    """A privacy loss distribution: the probability of each multiple of ``unit``, from ``first`` on, and of infinity."""

    unit: float
    first: float  # whole or half
    chances: NDArray[np.float64]
    infinite: float

    def delta(self, epsilon: float) -> float:
        """The smallest δ for which these losses are (ε, δ)-DP."""
        losses = (np.arange(self.chances.size) + self.first) * self.unit
        above = losses > epsilon
        return self.infinite + float((self.chances[above] * -np.expm1(epsilon - losses[above])).sum())

    def epsilon(self, delta: float) -> float:
        """The smallest ε for which these losses are (ε, δ)-DP, to a part in 10^10; infinite where there is none."""
        delta *= 1 - 1e-9  # covers the rounding errors of the sums
        if self.infinite > delta:
            return math.inf
        low, high = 0.0, max(0.0, (self.chances.size - 1 + self.first) * self.unit)
        if self.delta(low) <= delta:
            return low
        while high - low > 1e-10 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def losses_of_pairs(pairs: Sequence[tuple[float, float]]) -> Losses:
    """The losses of randomised responses with these (ε, δ), composed."""
    return _losses_of_groups(tuple(sorted(Counter(pairs).items())))


@lru_cache(maxsize=64)
def _losses_of_groups(groups: tuple[tuple[tuple[float, float], int], ...]) -> Losses:
    finite = sum(times * math.log1p(-delta) for (_, delta), times in groups)
    unit = _unit([(epsilon, times) for (epsilon, _), times in groups])
    first, chances = 0, np.ones(1)
    for (epsilon, _), times in groups:
        ratio = Fraction(repr(epsilon)) / unit
        up, down = math.ceil(ratio), -math.floor(ratio)
        spread = np.zeros(chances.size + times * (up - down))
        for ups, chance in enumerate(_binomial(times, epsilon)):
            begin = ups * (up - down)
            spread[begin : begin + chances.size] += chance * chances
        first, chances = first + times * down, spread
    return Losses(float(unit), first, chances * math.exp(finite), -math.expm1(finite))


def _unit(groups: list[tuple[float, int]]) -> Fraction:
    """The spacing of a lattice that holds every loss exactly, if coarse enough; else of one that rounds them up."""
    numbers = [Fraction(repr(epsilon)) for epsilon, _ in groups]
    unit = Fraction(math.gcd(*(n.numerator for n in numbers)), math.lcm(*(n.denominator for n in numbers)))
    reach = 2 * sum((number * times for number, (_, times) in zip(numbers, groups, strict=True)), Fraction(0))
    return max(unit, reach / MOST_POINTS)


def _binomial(times: int, epsilon: float) -> list[float]:
    """The probabilities of 0, 1, …, ``times`` losses of ε, each with probability 1 / (1 + e^-ε)."""
    likely = -math.log1p(math.exp(-epsilon))
    ways = [math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1) for k in range(times + 1)]
    return [math.exp(way + times * likely - (times - k) * epsilon) for k, way in enumerate(ways)]
