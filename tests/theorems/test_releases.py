"""Theorem 4: a whole transcript of releases costs one guarantee; exactly, in integers, by enumeration."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.audit.broken import FromFirstItem, WithoutReAnchoring
from dpfrugal.estimators.walk.dp_frugal import sensitivity_of
from dpfrugal.kernels import coins
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.naive import neighbours

ONE = dpf.PureDP(epsilon=1.0)


class Tape:
    """Stands in for the noise: answers each release with a chosen output and records the raw state it hides."""

    def __init__(self, outputs: Sequence[Sequence[int]]) -> None:
        self.outputs = list(outputs)
        self.raw: list[list[int]] = []

    def __call__(self, values: Sequence[int], guarantee: Guarantee, sensitivity: Sensitivity) -> list[int]:
        self.raw.append(list(values))
        return list(self.outputs[len(self.raw) - 1])


Make = Callable[[], dpf.DPFrugal1U]


def raw_states(
    make: Make, periods: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]], patch: pytest.MonkeyPatch
) -> list[list[int]]:
    """The raw states behind a given transcript of outputs."""
    tape = Tape(outputs)
    patch.setattr(noise, "add_noise", tape)
    estimator = make()
    for period in periods:
        estimator.update_many(list(period))
        estimator.release()
    return tape.raw


def largest_log_ratio(make: Make, patch: pytest.MonkeyPatch, quantiles: int = 1) -> int:
    """The largest log-likelihood ratio of any transcript, over all neighbours, in units of 1/scale.

    With discrete Laplace noise, P[outputs | stream] is proportional to exp(-Σ|output - raw state| / scale): the
    ratio is exact in integers. Two periods of two items; outputs are enumerated around the reachable states.
    """
    largest = 0
    alphabet = (-9, 0, 9)
    reach = range(-3, 4) if quantiles == 1 else (-1, 2)
    for first in reach:
        # What a run hides before its last output cannot depend on that output: one run serves for all of them.
        raw = {
            stream: raw_states(make, (stream[:2], stream[2:]), [[first] * quantiles] * 2, patch)
            for stream in itertools.product(alphabet, repeat=4)
        }
        for last in reach:
            shown = [first] * quantiles + [last] * quantiles
            costs = {
                stream: sum(abs(out - state) for out, state in zip(shown, itertools.chain(*states), strict=True))
                for stream, states in raw.items()
            }
            for stream, cost in costs.items():
                for other in neighbours(stream, alphabet):
                    largest = max(largest, abs(cost - costs[other]))
    return largest


def seeds_of_all_coin_kinds() -> list[int]:
    """Seeds whose first four coins at q = 0.6 allow nothing, a step up, or both, in many combinations."""
    up_from, down_from = coins.thresholds(0.6)
    found: dict[tuple[int, ...], int] = {}
    for seed in range(5_000):
        key = coins.key_from_seed(seed)
        tape = [coins.coin(key, position) for position in range(4)]
        found.setdefault(tuple((coin >= up_from) + (coin >= down_from) for coin in tape), seed)
    assert len(found) == 3**4  # every sequence of coins there is
    return list(found.values())


SEEDS = seeds_of_all_coin_kinds()


@pytest.mark.parametrize("part", range(9))
def test_theorem_4__a_transcript_of_releases_costs_one_epsilon(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 4, exactly: over every coin sequence, stream and neighbour, Σ|…| differs by at most 2 = ε·scale."""
    for seed in SEEDS[part::9]:
        ratio = largest_log_ratio(lambda seed=seed: dpf.DPFrugal1U(0.6, ONE, coin_seed=seed), monkeypatch)  # type: ignore[misc]
        assert ratio <= ONE.epsilon * ONE.noise_scale(2)


def test_theorem_4__several_quantiles_cost_one_epsilon_together(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS[::6]:
        make = lambda seed=seed: dpf.DPFrugal1U([0.4, 0.6], ONE, coin_seed=seed)  # noqa: E731
        ratio = largest_log_ratio(make, monkeypatch, quantiles=2)
        assert ratio <= ONE.epsilon * ONE.noise_scale(sensitivity_of(2, 1)) == 4


class WithACoinPerMove(dpf.DPFrugal1U):
    """Draws no coin for an item that lies on the estimate, so later coins depend on the data."""

    def update_many(self, items: Any) -> None:
        for item in items:
            if self._walk._settled()[0] != self._walk._path.grid.index(item):
                super().update_many([item])

    def release(self) -> dpf.WalkRelease:
        return self._fresh_release()


@pytest.mark.parametrize("broken", [WithoutReAnchoring, FromFirstItem, WithACoinPerMove])
def test_theorem_4__enumeration_catches_broken_estimators(broken: type, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = (largest_log_ratio(lambda seed=s: broken(0.6, ONE, coin_seed=seed), monkeypatch) for s in SEEDS)  # type: ignore[misc]
    assert any(ratio > ONE.epsilon * ONE.noise_scale(2) for ratio in ratios)
