"""The discrete Gaussian: its δ, its tails and its σ against sums from the definition."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.privacy import discrete_gaussian
from tests.support.statistics import discrete_gaussian as discrete_gaussian_mass
from tests.support.statistics import oracle_delta


@settings(max_examples=60)
@given(sigma=st.floats(0.15, 25), shift=st.integers(1, 8), epsilon=st.floats(0.01, 8))
def test_delta__equals_the_definition(sigma: float, shift: int, epsilon: float) -> None:
    """The oracle sums over p(x) - e^ε·q(x) with q the pmf moved up by ``shift``; by symmetry either way will do."""
    expected = oracle_delta(sigma, shift, epsilon)
    assert discrete_gaussian.delta(sigma, shift, epsilon) == pytest.approx(float(expected), rel=1e-10, abs=1e-150)


def masses(sigma: float) -> dict[int, float]:
    """The probability of every integer that matters."""
    chance = discrete_gaussian_mass(sigma)
    return {x: chance(x) for x in range(-int(12 * sigma) - 9, int(12 * sigma) + 10)}


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 3.0, 7.99, 8.01, 40.0])
def test_mass__is_the_sum_over_all_integers(sigma: float) -> None:
    reach = int(40 * sigma) + 2
    assert discrete_gaussian.mass(sigma) == pytest.approx(
        math.fsum(math.exp(-x * x / (2 * sigma**2)) for x in range(-reach, reach + 1)), rel=1e-12
    )


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.5, 20.0])
def test_tail__is_the_sum_of_both_sides(sigma: float) -> None:
    for at_least in (-3, 0, 1, 2, round(sigma), round(4 * sigma) + 1):
        expected = math.fsum(p for x, p in masses(sigma).items() if abs(x) >= at_least)
        assert discrete_gaussian.tail(sigma, at_least) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=60)
@given(sigma=st.floats(0.2, 200.0), beta=st.floats(1e-9, 0.9))
def test_two_sided_alpha__is_the_smallest_that_holds(sigma: float, beta: float) -> None:
    k = discrete_gaussian.two_sided_alpha(sigma, beta)
    assert discrete_gaussian.tail(sigma, k) <= beta
    assert k == 1 or discrete_gaussian.tail(sigma, k - 1) > beta


def test_two_sided_alpha__of_enormous_noise_holds_for_the_continuous_one() -> None:
    sigma = 2 * discrete_gaussian.LARGEST_SUMMED_SIGMA
    assert discrete_gaussian.two_sided_alpha(sigma, 0.05) == pytest.approx(1.959964 * sigma, abs=2)


@pytest.mark.parametrize(
    ("sigma", "shift", "epsilon"), [(2.822, 2, 1.0), (10.0, 1, 0.1), (0.7, 3, 20.0), (50.0, 2, 0.01)]
)
def test_continuous_delta__is_the_integral(sigma: float, shift: int, epsilon: float) -> None:
    """∫ max(0, p(x) - e^ε·p(x - shift)) at 30 digits: the set is a half-line that begins where both are equal."""
    with mpmath.workdps(30):
        end = mpmath.mpf(shift) / 2 - epsilon * mpmath.mpf(sigma) ** 2 / shift
        expected = mpmath.ncdf(end / sigma) - mpmath.exp(epsilon) * mpmath.ncdf((end - shift) / sigma)
    assert discrete_gaussian.continuous_delta(sigma, shift, epsilon) == pytest.approx(float(expected), rel=1e-9)


@settings(max_examples=40)
@given(epsilon=st.floats(0.01, 20.0), delta=st.floats(1e-12, 0.3), shift=st.integers(1, 8))
def test_continuous_sigma__is_the_smallest_that_keeps_delta(epsilon: float, delta: float, shift: int) -> None:
    sigma = discrete_gaussian.continuous_sigma(epsilon, delta, shift)
    assert discrete_gaussian.continuous_delta(sigma, shift, epsilon) <= delta
    assert discrete_gaussian.continuous_delta(sigma * (1 - 1e-6), shift, epsilon) > delta


@settings(max_examples=30)
@given(epsilon=st.floats(0.05, 20.0), delta=st.floats(1e-12, 0.3), shift=st.integers(1, 8))
def test_sigma_for__keeps_the_exact_delta(epsilon: float, delta: float, shift: int) -> None:
    sigma = discrete_gaussian.sigma_for(epsilon, delta, shift)
    assert sigma is not None
    assert discrete_gaussian.delta(sigma, shift, epsilon) <= delta


def test_sigma_for__gives_up_where_the_sum_would_be_too_long() -> None:
    assert discrete_gaussian.sigma_for(1e-9, 1e-9, 1) is None
