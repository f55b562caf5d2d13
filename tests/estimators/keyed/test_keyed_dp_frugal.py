"""A quantile per key: its noise, what a release looks like, and that it finds the quantiles."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.sensitivity import keyed_sensitivity
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.statistics import FALSE_ALARM, chi_square_p_value, discrete_laplace

ONE = dpf.PureDP(epsilon=1.0)


def make(**options: Any) -> dpf.KeyedDPFrugal1U:
    return dpf.KeyedDPFrugal1U(0.6, ONE, **{"keys": ["a", "b"], **options})


def raw(k: dpf.KeyedDPFrugal1U) -> list[list[int]]:
    """The raw state, which only a test looks at."""
    return list(k._state.estimates.tolist())


# Numbers on the lattices of keys a and b. Two releases move a up by more than noise: its step is 2 from then on.
# In the first, a has arrived and its step is 1 again; in the second it goes on, to a step of 4.
def test_keyed_sensitivity__is_that_of_a_person() -> None:
    assert keyed_sensitivity(1, 1, None) == Sensitivity(2, 4)
    assert keyed_sensitivity(3, 1, None) == Sensitivity(6, 12)
    assert keyed_sensitivity(1, 5, None) == Sensitivity(10, 100)
    # Five rows in each of three keys: no worse than fifteen rows in L1, better in L2.
    assert keyed_sensitivity(1, 5, 3) == Sensitivity(30, 300)
    assert keyed_sensitivity(1, 15, None) == Sensitivity(30, 900)


def test_keyed_release__draws_noise_for_every_key_in_its_own_steps() -> None:
    """False alarm 1e-9, for keys without a row; noise in grid units must fail the same check."""
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=range(6_000), max_items_per_person=2)
    k._state = replace(k._state, steps=np.full((6_000, 1), 3, dtype=np.uint8), widest=8)
    table = k.release()
    grid_units = table["value"].to_numpy().astype(np.int64)
    assert (grid_units % 8 == 0).all()
    assert chi_square_p_value(grid_units // 8, discrete_laplace(4.0)) > FALSE_ALARM
    assert chi_square_p_value(grid_units, discrete_laplace(4.0)) < FALSE_ALARM
    assert set(table["alpha"].to_pylist()) == {8 * ONE.alpha(0.05, Sensitivity(4, 16), exact=True)}


def test_keyed_release__is_a_table_with_its_claim() -> None:
    k = dpf.KeyedDPFrugal1U([0.9, 0.1], dpf.ZCDP(rho=0.5), keys=["x", "y"], decimals=2, max_items_per_person=3)
    k.update_many(["x"] * 50 + ["z"] * 3, [1.0] * 53)
    table = k.release()
    assert isinstance(table, pa.Table)
    assert table["key"].to_pylist() == ["x", "x", "y", "y"]
    assert table["quantile"].to_pylist() == [0.9, 0.1, 0.9, 0.1]
    assert [str(kind) for kind in table.schema.types[1:]] == ["double"] * 3
    values = table["value"].to_numpy().reshape(2, 2)
    assert (values[:, 0] >= values[:, 1]).all(), "values must be in the order of q"
    assert np.allclose(values * 100, np.round(values * 100))
    claim = {name.decode(): text.decode() for name, text in table.schema.metadata.items()}
    assert claim["guarantee"] == "ρ=0.5"
    assert (claim["unit"], claim["items"], claim["beta"]) == ("person of ≤ 3 items", "53", "0.05")
    assert "key" in claim["neighbours"]
    assert isinstance(table.to_pandas(), pd.DataFrame)
    assert pl.from_arrow(table).shape == (4, 4)
    assert k.keys.to_pylist() == ["x", "y"]
    assert (k.quantiles, k.guarantee, k.items) == ((0.9, 0.1), dpf.ZCDP(rho=0.5), 53)


def test_keyed_release__shows_the_largest_alpha_where_noise_crosses_quantiles(monkeypatch: pytest.MonkeyPatch) -> None:
    state = dpf.KeyedDPFrugal1U([0.5, 0.9], ONE, keys=["x", "y"])._state
    state = replace(state, steps=np.array([[3, 0], [3, 0]], dtype=np.uint8), widest=8)
    monkeypatch.setattr(noise, "add_noise_to_many", lambda *_: np.array([4, 5, 0, 5]))
    values, exponents, _ = state.release(None, ONE, keyed_sensitivity(2, 1, None), None)
    assert values.tolist() == [[5, 32], [0, 5]]
    assert exponents.tolist() == [[3, 3], [3, 0]]


def test_keyed_dp_frugal__shows_no_trace_of_the_counts_of_keys() -> None:
    shown = []
    for rows in (["x"] * 900, ["y"] * 900):
        k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["x", "y"], coin_seed=1)
        k.update_many(rows, np.full(900, 4242.0))
        assert max(raw(k))[0] > 400
        assert str(max(raw(k))[0]) not in repr(k)
        shown.append((repr(k), k.release().drop_columns(["value"]).to_pylist(), k.release().schema.metadata))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("adaptive_steps", [True, False])
def test_keyed_release__re_anchors_every_key_and_is_repeated_until_a_row_comes(adaptive_steps: bool) -> None:
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=0.01), keys=range(50), decimals=1, adaptive_steps=adaptive_steps)
    k.update_many(np.zeros(500, dtype=np.int64), np.full(500, 99.0))
    first = k.release()
    assert k.release() is first
    assert [point / 10 for (point,) in raw(k)] == first["value"].to_pylist()
    k.update_many([-1], [3.0])  # a row of no declared key is a row
    second = k.release()
    assert (np.array(second["value"]) != np.array(first["value"])).mean() > 0.8
    assert second.schema.metadata[b"items"] == b"501"


def test_keyed_release__before_any_row_is_the_noisy_starts() -> None:
    """Noise of scale 2 reaches 100 with probability 2e-22."""
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["x", "y"], start=[1_000, -1_000])
    assert np.abs(k.release()["value"].to_numpy() - [1_000, -1_000]).max() < 100


def test_keyed_release__puts_noise_beyond_the_grid_back_on_it() -> None:
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=1e-17), keys=range(40), start=-4.6e18)
    for _ in range(4):
        k.update_many([0], [np.inf])
        assert np.abs(k.release()["value"].to_numpy()).max() <= 2.0**62


@pytest.mark.parametrize("guarantee", [ONE, dpf.ApproxDP(epsilon=1, delta=1e-6), dpf.ZCDP(rho=0.5)], ids=repr)
def test_keyed_dp_frugal__finds_the_quantile_of_each_key(guarantee: Guarantee) -> None:
    """Ten standard deviations of jitter and noise together."""
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 3, 300_000)
    k = dpf.KeyedDPFrugal1U([0.5, 0.9], guarantee, keys=[0, 1, 2], decimals=1)
    k.update_many(keys, rng.normal(30, 2, 300_000) + 20 * keys)
    found = k.release()["value"].to_numpy().reshape(3, 2)
    true = np.array([[0.0, 1.2816 * 2]]) + 30 + 20 * np.arange(3)[:, np.newaxis]
    assert np.abs(found - true).max() < 10 * (0.1 * np.sqrt(0.25 / 0.0087) + k.release()["alpha"][0].as_py() / 2)


def test_keyed_state__takes_eight_bytes_per_key_and_one_for_the_step() -> None:
    for quantiles in ([0.5], [0.5, 0.9, 0.99]):
        k = dpf.KeyedDPFrugal1U(quantiles, ONE, keys=range(1_000))
        assert k._state.estimates.nbytes == 8_000 * len(quantiles)
        assert k._state.steps is not None
        assert k._state.steps.nbytes == 1_000 * len(quantiles)
        assert dpf.KeyedDPFrugal1U(quantiles, ONE, keys=range(1_000), adaptive_steps=False)._state.steps is None
