"""Bounds of a probability from a count of hits: those of Clopper and Pearson (Biometrika 26, 1934), exact.

Worked number: no hit in 20,000 runs, at a doubt of 5e-7: the probability is at most 0.000725.
"""

import math
from collections.abc import Callable

TINY = 1e-300


def at_least(hits: int, runs: int, doubt: float) -> float:
    """A number that exceeds the true probability with a chance of at most ``doubt``.

    >>> round(at_least(900, 1000, 0.05), 4)
    0.883
    """
    return _where(lambda p: _beta(hits, runs - hits + 1, p) <= doubt)[0] if hits else 0.0


def at_most(hits: int, runs: int, doubt: float) -> float:
    """A number that falls short of the true probability with a chance of at most ``doubt``.

    >>> f"{at_most(0, 20_000, 5e-7):.6f}"
    '0.000725'
    """
    return 1.0 - at_least(runs - hits, runs, doubt)


def _where(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Where a condition that holds near 0 ceases to: the last number seen to hold, and the first seen not to."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (NIST DLMF 8.17.22) and Lentz's method.

    P[at least k hits in n runs of probability x] is that of a = k and b = n - k + 1.
    """
    if not 0.0 < x < 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(b, a, 1.0 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / (_away(1.0 - (a + b) * x / (a + 1)))
    total = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = _away(1.0 + step / c), 1.0 / _away(1.0 + step * d)
            total *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return math.exp(front) * total / a


def _away(value: float) -> float:
    return value if abs(value) > TINY else TINY
