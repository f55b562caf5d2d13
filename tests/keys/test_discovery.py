"""Key discovery: its threshold, its noise, and what it shows."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal import ZCDP, ApproxDP, ParameterError, ParameterTypeError, PureDP
from dpfrugal.keys.discovery import KeyDiscovery, chance_to_pass, in_order_of_keys, threshold_for
from tests.support.naive import passes


def test_chance_to_pass__is_the_tail_of_the_definition() -> None:
    for scale, threshold, count in [(2.0, 28, 1), (0.3, 3, 2), (40.0, 200, 1), (1e-3, 2, 1)]:
        assert chance_to_pass(count, threshold, scale) == pytest.approx(passes(count, threshold, scale), rel=1e-9)


def test_threshold_for__has_the_worked_number_of_the_docstring() -> None:
    cost = ApproxDP(epsilon=1.0, delta=1e-6)
    assert threshold_for(cost, 1) == 28
    assert 1 - passes(50, 28, 2.0) < 1e-5


def test_key_discovery__lets_keys_pass_as_often_as_the_law_says() -> None:
    """Two-sided, 6.5 standard deviations per count: a false alarm in 10^10 runs; the law of half the scale fails."""
    cost = ApproxDP(epsilon=1.0, delta=0.01)
    keys, alarm = 20_000, 6.5
    for count in (1, 6, 9):
        discovery = KeyDiscovery(cost)
        for _ in range(count):
            discovery.count(np.arange(keys, dtype=np.int32))
        discovery.count(np.full(5, -1, dtype=np.int32))
        found = discovery.found().size

        def off(p: float, found: int = found) -> float:
            return abs(found - keys * p) / math.sqrt(keys * p * (1 - p) + 1)

        assert off(passes(count, discovery.threshold, 2.0)) < alarm
        if count != 9:
            assert off(passes(count, discovery.threshold, 4.0)) > alarm
    assert 6 * NormalDist().cdf(-alarm) < 1e-9


def test_key_discovery__counts_from_nothing_again_and_keeps_public_keys() -> None:
    discovery = KeyDiscovery(ApproxDP(epsilon=50.0, delta=1e-30))
    often, seldom = np.full(1000, 3000, dtype=np.int32), np.zeros(1, dtype=np.int32)
    for _ in range(1000):
        discovery.count(seldom)
        found = discovery.found()  # passes with a probability below 1e-30
        discovery.settle(found)
        assert discovery.public.size == 0
    discovery.count(often)
    found = discovery.found()  # missed with a probability below 1e-100
    assert found.tolist() == [3000]
    assert discovery.public.size == 0  # nothing is public before it is settled
    discovery.settle(found)
    discovery.count(often)
    assert discovery.found().size == 0  # it is public already, and draws no more noise
    discovery.settle(discovery.found())
    assert discovery.public.tolist() == [3000]


def test_in_order_of_keys__puts_codes_in_the_order_of_their_keys() -> None:
    for keys in (pa.array(["b", "c", "a"]), pa.array([2, 3, 1]), pa.array([["b"], ["c"], ["a"]])):
        assert in_order_of_keys(keys, np.array([0, 1, 2])).tolist() == [2, 0, 1]
        assert in_order_of_keys(keys, np.array([1, 0])).tolist() == [0, 1]


def test_key_discovery__names_bad_parameters() -> None:
    for wrong in (PureDP(epsilon=1.0), ZCDP(rho=1.0), 1.0, None):
        with pytest.raises(ParameterTypeError, match="discover_keys must be an ApproxDP"):
            KeyDiscovery(wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="no calibration"):
        KeyDiscovery(ApproxDP(epsilon=0.5, delta=1e-6, calibration="classic"))


@pytest.mark.parametrize("odd", [[2**63], [2**64], ["x"], [("a", 1)], [1.5]])
def test_key_discovery__shows_the_same_type_whatever_one_row_holds(odd: list[Any]) -> None:
    """Keys whose type would have to be guessed from all of them are refused, and nothing is changed."""
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6))
    with pytest.raises(dpf.ItemTypeError):
        k.update_many([1] * 1000 + odd, [1.0] * 1001)
    assert k.items == 0
    k.update_many([1] * 1000, [1.0] * 1000)
    assert k.release()["key"].type == pa.int64()


def test_key_discovery__shows_no_type_without_public_keys() -> None:
    for keys in ([None] * 5, [None] * 4 + ["x"]):
        k = dpf.KeyedDPFrugal1U(
            0.5, dpf.PureDP(epsilon=1.0), discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-9), null_keys="drop"
        )
        k.update_many(keys, [1.0] * 5)
        assert k.release().schema.field("key").type == pa.null()  # "x" is found once in 10^9 times


def test_key_discovery__makes_keys_public_before_anybody_is_told_how_many() -> None:
    """A report of progress that raises must not lead to a second draw of noise for the same counts."""
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6))
    k.update_many(["a"] * 1000, [1.0] * 1000)

    def stop(done: int, total: int) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        k.release(stop)
    assert k.keys.to_pylist() == ["a"]
    assert k._discovery is not None
    assert not k._discovery.counts().any()
