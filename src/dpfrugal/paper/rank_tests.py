"""Statistical tests on repeated measurements: what holds for ranks within each repetition, without assuming a law.

A row of the matrix is a repetition, a column a parameter value. Under the null hypothesis the values of a row are
exchangeable; ties get middle ranks and their own null distribution.
"""

import math
from collections.abc import Sequence
from itertools import permutations
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
RESAMPLES: Final = 9999
RESAMPLING_SEED: Final = 1  # the same rows always give the same p-value


def middle_ranks(row: Sequence[float] | Matrix) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs.

    >>> middle_ranks([3.0, 1.0, 3.0]).tolist()
    [2.5, 1.0, 2.5]
    """
    values = np.asarray(row, dtype=np.float64)
    below = (values[None, :] < values[:, None]).sum(axis=1)
    upto = (values[None, :] <= values[:, None]).sum(axis=1)
    return np.asarray((below + upto + 1) / 2)


def trend_p_value(matrix: Matrix) -> float:
    """Page's test (1963), exact: the chance of a rise from column to column at least this steady.

    A fall is tested by reversing the columns. The statistic is the sum over rows of Σ column · rank; its exact null
    distribution is that of one row's permutations, convolved.
    """
    columns = np.arange(1, matrix.shape[1] + 1)
    observed, null = 0, np.ones(1)
    for row in matrix:
        halves = (2 * middle_ranks(row)).astype(np.int64)  # middle ranks are halves
        observed += int(halves @ columns)
        sums = [int(np.array(order) @ columns) for order in permutations(halves.tolist())]
        null = np.convolve(null, np.bincount(sums) / len(sums))
    return float(min(null[observed:].sum(), 1.0))


def dependence_p_value(matrix: Matrix) -> float:
    """Friedman's test (1937), by permutation: the chance of column sums of ranks at least this different."""
    ranks = np.array([middle_ranks(row) for row in matrix])
    observed = _spread(ranks.sum(axis=0))
    rng = np.random.default_rng(RESAMPLING_SEED)
    shuffled = rng.permuted(np.broadcast_to(ranks, (RESAMPLES, *ranks.shape)), axis=2)
    hits = int((_spread(shuffled.sum(axis=1)) >= observed * (1 - 1e-12)).sum())
    return (1 + hits) / (1 + RESAMPLES)


def _spread(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of squares about the mean, along the last axis."""
    return np.asarray(((sums - sums.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1))


def at_least_p_value(successes: int, trials: int, probability: float) -> float:
    """P[X ≥ successes] for a binomial X.

    >>> at_least_p_value(2, 2, 0.5)
    0.25
    """
    logs = [
        math.lgamma(trials + 1)
        - math.lgamma(k + 1)
        - math.lgamma(trials - k + 1)
        + k * math.log(probability)
        + (trials - k) * math.log1p(-probability)
        for k in range(successes, trials + 1)
    ]
    return float(min(math.fsum(math.exp(log) for log in logs), 1.0))


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval (1927) for a probability.

    >>> [round(end, 4) for end in binomial_interval(40, 1000)]
    [0.0295, 0.054]
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    reach = z / (1 + z**2 / trials) * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
