"""Confidence bounds of a probability: against the binomial distribution, summed term by term."""

import math
from collections.abc import Callable

import pytest

from dpfrugal.audit.confidence_bounds import at_least, at_most


def at_least_hits(hits: int, runs: int, p: float) -> float:
    """P[at least so many hits]."""
    return math.fsum(math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(hits, runs + 1))


@pytest.mark.parametrize(("hits", "runs"), [(1, 1), (3, 7), (40, 60), (199, 200)])
@pytest.mark.parametrize("doubt", [0.3, 0.05, 1e-6])
def test_at_least__is_the_probability_that_so_many_hits_are_just_doubtful_under(
    hits: int, runs: int, doubt: float
) -> None:
    assert at_least_hits(hits, runs, at_least(hits, runs, doubt)) == pytest.approx(doubt, rel=1e-9)
    assert at_most(runs - hits, runs, doubt) == pytest.approx(1 - at_least(hits, runs, doubt))


def test_bounds__of_no_hits_and_of_hits_only() -> None:
    assert at_least(0, 50, 0.05) == 0.0
    assert at_most(50, 50, 0.05) == 1.0
    assert at_most(0, 50, 0.05) == pytest.approx(1 - 0.05 ** (1 / 50))


def wrong(bound: Callable[[int, int, float], float], p: float, runs: int, doubt: float) -> float:
    """How often a lower bound exceeds the true probability, exactly."""
    chances = (math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1))
    return math.fsum(chance for k, chance in enumerate(chances) if bound(k, runs, doubt) > p)


@pytest.mark.parametrize("p", [0.01, 0.2, 0.5, 0.93])
def test_at_least__exceeds_the_probability_no_more_often_than_doubted(p: float) -> None:
    assert wrong(at_least, p, 30, 0.05) <= 0.05
    # The leg that must fail: the share itself is no bound.
    assert wrong(lambda hits, runs, _: hits / runs, p, 30, 0.05) > 0.2
