"""Statistical checks with a stated false-alarm rate. Every check that uses them also has a leg that must fail."""

from collections.abc import Callable

import mpmath
import numpy as np
from numpy.typing import NDArray

# Noise cannot be seeded, so a check may fail by chance: once in 10^9 runs of it.
FALSE_ALARM = 1e-9


def chi_square_p_value(sample: NDArray[np.int64], mass: Callable[[int], float]) -> float:
    """How well integers fit a symmetric probability mass function; cells are pooled to at least 20 expected."""
    reach = 0
    while sample.size * mass(reach + 1) >= 20:
        reach += 1
    points = range(-reach, reach + 1)
    expected = np.array([mass(x) for x in points]) * sample.size
    observed = np.array([np.count_nonzero(sample == x) for x in points], dtype=np.float64)
    outside = sample.size - expected.sum(), sample.size - observed.sum()
    statistic = float(((observed - expected) ** 2 / expected).sum() + (outside[1] - outside[0]) ** 2 / outside[0])
    return float(mpmath.gammainc(len(expected) / 2, statistic / 2, mpmath.inf, regularized=True))


def discrete_laplace(scale: float) -> Callable[[int], float]:
    """The pmf: (1 - a) / (1 + a) · a^|x| with a = exp(-1/b)."""
    a = np.exp(-1 / scale)
    return lambda x: float((1 - a) / (1 + a) * a ** abs(x))


def discrete_gaussian(sigma: float) -> Callable[[int], float]:
    """The pmf: exp(-x²/2σ²) / Z."""
    total = sum(np.exp(-x * x / (2 * sigma**2)) for x in range(int(-40 * sigma) - 1, int(40 * sigma) + 2))
    return lambda x: float(np.exp(-x * x / (2 * sigma**2)) / total)


def oracle_delta(sigma: float, shift: int, epsilon: float) -> mpmath.mpf:
    """Σ max(0, p(x) - e^ε·p(x - shift)), term by term from the definition, at 60 digits."""
    with mpmath.workdps(60):
        variance, reach = mpmath.mpf(sigma) ** 2, int(30 * sigma) + shift + 60
        weights = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * variance)) for x in range(-reach - shift, reach + 1)}
        total = mpmath.fsum(weights.values())
        factor = mpmath.exp(epsilon)
        terms = (weights[x] - factor * weights[x - shift] for x in range(-reach, reach + 1))
        return mpmath.fsum(max(term, mpmath.mpf(0)) for term in terms) / total
