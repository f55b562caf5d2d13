"""The tests that decide over the paper's claims: exact where they can be enumerated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.paper.rank_tests import (
    at_least_p_value,
    binomial_interval,
    dependence_p_value,
    middle_ranks,
    trend_p_value,
)

small_matrices = st.lists(st.lists(st.integers(0, 3).map(float), min_size=3, max_size=3), min_size=1, max_size=3).map(
    np.array
)


def orders(matrix: np.ndarray) -> list[np.ndarray]:
    """Every way of permuting within rows."""
    rows = [list(itertools.permutations(row)) for row in matrix.tolist()]
    return [np.array(choice) for choice in itertools.product(*rows)]


def rise(matrix: np.ndarray) -> float:
    return float(sum(middle_ranks(row) @ np.arange(row.size) for row in matrix))


def spread(matrix: np.ndarray) -> float:
    sums = sum(middle_ranks(row) for row in matrix)
    return float(np.var(sums))


@settings(max_examples=60)
@given(small_matrices)
def test_trend_test__is_exact(matrix: np.ndarray) -> None:
    shuffled = [rise(order) for order in orders(matrix)]
    enumerated = np.mean([value >= rise(matrix) - 1e-9 for value in shuffled])
    assert trend_p_value(matrix) == pytest.approx(enumerated, abs=1e-12)


@settings(max_examples=20)
@given(small_matrices)
def test_dependence_test__is_exact_up_to_resampling(matrix: np.ndarray) -> None:
    shuffled = [spread(order) for order in orders(matrix)]
    enumerated = np.mean([value >= spread(matrix) - 1e-9 for value in shuffled])
    # The resampling is seeded; seven standard errors are passed once in 10^11 matrices.
    assert abs(dependence_p_value(matrix) - enumerated) < 7 * 0.5 / 100


def test_trend_test__finds_a_perfect_trend() -> None:
    assert trend_p_value(np.array([[1.0, 2.0, 3.0, 4.0]])) == pytest.approx(1 / 24)
    assert trend_p_value(np.array([[1.0, 2.0, 3.0, 4.0]] * 3)) == pytest.approx(1 / 24**3)
    assert trend_p_value(np.array([[4.0, 3.0, 2.0, 1.0]] * 3)) == pytest.approx(1.0)
    assert trend_p_value(np.ones((5, 4))) == pytest.approx(1.0)


@pytest.mark.parametrize(("successes", "trials", "p"), [(0, 5, 0.3), (3, 5, 0.3), (5, 5, 0.3), (40, 300, 0.1)])
def test_binomial_tail__is_the_sum(successes: int, trials: int, p: float) -> None:
    enumerated = sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1))
    assert at_least_p_value(successes, trials, p) == pytest.approx(enumerated, rel=1e-9)


def test_binomial_interval__covers_as_often_as_it_says() -> None:
    trials, p = 1000, 0.04
    masses = [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(120)]
    covered = sum(
        mass for k, mass in enumerate(masses) if binomial_interval(k, trials)[0] <= p <= binomial_interval(k, trials)[1]
    )
    assert 0.94 < covered < 0.965
