"""DP-Frugal-1U: the guarantee of a whole transcript, exactly, by enumeration; and what a release looks like."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.walk import frugal
from dpfrugal.estimators.walk.dp_frugal import sensitivity_of
from dpfrugal.kernels import coins
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.naive import neighbours
from tests.support.statistics import FALSE_ALARM, chi_square_p_value, discrete_laplace

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
        for item in period:
            estimator.update(item)
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
    outputs = [[[a] * quantiles, [b] * quantiles] for a, b in itertools.product(reach, reach)]
    for transcript in outputs:
        costs = {}
        for stream in itertools.product(alphabet, repeat=4):
            raw = raw_states(make, (stream[:2], stream[2:]), transcript, patch)
            hidden = itertools.chain.from_iterable(raw)
            shown = itertools.chain.from_iterable(transcript)
            costs[stream] = sum(abs(out - state) for out, state in zip(shown, hidden, strict=True))
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
def test_a_transcript_of_releases_costs_one_epsilon(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 4, exactly: over every coin sequence, stream and neighbour, Σ|…| differs by at most 2 = ε·scale."""
    for seed in SEEDS[part::9]:
        ratio = largest_log_ratio(lambda seed=seed: dpf.DPFrugal1U(0.6, ONE, coin_seed=seed), monkeypatch)  # type: ignore[misc]
        assert ratio <= ONE.epsilon * ONE.noise_scale(2)


def test_several_quantiles_cost_one_epsilon_together(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in SEEDS[::6]:
        make = lambda seed=seed: dpf.DPFrugal1U([0.4, 0.6], ONE, coin_seed=seed)  # noqa: E731
        ratio = largest_log_ratio(make, monkeypatch, quantiles=2)
        assert ratio <= ONE.epsilon * ONE.noise_scale(sensitivity_of(2, 1)) == 4


class WithoutReAnchoring(dpf.DPFrugal1U):
    """Releases, and goes on from the raw state."""

    def _fresh_release(self) -> dpf.WalkRelease:
        before = self._walk._settled().copy()
        release = super()._fresh_release()
        self._walk._estimates = before
        return release


class FromFirstItem(dpf.DPFrugal1U):
    """Starts at the first item, as the authors' program does."""

    def update(self, item: float) -> None:
        if not self.items:
            self._walk._estimates = np.array([self._walk._path.grid.index(item)])
        super().update(item)


class WithACoinPerMove(dpf.DPFrugal1U):
    """Draws no coin for an item that lies on the estimate, so later coins depend on the data."""

    def update(self, item: float) -> None:
        if self._walk._settled()[0] != self._walk._path.grid.index(item):
            super().update(item)

    def release(self) -> dpf.WalkRelease:
        return self._fresh_release()


@pytest.mark.parametrize("broken", [WithoutReAnchoring, FromFirstItem, WithACoinPerMove])
def test_the_enumeration_catches_broken_estimators(broken: type, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = (largest_log_ratio(lambda seed=s: broken(0.6, ONE, coin_seed=seed), monkeypatch) for s in SEEDS)  # type: ignore[misc]
    assert any(ratio > ONE.epsilon * ONE.noise_scale(2) for ratio in ratios)


def noise_of(make: Callable[[], Any], runs: int = 4_000) -> np.ndarray:
    """What the noise moved, in grid steps, over runs whose raw state is known to be the start."""
    grid_steps = []
    for _ in range(runs):
        estimator = make()
        estimator.update_many([0.0] * 3)
        grid_steps.append(round(estimator.release().value * 1000))
    return np.array(grid_steps)


class NoiseInDataUnits(dpf.DPFrugal1U):
    """Adds Laplace(2/ε) after dividing by 10^decimals, as the authors' program does."""

    def _fresh_release(self) -> dpf.WalkRelease:
        walk = self._walk
        noisy = walk._path.grid.value(int(walk._settled()[0])) + noise.add_noise([0], ONE, Sensitivity.of(2))[0]
        return dpf.WalkRelease(
            values=(noisy,),
            quantiles=walk.quantiles,
            guarantee=ONE,
            items=walk.items,
            grid=walk._path.grid,
            sensitivity=Sensitivity.of(2),
        )


def test_noise_is_added_on_the_grid() -> None:
    """False alarm 1e-9; noise in data units, a thousand times too much, must fail the same check."""
    mass = discrete_laplace(2.0)
    right = noise_of(lambda: dpf.DPFrugal1U(0.5, ONE, decimals=3))
    wrong = noise_of(lambda: NoiseInDataUnits(0.5, ONE, decimals=3))
    assert chi_square_p_value(right, mass) > FALSE_ALARM
    assert chi_square_p_value(wrong, mass) < FALSE_ALARM


def test_max_items_per_person_multiplies_the_sensitivity() -> None:
    """False alarm 1e-9; noise for one item fails the check for four."""
    sample = noise_of(lambda: dpf.DPFrugal1U(0.5, ONE, decimals=3, max_items_per_person=4))
    assert chi_square_p_value(sample, discrete_laplace(8.0)) > FALSE_ALARM
    assert chi_square_p_value(sample, discrete_laplace(2.0)) < FALSE_ALARM
    assert sensitivity_of(1, 1) == Sensitivity.of(2)
    assert sensitivity_of(1, 4) == Sensitivity(8, 64)
    assert sensitivity_of(3, 2) == Sensitivity(12, 48)


def test_a_release_re_anchors_and_is_repeated_until_an_item_comes() -> None:
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=0.01), decimals=1)
    p.update_many(np.arange(100.0))
    first = p.release()
    assert p.release() is first
    assert p._walk.estimate == first.value
    p.update(5.0)
    second = p.release()
    assert second is not first
    assert (first.items, second.items) == (100, 101)


def test_a_release_before_any_item_is_the_noisy_start() -> None:
    r = dpf.DPFrugal1U(0.5, ONE, start=100.0).release()
    assert r.items == 0
    assert abs(r.value - 100) < 100


def test_what_a_release_says() -> None:
    p = dpf.DPFrugal1U(0.99, dpf.PureDP(epsilon=2.0), decimals=3)
    p.update_many(np.zeros(1_500))
    r = p.release()
    assert (r.quantile, r.guarantee, r.items) == (0.99, dpf.PureDP(epsilon=2.0), 1_500)
    assert r.alpha(beta=0.05) == pytest.approx(np.log(20) * 0.001)
    assert r.value == pytest.approx(round(r.value, 3), abs=1e-12)
    for part in ("q=0.99", f"{r.value:.3f} ± 0.004 ", "ε=2 per item", "1,500 items"):
        assert part in str(r)
    assert "\n" not in str(r)
    with pytest.raises(AttributeError):
        r.items = 3  # type: ignore[misc]


def test_several_values_are_in_order_of_q() -> None:
    p = dpf.DPFrugal1U([0.9, 0.1, 0.5], dpf.PureDP(epsilon=0.01))
    p.update_many(np.zeros(10))
    r = p.release()
    assert r.quantiles == (0.9, 0.1, 0.5)
    assert r.values[1] <= r.values[2] <= r.values[0]
    with pytest.raises(dpf.ParameterError, match="use values"):
        _ = r.value
    with pytest.raises(dpf.ParameterError, match="use quantiles"):
        _ = r.quantile
    assert r.to_dict()["values"] == list(r.values)


@pytest.mark.parametrize("guarantee", [ONE, dpf.ApproxDP(epsilon=1, delta=1e-6), dpf.ZCDP(rho=0.5)], ids=repr)
def test_it_finds_the_quantile_under_every_guarantee(guarantee: Guarantee) -> None:
    """Ten standard deviations of jitter and noise together."""
    stream = np.random.default_rng(4).normal(50, 2, 200_000)
    p = dpf.DPFrugal1U(0.5, guarantee, decimals=2, start=48.0)
    p.update_many(stream)
    assert abs(p.release().value - 50) < 10 * (0.01 * np.sqrt(0.25 / 0.002) + p.release().alpha(0.3))


def test_noise_beyond_the_grid_is_put_back_on_it() -> None:
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1e-17), decimals=0, start=4.6e18)
    p.update_many([np.inf])
    assert abs(p.release().value) <= 2.0**62


def test_an_interrupted_batch_loses_and_doubles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    p = dpf.DPFrugal1U(0.5, ONE)
    for _ in range(500):
        p.update(1.0)

    def interrupted(*arguments: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(frugal, "walk_plainly", interrupted)
        patch.setattr(frugal, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            p.release()
    assert p.items == 500
    assert p.release().items == 500


def test_a_record_of_a_release_is_a_copy() -> None:
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1.0))
    p.update(1.0)
    p.release().to_dict()["guarantee"]["PureDP"]["epsilon"] = 1000.0
    assert p.guarantee == ONE
