"""The least ε, or ρ, under which an event may have the probability P on one stream and Q on its neighbour.

ε-DP: P ≤ e^ε·Q. (ε, δ)-DP: P ≤ e^ε·Q + δ. ρ-zCDP: the Rényi divergence of order a of the two outputs is at most aρ,
and seeing whether the event happened is post-processing, so that of two coins with probabilities P and Q is at most
aρ too, for every a (the order 1 is the Kullback-Leibler divergence). Each grows with P and falls with Q where P > Q:
a lower bound of P and an upper bound of Q give a lower bound of ε or ρ. Where any ε or ρ allows P and Q it is 0.

Worked number: discrete Laplace noise for ε = 1 on a value moved by 2: P = 0.622, Q = 0.229, and ln(P/Q) = 1.
"""

import numpy as np
from numpy.typing import NDArray

ORDERS = (1.125, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0)
SMALLEST = 1e-300  # stands for a probability of 0
Probabilities = NDArray[np.float64]


def least_epsilon(p: Probabilities, q: Probabilities, delta: float) -> Probabilities:
    """The least ε of (ε, δ)-DP; δ = 0 for pure ε-DP.

    >>> round(float(least_epsilon(np.array([0.622]), np.array([0.229]), 0.0)[0]), 2)
    1.0
    """
    p, q = np.clip(p, SMALLEST, 1.0), np.clip(q, SMALLEST, 1.0)
    return np.maximum(np.log(np.maximum(p - delta, SMALLEST) / q), 0.0)


def least_rho(p: Probabilities, q: Probabilities) -> Probabilities:
    """The least ρ of ρ-zCDP, as far as some orders show it."""
    p, q = np.clip(p, SMALLEST, 1.0), np.clip(q, SMALLEST, 1.0)
    rest_p, rest_q = np.maximum(1.0 - p, SMALLEST), np.maximum(1.0 - q, SMALLEST)
    losses = [p * np.log(p / q) + rest_p * np.log(rest_p / rest_q)]
    for a in ORDERS:
        logs = a * np.log(p) + (1 - a) * np.log(q), a * np.log(rest_p) + (1 - a) * np.log(rest_q)
        losses.append(np.logaddexp(*logs) / (a - 1) / a)
    return np.where(p > q, np.maximum(np.max(losses, axis=0), 0.0), 0.0)
