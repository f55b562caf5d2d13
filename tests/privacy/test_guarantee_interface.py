"""What every guarantee answers, asked of all of them: the pieces fit each other."""

from dataclasses import dataclass
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.errors import ParameterTypeError
from dpfrugal.privacy.guarantee_interface import Guarantee, LaplaceNoise, checked_guarantee
from dpfrugal.privacy.guarantees import PureDP
from dpfrugal.privacy.sensitivity import Sensitivity

GUARANTEES: list[Guarantee] = [
    dpf.PureDP(epsilon=0.5),
    dpf.ApproxDP(epsilon=0.5, delta=1e-6),
    dpf.ApproxDP(epsilon=0.5, delta=1e-6, calibration="classic"),
    dpf.ZCDP(rho=0.1),
]
each = pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
SEVERAL = Sensitivity(l1=6, l2_squared=12)


@each
def test_guarantee__is_found_again_from_its_record(guarantee: Guarantee) -> None:
    assert Guarantee.of_record(guarantee.to_record()) == guarantee
    assert type(guarantee).of_record(guarantee.to_record()) == guarantee


@pytest.mark.parametrize("record", [None, {}, {"PureDP": {}, "ZCDP": {}}, {"Nothing": {}}, {"PureDP": {"rho": 1}}, []])
def test_guarantee__a_record_of_none_is_refused(record: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Guarantee.of_record(record)
    with pytest.raises(ValueError, match="no such guarantee"):
        dpf.PureDP.of_record({"ZCDP": {"rho": 1.0}})


@each
def test_guarantee__of_a_larger_size_promises_less_and_needs_less_noise(guarantee: Guarantee) -> None:
    if getattr(guarantee, "calibration", None) == "classic":
        return
    weaker = guarantee.of_size(2 * guarantee.size)
    assert weaker.size == 2 * guarantee.size
    for sensitivity in (2, SEVERAL):
        assert weaker.noise_scale(sensitivity) < guarantee.noise_scale(sensitivity)
        assert weaker.noise_variance(sensitivity) < guarantee.noise_variance(sensitivity)
        assert weaker.alpha(0.05, sensitivity) < guarantee.alpha(0.05, sensitivity)


@each
def test_guarantee__covers_the_noise_that_it_asks_for_and_no_less(guarantee: Guarantee) -> None:
    scale = guarantee.noise_scale(SEVERAL)
    size = guarantee.noise.size
    assert guarantee.covers(size(guarantee.noise.distance(SEVERAL) / scale), SEVERAL)
    assert not guarantee.covers(size(guarantee.noise.distance(SEVERAL) / (0.5 * scale)), SEVERAL)


@each
def test_guarantee__implies_no_smaller_epsilon_at_a_smaller_delta(guarantee: Guarantee) -> None:
    deltas = [1e-3, 1e-5, 1e-6]
    epsilons = [guarantee.to_approx(delta).epsilon for delta in deltas]
    assert epsilons == sorted(epsilons)


def test_kinds__know_all_guarantees_by_name_and_the_own_ones_win() -> None:
    assert set(Guarantee.kinds()) >= {"PureDP", "ApproxDP", "ZCDP"}

    @dataclass(frozen=True, kw_only=True)
    class Impostor(dpf.PureDP):
        pass

    Impostor.__name__ = "PureDP"
    assert Guarantee.kinds()["PureDP"] is PureDP
    assert set(LaplaceNoise.kinds()) == {"PureDP"}


def test_checked_guarantee__says_which_there_are() -> None:
    """All of them: other tests define some, and those are named too."""
    assert checked_guarantee(GUARANTEES[0]) is GUARANTEES[0]
    with pytest.raises(ParameterTypeError, match=r"guarantee must be (a|an) .*PureDP.*, not float\."):
        checked_guarantee(1.0)  # type: ignore[type-var]
    with pytest.raises(ParameterTypeError, match=r"total must be an? (.*, )?ZCDP.*, not PureDP\."):
        checked_guarantee(GUARANTEES[0], dpf.ZCDP, "total")

    class Undecorated(dpf.PureDP):
        pass

    with pytest.raises(ParameterTypeError, match="must be a frozen dataclass"):
        checked_guarantee(Undecorated(epsilon=1.0))
