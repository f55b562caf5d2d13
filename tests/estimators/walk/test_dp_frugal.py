"""DP-Frugal-1U: where its noise is added, and what a release looks like."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.walk import frugal
from dpfrugal.estimators.walk.dp_frugal import sensitivity_of
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.statistics import FALSE_ALARM, chi_square_p_value, discrete_laplace

ONE = dpf.PureDP(epsilon=1.0)


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


def test_dp_frugal__adds_noise_on_the_grid() -> None:
    """False alarm 1e-9; noise in data units, a thousand times too much, must fail the same check."""
    mass = discrete_laplace(2.0)
    right = noise_of(lambda: dpf.DPFrugal1U(0.5, ONE, decimals=3))
    wrong = noise_of(lambda: NoiseInDataUnits(0.5, ONE, decimals=3))
    assert chi_square_p_value(right, mass) > FALSE_ALARM
    assert chi_square_p_value(wrong, mass) < FALSE_ALARM


def test_dp_frugal__multiplies_its_sensitivity_by_max_items_per_person() -> None:
    """False alarm 1e-9; noise for one item fails the check for four."""
    sample = noise_of(lambda: dpf.DPFrugal1U(0.5, ONE, decimals=3, max_items_per_person=4))
    assert chi_square_p_value(sample, discrete_laplace(8.0)) > FALSE_ALARM
    assert chi_square_p_value(sample, discrete_laplace(2.0)) < FALSE_ALARM
    assert sensitivity_of(1, 1) == Sensitivity.of(2)
    assert sensitivity_of(1, 4) == Sensitivity(8, 64)
    assert sensitivity_of(3, 2) == Sensitivity(12, 48)


def test_dp_frugal__re_anchors_at_a_release_and_repeats_it_until_an_item_comes() -> None:
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=0.01), decimals=1)
    p.update_many(np.arange(100.0))
    first = p.release()
    assert p.release() is first
    assert p._walk.estimate == first.value
    p.update(5.0)
    second = p.release()
    assert second is not first
    assert (first.items, second.items) == (100, 101)


def test_dp_frugal__releases_the_noisy_start_before_any_item() -> None:
    r = dpf.DPFrugal1U(0.5, ONE, start=100.0).release()
    assert r.items == 0
    assert abs(r.value - 100) < 100


def test_walk_release__says_what_it_is() -> None:
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


def test_walk_release__has_its_values_in_the_order_of_q() -> None:
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
def test_dp_frugal__finds_the_quantile_under_every_guarantee(guarantee: Guarantee) -> None:
    """Ten standard deviations of jitter and noise together."""
    stream = np.random.default_rng(4).normal(50, 2, 200_000)
    p = dpf.DPFrugal1U(0.5, guarantee, decimals=2, start=48.0)
    p.update_many(stream)
    assert abs(p.release().value - 50) < 10 * (0.01 * np.sqrt(0.25 / 0.002) + p.release().alpha(0.3))


def test_dp_frugal__puts_noise_beyond_the_grid_back_on_it() -> None:
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1e-17), decimals=0, start=4.6e18)
    p.update_many([np.inf])
    assert abs(p.release().value) <= 2.0**62


def test_dp_frugal__loses_and_doubles_nothing_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    p = dpf.DPFrugal1U(0.5, ONE)
    for _ in range(500):
        p.update(1.0)

    def interrupted(*arguments: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for way in ("walk_plainly", "advance_by_numpy", "advance"):
            patch.setattr(frugal, way, interrupted)
        with pytest.raises(KeyboardInterrupt):
            p.release()
    assert p.items == 500
    assert p.release().items == 500


def test_walk_release__gives_a_copy_as_its_record() -> None:
    p = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1.0))
    p.update(1.0)
    p.release().to_dict()["guarantee"]["PureDP"]["epsilon"] = 1000.0
    assert p.guarantee == ONE
