"""Distributions of noise: what each answers of itself, against sums over its probability mass function."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpfrugal.privacy.guarantees import ZCDP, PureDP, Sensitivity, of_noise
from dpfrugal.privacy.noise_distributions import DISTRIBUTIONS, GAUSSIAN, LAPLACE, NoiseDistribution
from tests.support.statistics import discrete_gaussian, discrete_laplace

MASSES: dict[NoiseDistribution, Callable[[float], Callable[[int], float]]] = {
    LAPLACE: discrete_laplace,
    GAUSSIAN: discrete_gaussian,
}
REACH = range(-400, 401)
each = pytest.mark.parametrize("noise", MASSES, ids=lambda noise: noise.name)


@each
@pytest.mark.parametrize("scale", [0.8, 2.0, 10.0])
def test_noise_distribution__has_the_moments_of_its_mass(noise: NoiseDistribution, scale: float) -> None:
    mass = MASSES[noise](scale)
    variance = sum(x * x * mass(x) for x in REACH)
    assert noise.variance(scale) >= variance * (1 - 1e-12)
    assert noise.variance(scale) == pytest.approx(variance, rel=1e-3)
    # by the formulas of continuous noise, which are close once the noise is several steps wide
    if scale > 5:
        assert noise.deviation(scale) == pytest.approx(math.sqrt(variance), rel=0.01)
        assert noise.mean_distance(scale) == pytest.approx(sum(abs(x) * mass(x) for x in REACH), rel=0.01)


@each
@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
def test_noise_distribution__reaches_alpha_with_probability_beta(noise: NoiseDistribution, beta: float) -> None:
    mass = MASSES[noise](10.0)

    def tail(k: float) -> float:
        return sum(mass(x) for x in REACH if abs(x) >= k)

    exact = noise.exact_alpha(10.0, beta)
    assert tail(exact) <= beta < tail(exact - 1)
    assert noise.alpha(10.0, beta) == pytest.approx(exact, abs=1.5)
    assert noise.paper_alpha(10.0, beta) <= noise.alpha(10.0, beta)  # the paper's bounds one tail


@each
@pytest.mark.parametrize("shift", [1, 3])
def test_noise_distribution__losses_are_the_ratios_of_its_mass(noise: NoiseDistribution, shift: int) -> None:
    """Losses are on a lattice; each has the probability of the integers whose ratio it is."""
    mass = MASSES[noise](1.5)
    unit, first, chances, infinite = noise.losses(1.5, shift)
    expected = np.zeros_like(chances)
    for x in range(-16, 17):  # at 16 the Gaussian is below 1e-24
        place = math.log(mass(x) / mass(x - shift)) / unit - first
        assert place == pytest.approx(round(place), abs=1e-6)
        expected[round(place)] += mass(x)
    assert chances == pytest.approx(expected, abs=1e-4 if noise is LAPLACE else 1e-20)
    assert chances.sum() == pytest.approx(1)
    assert infinite < 1e-35


def test_noise_distribution__size_is_epsilon_of_laplace_noise_and_rho_of_gaussian() -> None:
    several = Sensitivity(l1=6, l2_squared=12)
    assert LAPLACE.size(LAPLACE.distance(several) / 12) == 0.5
    assert GAUSSIAN.size(GAUSSIAN.distance(several) / 2) == pytest.approx(1.5)
    assert of_noise(LAPLACE, 12.0, several) == PureDP(epsilon=0.5)
    promised = of_noise(GAUSSIAN, 2.0, several)
    assert isinstance(promised, ZCDP)
    assert promised.rho == pytest.approx(1.5)


def test_noise_distributions__are_found_by_the_names_that_ledgers_record() -> None:
    assert {"laplace": LAPLACE, "gaussian": GAUSSIAN} == DISTRIBUTIONS
    assert PureDP.noise is LAPLACE
    assert ZCDP.noise is GAUSSIAN
    assert LAPLACE.stated(PureDP(epsilon=0.3), None) == 0.3
    assert LAPLACE.stated(ZCDP(rho=0.3), None) is None
    assert GAUSSIAN.stated(ZCDP(rho=0.3), 9.0) == 0.3
