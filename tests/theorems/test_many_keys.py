"""Theorem 10: one guarantee for all keys together; exactly, in integers, by enumeration."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.audit.broken import PerKeyCoins
from dpfrugal.estimators.keyed.sensitivity import keyed_sensitivity
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.kernels import coins
from dpfrugal.privacy import noise
from tests.support.naive import neighbours

ONE = dpf.PureDP(epsilon=1.0)


Row = tuple[str, float]


def feed(k: Any, rows: Sequence[Row]) -> None:
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


def raw_of(k: dpf.KeyedDPFrugal1U | PerKeyCoins) -> NDArray[np.int64]:
    """The raw estimates, which only a test looks at."""
    if isinstance(k, PerKeyCoins):
        return np.array([walk._walk._settled()[0] for walk in k._walks.values()])
    return k._state.estimates[:, 0].copy()


def distances(kind: Callable[..., Any], seeds: Sequence[int]) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of the raw states of neighbours, over all streams of three rows."""
    largest, largest_squared = 0, 0
    for seed in seeds:
        states = {}
        for stream in itertools.product(ROWS, repeat=3):
            k = kind(0.6, ONE, keys=["a", "b"], coin_seed=seed)
            feed(k, stream)
            states[stream] = raw_of(k)
        for stream, state in states.items():
            for other in neighbours(stream, ROWS):
                apart = np.abs(state - states[other])
                largest, largest_squared = max(largest, int(apart.sum())), max(largest_squared, int(apart @ apart))
    return largest, largest_squared


def test_theorem_10__a_row_that_changes_its_value_and_its_key_moves_all_keys_by_two() -> None:
    """Theorem 10 over every coin sequence, stream and neighbour; the bounds are reached."""
    assert distances(dpf.KeyedDPFrugal1U, seeds_of_all_coin_kinds(3)) == (2, 4)


def test_theorem_10__enumeration_catches_coins_that_are_counted_per_key() -> None:
    """A row that leaves a key shifts the coins of all its later rows."""
    assert distances(PerKeyCoins, seeds_of_all_coin_kinds(3)[::2])[0] > 2


class Tape:
    """Stands in for the noise: answers with chosen numbers and records the raw ones they hide."""

    def __init__(self, output: Sequence[int]) -> None:
        self.output = np.array(output)
        self.raw = self.output

    def __call__(self, values: NDArray[np.int64], *_: object) -> NDArray[np.int64]:
        self.raw = values.copy()
        return self.output


FAR_ROWS = [(0, -99), (0, 99), (1, -99), (1, 99), (-1, 99)]


PRIMING = [[5, 0], [10, 0]]


TRANSCRIPTS = [[[4, 1], [9, 0]], [[4, 1], [6, 1]], [[9, -1], [5, 0]], [[9, -1], [2, -2]]]


def largest_log_ratio(seed: int, patch: pytest.MonkeyPatch) -> int:
    """The largest log-likelihood ratio of any transcript, over all neighbours, in units of 1/scale.

    With discrete Laplace noise, P[outputs | stream] is proportional to exp(-Σ|output - raw number| / scale): the ratio
    is exact in integers. Two periods of two rows, after two releases that made the steps of the keys differ.
    """
    largest = 0
    for transcript in TRANSCRIPTS:
        costs = {}
        start = dpf.KeyedDPFrugal1U(0.6, ONE, keys=["a", "b"], coin_seed=seed)._state
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


def test_theorem_10__a_transcript_of_releases_of_all_keys_costs_one_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_theorem_10__enumeration_catches_broken_releases(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedState, "release", broken)
    assert any(largest_log_ratio(seed, monkeypatch) > 2 for seed in SEEDS)
