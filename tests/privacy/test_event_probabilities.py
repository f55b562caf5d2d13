"""Probabilities of events on neighbours: the least ε or ρ that allows them, for noise whose ε or ρ is known."""

import math

import mpmath
import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.privacy.event_probabilities import least_epsilon, least_rho

ONE = dpf.PureDP(epsilon=1.0)


def test_least_size__within_what_laplace_and_gaussian_noise_have() -> None:
    """The best event of discrete Laplace noise shows ε exactly; no event of Gaussian noise shows more than its ρ."""
    a = math.exp(-1 / ONE.noise_scale(2))
    p, q = np.array([1 / (1 + a)]), np.array([a**2 / (1 + a)])
    assert ONE.least_size(p, q)[0] == pytest.approx(1)
    assert ONE.least_size(q, p)[0] == 0
    zcdp = dpf.ZCDP(rho=0.5)
    sigma = zcdp.noise_scale(2)
    t = np.linspace(-8, 8, 200)
    tails = np.array([[float(mpmath.ncdf((mean - x) / sigma)) for x in t] for mean in (2, 0)])
    losses = zcdp.least_size(tails[0], tails[1])
    assert 0.25 < losses.max() <= 0.5
    wide = dpf.ZCDP(rho=0.3).least_size(tails[0], tails[1])
    assert wide.max() > 0.3  # the same noise does not keep a smaller ρ
    approx = dpf.ApproxDP(epsilon=1.0, delta=0.1)
    assert approx.least_size(np.array([0.3]), np.array([0.1]))[0] == pytest.approx(math.log(2))


def test_least_size__events_of_probability_0_and_1_are_finite() -> None:
    p, q = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])
    for least in (least_epsilon(p, q, 0.0), least_epsilon(p, q, 1e-6), least_rho(p, q)):
        assert np.isfinite(least).all()
        assert least[0] > 10
        assert least[1:].tolist() == [0.0, 0.0]
