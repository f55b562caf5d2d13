"""Privacy loss distributions of (ε, δ)-DP mechanisms and their composition, on a lattice and rounded upwards.

Randomised response dominates every (ε, δ)-DP mechanism: with probability δ its loss is infinite, otherwise it is ε or
-ε, at odds of e^ε (Kairouz, Oh, Viswanath, arXiv:1311.0776v4). Losses of several mechanisms add up, and
δ(ε) = E[max(0, 1 - e^(ε - loss))]. ``dp-accounting`` composes the same distribution (``from_privacy_parameters``) and
is the oracle of the tests. Here distributions are convolved directly, without a Fourier transform: every term is
positive, so a small δ keeps its digits, and every installation decides alike.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.parameters import exact

MOST_POINTS: Final = 1 << 16
MOST_PAIRS: Final = 16  # more are composed on a coarser lattice (person_move_losses), whose work grows with log n
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
        """The smallest ε for which these losses are (ε, δ)-DP, to a part in 10^10; infinite where there is none.

        Between two losses that follow each other, δ(ε) = A - B·e^ε, which is solved for ε.
        """
        delta *= 1 - 1e-9  # covers the rounding errors of the sums
        if self.infinite > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        low = max(0, math.ceil(-self.first) - 1)  # the last index whose loss may have a larger δ
        high = self.chances.size - 1  # the largest loss, beyond which only infinite ones are
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.delta((middle + self.first) * self.unit) <= delta else (middle, high)
        losses = (np.arange(high, self.chances.size) + self.first) * self.unit
        reference = losses[0]
        above = float(self.chances[high:].sum()) + self.infinite - delta
        theirs = float((self.chances[high:] * np.exp(reference - losses)).sum())
        found = reference + math.log(above / theirs) if above > 0 < theirs else 0.0
        found = min(max(found, (low + self.first) * self.unit, 0.0), reference)
        step = 1e-11 * max(found, self.unit)
        while found < reference and self.delta(found) > delta:  # of the rounding errors of this arithmetic
            found, step = min(found + step, reference), 4 * step
        return float(found)


def losses_of_pairs(pairs: Iterable[tuple[float, float]] | Mapping[tuple[float, float], int]) -> Losses:
    """The losses of randomised responses with these (ε, δ), or with each so many times, composed."""
    return _losses_of_groups(tuple(sorted(Counter(pairs).items())))


@lru_cache(maxsize=64)
def _losses_of_groups(groups: tuple[tuple[tuple[float, float], int], ...]) -> Losses:
    finite = sum(times * math.log1p(-delta) for (_, delta), times in groups)
    unit = _unit([(epsilon, times) for (epsilon, _), times in groups])
    first, chances = 0, np.ones(1)
    for (epsilon, _), times in groups:
        ratio = exact(epsilon) / unit
        up, down = math.ceil(ratio), -math.floor(ratio)
        spread = np.zeros(chances.size + times * (up - down))
        for ups, chance in enumerate(_binomial(times, epsilon)):
            begin = ups * (up - down)
            spread[begin : begin + chances.size] += chance * chances
        first, chances = first + times * down, spread
    return Losses(float(unit), first, chances * math.exp(finite), -math.expm1(finite))


def _unit(groups: list[tuple[float, int]]) -> Fraction:
    """The spacing of a lattice that holds every loss exactly, if coarse enough; else of one that rounds them up."""
    numbers = [exact(epsilon) for epsilon, _ in groups]
    unit = Fraction(math.gcd(*(n.numerator for n in numbers)), math.lcm(*(n.denominator for n in numbers)))
    reach = 2 * sum((number * times for number, (_, times) in zip(numbers, groups, strict=True)), Fraction(0))
    return max(unit, reach / MOST_POINTS)


def _binomial(times: int, epsilon: float) -> list[float]:
    """The probabilities of 0, 1, …, ``times`` losses of ε, each with probability 1 / (1 + e^-ε)."""
    likely = -math.log1p(math.exp(-epsilon))
    ways = [math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1) for k in range(times + 1)]
    return [math.exp(way + times * likely - (times - k) * epsilon) for k, way in enumerate(ways)]
