"""Claims: the least ε, or ρ, that allows an event to have the probability P on one stream and Q on its neighbour.

ε-DP: P ≤ e^ε·Q. (ε, δ)-DP: P ≤ e^ε·Q + δ. ρ-zCDP: the Rényi divergence of order a of the two outputs is at most aρ,
and seeing whether the event happened is post-processing, so that of two coins with probabilities P and Q is at most
aρ too, for every a (the order 1 is the Kullback-Leibler divergence). Each grows with P and falls with Q where P > Q:
a lower bound of P and an upper bound of Q give a lower bound of ε or ρ.

Worked number: discrete Laplace noise for ε = 1 on a value moved by 2: P = 0.622, Q = 0.229, and ln(P/Q) = 1.
"""

import numpy as np
from numpy.typing import NDArray

from dpfrugal.privacy.guarantees import ApproxDP, Guarantee, PureDP

ORDERS = (1.125, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0)
Numbers = NDArray[np.float64]


def promised(guarantee: Guarantee) -> float:
    """The ε or ρ that must not be exceeded."""
    return guarantee.epsilon if isinstance(guarantee, PureDP | ApproxDP) else guarantee.rho


def symbol(guarantee: Guarantee) -> str:
    """Which of the two it is."""
    return "ε" if isinstance(guarantee, PureDP | ApproxDP) else "ρ"


def weakest() -> Guarantee:
    """A promise that needs no noise: under it an output shows what the noise would hide."""
    return PureDP(epsilon=1e6)


def least_loss(p: Numbers, q: Numbers, guarantee: Guarantee) -> Numbers:
    """The least ε or ρ under which an event may have these probabilities on two neighbours; 0 where all are allowed.

    >>> loss = least_loss(np.array([0.622]), np.array([0.229]), PureDP(epsilon=1.0))
    >>> round(float(loss[0]), 2)
    1.0
    """
    p, q = np.clip(p, 1e-300, 1.0), np.clip(q, 1e-300, 1.0)
    if isinstance(guarantee, PureDP | ApproxDP):
        delta = guarantee.delta if isinstance(guarantee, ApproxDP) else 0.0
        return np.maximum(np.log(np.maximum(p - delta, 1e-300) / q), 0.0)
    rest_p, rest_q = np.maximum(1.0 - p, 1e-300), np.maximum(1.0 - q, 1e-300)
    losses = [p * np.log(p / q) + rest_p * np.log(rest_p / rest_q)]
    for a in ORDERS:
        logs = a * np.log(p) + (1 - a) * np.log(q), a * np.log(rest_p) + (1 - a) * np.log(rest_q)
        losses.append(np.logaddexp(*logs) / (a - 1) / a)
    return np.where(p > q, np.maximum(np.max(losses, axis=0), 0.0), 0.0)
