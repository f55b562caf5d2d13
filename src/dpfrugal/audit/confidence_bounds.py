"""Exact confidence bounds of a probability from a count of hits (Clopper and Pearson, Biometrika 26, 1934).

Worked number: no hit in 20,000 runs: with confidence 1 - 5e-7 the probability is at most 0.000725.
"""

import math
from collections.abc import Callable

TINY = 1e-300


def at_least(hits: int, runs: int, doubt: float) -> float:
    """A lower bound: it exceeds the true probability with a chance of at most ``doubt``.

    >>> round(at_least(900, 1000, 0.05), 4)
    0.883
    """
    return _largest(lambda p: _beta(hits, runs - hits + 1, p) <= doubt) if hits else 0.0


def at_most(hits: int, runs: int, doubt: float) -> float:
    """An upper bound: it falls below the true probability with a chance of at most ``doubt``.

    >>> f"{at_most(0, 20_000, 5e-7):.6f}"
    '0.000725'
    """
    return 1.0 - at_least(runs - hits, runs, doubt)


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest number in [0, 1] for which a condition that holds near 0 holds, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (NIST DLMF 8.17.22) and Lentz's method.

    P[at least k hits in n runs of probability x] is that of a = k and b = n - k + 1.
    """
    if not 0.0 < x < 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(b, a, 1.0 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / (_nonzero(1.0 - (a + b) * x / (a + 1)))
    total = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = _nonzero(1.0 + step / c), 1.0 / _nonzero(1.0 + step * d)
            total *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return math.exp(front) * total / a


def _nonzero(value: float) -> float:
    return value if abs(value) > TINY else TINY
