"""The discrete Gaussian: its exact δ and tails, from its probability mass function.

The pmf is ``exp(-x² / 2σ²) / Z`` on the integers (Canonne, Kamath, Steinke, arXiv:2004.00010v5, Definition 1).
Adding it to an integer that a neighbour moves by at most ``shift`` is (ε, δ)-DP for the δ of docs/proofs.md,
Theorem 6; ``sigma_for`` finds a σ whose δ is at most the one asked for, and has checked it.

Worked number: shift 2, ε = 1, δ = 0.04 needs σ = 2.8220; the textbook formula gives 5.2475.
"""

import math
from statistics import NormalDist

import numpy as np

# Beyond this σ the exact sum has millions of terms; ``sigma_for`` then goes through zCDP, which is sound too.
LARGEST_EXACT_SIGMA = 1e6
# Beyond this σ one step is negligible, and summing a tail would take time and memory.
LARGEST_SUMMED_SIGMA = 1e4
# Covers the rounding errors of the sums below (relative error under 1e-12) many times over.
SAFETY = 1 + 1e-9


def mass(sigma: float) -> float:
    """Z, the sum of exp(-x² / 2σ²) over all integers."""
    if sigma > 8:  # Poisson summation: the two forms differ by a factor 1 + 2·exp(-2π²σ²) < 1 + 1e-500
        return sigma * math.sqrt(2 * math.pi)
    reach = math.ceil(39 * sigma) + 1
    return math.fsum(math.exp(-x * x / (2 * sigma * sigma)) for x in range(-reach, reach + 1))


def tail(sigma: float, at_least: int) -> float:
    """P[|X| ≥ at_least]."""
    if at_least <= 0:
        return 1.0
    last = max(at_least, math.ceil(math.sqrt(at_least**2 + 90 * sigma * sigma)))
    x = np.arange(at_least, last + 1, dtype=np.float64)
    return float(min(1.0, 2 * np.exp(-x * x / (2 * sigma * sigma)).sum() / mass(sigma)))


def two_sided_alpha(sigma: float, beta: float) -> int:
    """The smallest integer k with P[|X| ≥ k] ≤ beta; for a large σ, one that may be a step too large.

    There P[|X| ≥ k] ≤ P[|N(0, σ²)| ≥ k - 1] serves instead of a sum: the falling terms from k on are at most the
    integral from k - 1 on, and Z is at least σ√(2π) (Poisson summation).
    """
    if sigma > LARGEST_SUMMED_SIGMA:
        return math.ceil(sigma * NormalDist().inv_cdf(1 - beta / 2)) + 1
    k = max(1, math.floor(sigma * NormalDist().inv_cdf(1 - beta / 2)) - 1)
    while k > 1 and tail(sigma, k - 1) <= beta:
        k -= 1
    while tail(sigma, k) > beta:
        k += 1
    return k


def delta(sigma: float, shift: int, epsilon: float) -> float:
    """The exact δ at ε of adding the discrete Gaussian where neighbours differ by at most ``shift``.

    Theorem 6: the sum over all x whose privacy loss exceeds ε of p(x)·(1 - exp(ε - loss(x))). Every term is
    positive, so nothing cancels.
    """
    variance = sigma * sigma
    threshold = shift / 2 - epsilon * variance / shift
    first = math.ceil(threshold) - 1
    reach = math.sqrt(threshold * threshold + 90 * variance)  # the terms beyond are below 1e-19 of the first one
    x = np.arange(first, min(first, math.floor(-reach)) - 1, -1, dtype=np.float64)
    loss = (shift * shift - 2 * shift * x) / (2 * variance)
    with np.errstate(under="ignore"):
        terms = np.exp(-x * x / (2 * variance)) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    return float(terms.sum() / mass(sigma))


def _mills(x: float) -> float:
    """(1 - Φ(x)) / φ(x), without overflow for large x (Laplace's continued fraction)."""
    if x < 25:
        return math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2)) * math.exp(x * x / 2)
    fraction = x
    for k in range(40, 0, -1):
        fraction = x + k / fraction
    return 1 / fraction


def continuous_delta(sigma: float, shift: float, epsilon: float) -> float:
    """δ of the continuous Gaussian mechanism (Balle, Wang, arXiv:1805.06530v2, Thm. 8).

    Written with Mills' ratio: e^ε·φ(b) = φ(a) for a = εσ/Δ - Δ/2σ and b = εσ/Δ + Δ/2σ.
    """
    a = epsilon * sigma / shift - shift / (2 * sigma)
    b = epsilon * sigma / shift + shift / (2 * sigma)
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    if a < 0:
        return 0.5 * math.erfc(a / math.sqrt(2)) - density * _mills(b)
    return density * (_mills(a) - _mills(b))


def continuous_sigma(epsilon: float, delta_promised: float, shift: float) -> float:
    """The smallest σ of the continuous Gaussian mechanism, by bisection (its δ falls as σ grows)."""
    low, high = 0.0, shift
    while continuous_delta(high, shift, epsilon) > delta_promised:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:
        if continuous_delta(middle, shift, epsilon) > delta_promised:
            low = middle
        else:
            high = middle
    return high


def sigma_for(epsilon: float, delta_promised: float, shift: int) -> float | None:
    """A σ whose exact δ at ε is at most ``delta_promised``; None where the sum would be too long.

    Starts from the continuous answer, which is right to within the grid's coarseness, and moves up in steps
    of one part in a million, doubling, until the exact check passes; then closes in on the smallest.
    """

    def holds(sigma: float) -> bool:
        return delta(sigma, shift, epsilon) * SAFETY <= delta_promised

    low = high = continuous_sigma(epsilon, delta_promised, shift)
    if high > LARGEST_EXACT_SIGMA:
        return None
    growth = 1e-9
    while not holds(high):
        low, high, growth = high, high * (1 + growth), growth * 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
