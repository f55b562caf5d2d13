"""Frugal-1U: the paper's algorithm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels import coins
from tests.support import naive

quantiles = st.floats(1e-9, 1 - 1e-9, exclude_min=True, exclude_max=True)
coin_values = st.integers(0, coins.COINS - 1)
reals = st.floats(-100, 100) | st.integers(-100, 100)


@given(q=quantiles, coin=coin_values, estimate=st.integers(-50, 50), item=reals)
def test_step__is_the_papers_algorithm(q: float, coin: int, estimate: int, item: float) -> None:
    assert step(estimate, item, coin, *coins.thresholds(q)) == naive.frugal_1u(
        [item], q, [naive.rand_of(coin)], estimate
    )


def test_frugal__finds_the_quantile() -> None:
    """Eight standard deviations of the jitter: a false alarm less than once in 10^14 runs; coins are seeded."""
    rng = np.random.default_rng(5)
    stream = rng.normal(50, 2, 1_000_000)
    f = dpf.Frugal1U([0.1, 0.5, 0.99], decimals=3, start=45.0, coin_seed=5)
    f.update_many(stream)
    for q, estimate in zip(f.quantiles, f.estimates, strict=True):
        truth = np.quantile(stream, q)
        density = np.mean(np.abs(stream - truth) < 0.1) / 200  # per grid step
        assert abs(estimate - truth) * 1000 < 8 * np.sqrt(q * (1 - q) / density)


def test_frugal__estimates_several_quantiles_as_single_ones() -> None:
    stream = np.random.default_rng(1).normal(0, 30, 5_000)
    several = dpf.Frugal1U([0.9, 0.1, 0.5], decimals=1, coin_seed=3)
    several.update_many(stream)
    for q, estimate in zip(several.quantiles, several.estimates, strict=True):
        single = dpf.Frugal1U(q, decimals=1, coin_seed=3)
        single.update_many(stream)
        assert single.estimate == estimate


def test_frugal__takes_its_start_in_data_units() -> None:
    assert dpf.Frugal1U(0.5, decimals=2, start=12.34).estimate == 12.34


def test_frugal__has_one_estimate_for_one_quantile_only() -> None:
    with pytest.raises(dpf.ParameterError, match="use estimates"):
        _ = dpf.Frugal1U([0.1, 0.2]).estimate
