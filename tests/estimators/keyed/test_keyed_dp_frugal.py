"""A quantile per key: the guarantee over all keys together, exactly, by enumeration; and what a release looks like."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.estimators.keyed.keyed_dp_frugal import keyed_sensitivity
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels import coins
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.naive import neighbours
from tests.support.statistics import FALSE_ALARM, chi_square_p_value, discrete_laplace

ONE = dpf.PureDP(epsilon=1.0)
Row = tuple[str, float]


def make(**options: Any) -> dpf.KeyedDPFrugal1U:
    return dpf.KeyedDPFrugal1U(0.6, ONE, **{"keys": ["a", "b"], **options})


def raw(k: dpf.KeyedDPFrugal1U) -> list[list[int]]:
    """The raw state, which only a test looks at."""
    return list(k._state.estimates.tolist())


def feed(k: dpf.KeyedDPFrugal1U, rows: Sequence[Row]) -> None:
    k.update_many([key for key, _ in rows], [value for _, value in rows])


def seeds_of_all_coin_kinds(rows: int) -> list[int]:
    """Seeds whose first coins at q = 0.6 allow nothing, a step up, or both, in every combination there is."""
    up_from, down_from = coins.thresholds(0.6)
    found: dict[tuple[int, ...], int] = {}
    for seed in range(2_000):
        tape = [coins.coin(coins.key_from_seed(seed), position) for position in range(rows)]
        found.setdefault(tuple((coin >= up_from) + (coin >= down_from) for coin in tape), seed)
    assert len(found) == 3**rows
    return list(found.values())


ROWS: list[Row] = [("a", -9.0), ("a", 9.0), ("b", -9.0), ("b", 9.0), ("b", 0.0), ("elsewhere", 9.0)]


class PlainlyPerKey(dpf.KeyedDPFrugal1U):
    """Gives each key a coin counter of its own, which a changed key shifts."""

    def _take(self, keys: Any, values: Any, rows: int) -> None:
        state, counters = self._state.copy(), getattr(self, "_counters", {})
        for code, value in zip(keys.next(rows).tolist(), values, strict=True):
            if code >= 0:
                coin = coins.coin(state.path.key, counters.get(code, 0))
                counters[code] = counters.get(code, 0) + 1
                estimate = int(state.estimates[code, 0])
                state.estimates[code, 0] = step(estimate, value, coin, *state.path.thresholds[0])
            state.clock[0] += 1
        self._state, self._counters = state, counters


def distances(kind: Callable[..., dpf.KeyedDPFrugal1U], seeds: Sequence[int]) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of the raw states of neighbours, over all streams of three rows."""
    largest, largest_squared = 0, 0
    for seed in seeds:
        states = {}
        for stream in itertools.product(ROWS, repeat=3):
            k = kind(0.6, ONE, keys=["a", "b"], coin_seed=seed)
            feed(k, stream)
            states[stream] = k._state.estimates[:, 0].copy()
        for stream, state in states.items():
            for other in neighbours(stream, ROWS):
                apart = np.abs(state - states[other])
                largest, largest_squared = max(largest, int(apart.sum())), max(largest_squared, int(apart @ apart))
    return largest, largest_squared


def test_a_row_that_changes_its_value_and_its_key_moves_all_keys_together_by_two() -> None:
    """Theorem 10 over every coin sequence, stream and neighbour; the bounds are reached."""
    assert distances(dpf.KeyedDPFrugal1U, seeds_of_all_coin_kinds(3)) == (2, 4)


def test_the_enumeration_catches_coins_that_are_counted_per_key() -> None:
    """A row that leaves a key shifts the coins of all its later rows."""
    assert distances(PlainlyPerKey, seeds_of_all_coin_kinds(3)[::2])[0] > 2


class Tape:
    """Stands in for the noise: answers with chosen numbers and records the raw ones they hide."""

    def __init__(self, output: Sequence[int]) -> None:
        self.output = np.array(output)
        self.raw = self.output

    def __call__(self, values: NDArray[np.int64], *_: object) -> NDArray[np.int64]:
        self.raw = values.copy()
        return self.output


FAR_ROWS = [(0, -99), (0, 99), (1, -99), (1, 99), (-1, 99)]
# Numbers on the lattices of keys a and b. Two releases move a up by more than noise: its step is 2 from then on.
PRIMING = [[5, 0], [10, 0]]
# In the first, a has arrived and its step is 1 again; in the second it goes on, to a step of 4.
TRANSCRIPTS = [[[4, 1], [9, 0]], [[4, 1], [6, 1]], [[9, -1], [5, 0]], [[9, -1], [2, -2]]]


def largest_log_ratio(seed: int, patch: pytest.MonkeyPatch) -> int:
    """The largest log-likelihood ratio of any transcript, over all neighbours, in units of 1/scale.

    With discrete Laplace noise, P[outputs | stream] is proportional to exp(-Σ|output - raw number| / scale): the ratio
    is exact in integers. Two periods of two rows, after two releases that made the steps of the keys differ.
    """
    largest = 0
    for transcript in TRANSCRIPTS:
        costs = {}
        start = make(coin_seed=seed)._state
        for output in PRIMING:
            _, start = after(start, (), output, patch)
        for first in itertools.product(FAR_ROWS, repeat=2):
            cost, middle = after(start, first, transcript[0], patch)
            for second in itertools.product(FAR_ROWS, repeat=2):
                costs[first + second] = cost + after(middle, second, transcript[1], patch)[0]
        for stream, cost in costs.items():
            for other in neighbours(stream, FAR_ROWS):
                largest = max(largest, abs(cost - costs[other]))
    return largest


def after(state: KeyedState, rows: Any, output: list[int], patch: pytest.MonkeyPatch) -> tuple[int, KeyedState]:
    """The state after some rows and a release with this output; and how much noise that took, in steps."""
    tape = Tape(output)
    patch.setattr(noise, "add_noise_to_many", tape)
    state = state.copy()
    if rows:
        codes, values = zip(*rows, strict=True)
        state.walk(np.array(codes, dtype=np.int32), np.array(values), threads=1)
    _, _, state = state.release(np.arange(2), ONE, keyed_sensitivity(1, 1, None), None)
    return int(np.abs(np.array(output) - tape.raw).sum()), state


SEEDS = seeds_of_all_coin_kinds(4)[::20]


def test_a_transcript_of_releases_of_all_keys_costs_one_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 10, exactly: adaptive steps, two keys, several releases; Σ|…| differs by at most 2 = ε·scale."""
    scale = ONE.noise_scale(keyed_sensitivity(1, 1, None))
    assert max(largest_log_ratio(seed, monkeypatch) for seed in SEEDS) == 2 == ONE.epsilon * scale


def without_re_anchoring(self: KeyedState, *arguments: Any) -> Any:
    values, exponents, state = RELEASE(self, *arguments)
    return values, exponents, replace(state, estimates=self.estimates)


def noise_in_grid_units(self: KeyedState, *arguments: Any) -> Any:
    """Key a moves by steps of 2 grid units, and gets noise for steps of one."""
    values, exponents, state = RELEASE(replace(self, steps=None), *arguments)
    return values, exponents, replace(state, steps=np.array([[1], [0]], dtype=np.uint8), widest=2)


RELEASE = KeyedState.release


@pytest.mark.parametrize("broken", [without_re_anchoring, noise_in_grid_units])
def test_the_enumeration_catches_broken_releases(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedState, "release", broken)
    assert any(largest_log_ratio(seed, monkeypatch) > 2 for seed in SEEDS)


def test_sensitivity_of_a_person() -> None:
    assert keyed_sensitivity(1, 1, None) == Sensitivity(2, 4)
    assert keyed_sensitivity(3, 1, None) == Sensitivity(6, 12)
    assert keyed_sensitivity(1, 5, None) == Sensitivity(10, 100)
    # Five rows in each of three keys: no worse than fifteen rows in L1, better in L2.
    assert keyed_sensitivity(1, 5, 3) == Sensitivity(30, 300)
    assert keyed_sensitivity(1, 15, None) == Sensitivity(30, 900)


def test_noise_is_drawn_for_every_key_in_its_own_steps() -> None:
    """False alarm 1e-9, for keys without a row; noise in grid units must fail the same check."""
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=range(6_000), max_items_per_person=2)
    k._state = replace(k._state, steps=np.full((6_000, 1), 3, dtype=np.uint8), widest=8)
    table = k.release()
    grid_units = table["value"].to_numpy().astype(np.int64)
    assert (grid_units % 8 == 0).all()
    assert chi_square_p_value(grid_units // 8, discrete_laplace(4.0)) > FALSE_ALARM
    assert chi_square_p_value(grid_units, discrete_laplace(4.0)) < FALSE_ALARM
    assert set(table["alpha"].to_pylist()) == {8 * ONE.alpha(0.05, Sensitivity(4, 16), exact=True)}


def test_a_release_is_a_table_with_its_claim() -> None:
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


def test_where_noise_crosses_quantiles_alpha_is_the_largest_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    state = dpf.KeyedDPFrugal1U([0.5, 0.9], ONE, keys=["x", "y"])._state
    state = replace(state, steps=np.array([[3, 0], [3, 0]], dtype=np.uint8), widest=8)
    monkeypatch.setattr(noise, "add_noise_to_many", Tape([4, 5, 0, 5]))
    values, exponents, _ = state.release(None, ONE, keyed_sensitivity(2, 1, None), None)
    assert values.tolist() == [[5, 32], [0, 5]]
    assert exponents.tolist() == [[3, 3], [3, 0]]


def test_counts_of_keys_leave_no_trace_in_what_is_shown() -> None:
    shown = []
    for rows in (["x"] * 900, ["y"] * 900):
        k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["x", "y"], coin_seed=1)
        k.update_many(rows, np.full(900, 4242.0))
        assert max(raw(k))[0] > 400
        assert str(max(raw(k))[0]) not in repr(k)
        shown.append((repr(k), k.release().drop_columns(["value"]).to_pylist(), k.release().schema.metadata))
    assert shown[0] == shown[1]


@pytest.mark.parametrize("adaptive_steps", [True, False])
def test_a_release_re_anchors_every_key_and_is_repeated_until_a_row_comes(adaptive_steps: bool) -> None:
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=0.01), keys=range(50), decimals=1, adaptive_steps=adaptive_steps)
    k.update_many(np.zeros(500, dtype=np.int64), np.full(500, 99.0))
    first = k.release()
    assert k.release() is first
    assert [point / 10 for (point,) in raw(k)] == first["value"].to_pylist()
    k.update_many([-1], [3.0])  # a row of no declared key is a row
    second = k.release()
    assert (np.array(second["value"]) != np.array(first["value"])).mean() > 0.8
    assert second.schema.metadata[b"items"] == b"501"


def test_a_release_before_any_row_is_the_noisy_starts() -> None:
    """Noise of scale 2 reaches 100 with probability 2e-22."""
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["x", "y"], start=[1_000, -1_000])
    assert np.abs(k.release()["value"].to_numpy() - [1_000, -1_000]).max() < 100


def test_noise_beyond_the_grid_is_put_back_on_it() -> None:
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=1e-17), keys=range(40), start=-4.6e18)
    for _ in range(4):
        k.update_many([0], [np.inf])
        assert np.abs(k.release()["value"].to_numpy()).max() <= 2.0**62


@pytest.mark.parametrize("guarantee", [ONE, dpf.ApproxDP(epsilon=1, delta=1e-6), dpf.ZCDP(rho=0.5)], ids=repr)
def test_it_finds_the_quantile_of_each_key(guarantee: Guarantee) -> None:
    """Ten standard deviations of jitter and noise together."""
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 3, 300_000)
    k = dpf.KeyedDPFrugal1U([0.5, 0.9], guarantee, keys=[0, 1, 2], decimals=1)
    k.update_many(keys, rng.normal(30, 2, 300_000) + 20 * keys)
    found = k.release()["value"].to_numpy().reshape(3, 2)
    true = np.array([[0.0, 1.2816 * 2]]) + 30 + 20 * np.arange(3)[:, np.newaxis]
    assert np.abs(found - true).max() < 10 * (0.1 * np.sqrt(0.25 / 0.0087) + k.release()["alpha"][0].as_py() / 2)


def test_state_takes_eight_bytes_per_key_and_one_for_the_step() -> None:
    for quantiles in ([0.5], [0.5, 0.9, 0.99]):
        k = dpf.KeyedDPFrugal1U(quantiles, ONE, keys=range(1_000))
        assert k._state.estimates.nbytes == 8_000 * len(quantiles)
        assert k._state.steps is not None
        assert k._state.steps.nbytes == 1_000 * len(quantiles)
        assert dpf.KeyedDPFrugal1U(quantiles, ONE, keys=range(1_000), adaptive_steps=False)._state.steps is None
