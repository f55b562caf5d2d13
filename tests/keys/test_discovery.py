"""Key discovery: (ε, δ) exactly, by enumeration of small streams; the mistakes put back in are caught."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal import ZCDP, ApproxDP, ParameterError, ParameterTypeError, PureDP
from dpfrugal.keys.discovery import KeyDiscovery, chance_to_pass, in_order_of_keys, sensitivity_of_counts, threshold_for

KEYS = "abc"
Transcript = tuple[frozenset[str], ...]
Law = dict[Transcript, float]


def passes(count: int, threshold: int, scale: float) -> float:
    """P[count + discrete Laplace ≥ threshold], whatever the two are, by its definition."""
    below = [math.exp(-abs(x) / scale) for x in range(-2000, 2001)]
    return sum(below[max(threshold - count, -2000) + 2000 :]) / sum(below)


def chances(threshold: int, scale: float, most: int) -> list[float]:
    return [passes(count, threshold, scale) for count in range(most + 1)]


def law(segments: Iterable[str], chance: list[float], *, cumulative: bool = False) -> Law:
    """How probable each transcript is: the sets of new keys, release after release."""
    laws: Law = {(): 1.0}
    so_far: Counter[str] = Counter()
    for segment in segments:
        so_far = so_far + Counter(segment) if cumulative else Counter(segment)
        after: Law = {}
        for transcript, probability in laws.items():
            known = frozenset().union(*transcript)
            candidates = [key for key in KEYS if key not in known and so_far[key]]
            for shown in itertools.product((False, True), repeat=len(candidates)):
                chosen = frozenset(key for key, yes in zip(candidates, shown, strict=True) if yes)
                p = math.prod(
                    chance[so_far[key]] if yes else 1 - chance[so_far[key]]
                    for key, yes in zip(candidates, shown, strict=True)
                )
                after[(*transcript, chosen)] = after.get((*transcript, chosen), 0.0) + probability * p
        laws = after
    return laws


def delta_between(one: Law, other: Law, epsilon: float) -> float:
    """The smallest δ for this ordered pair."""
    return sum(max(0.0, p - math.exp(epsilon) * other.get(seen, 0.0)) for seen, p in one.items())


def largest_delta(epsilon: float, rows: int, replaced: int, cut: int, laws: Callable[[tuple[str, str]], Law]) -> float:
    """Over all streams of so many rows in two segments, and all neighbours in the first rows."""
    found = 0.0
    for rest in itertools.product(KEYS, repeat=rows - replaced):
        versions = ["".join((*head, *rest)) for head in itertools.product(KEYS, repeat=replaced)]
        # The person's rows lie on both sides of the cut.
        shuffled = [version[::2] + version[1::2] for version in versions]
        at = [laws((stream[:cut], stream[cut:])) for stream in shuffled]
        found = max([found, *(delta_between(p, q, epsilon) for p, q in itertools.permutations(at, 2))])
    return found


SETTINGS = [(1.0, 0.05, 1), (0.3, 0.2, 1), (2.5, 0.01, 1), (1.0, 0.05, 2), (0.4, 0.3, 2), (3.0, 0.02, 2)]


@pytest.mark.parametrize(("epsilon", "delta", "items"), SETTINGS)
@pytest.mark.parametrize("cut", [0, 2, 4])
def test_all_small_streams_keep_the_promise(epsilon: float, delta: float, items: int, cut: int) -> None:
    cost = ApproxDP(epsilon=epsilon, delta=delta)
    scale = PureDP(epsilon=epsilon).noise_scale(sensitivity_of_counts(items))
    chance = chances(threshold_for(cost, items), scale, 4)
    assert largest_delta(epsilon, 4, items, cut, lambda segments: law(segments, chance)) <= delta


@pytest.mark.parametrize(("epsilon", "delta", "items"), SETTINGS)
def test_the_threshold_is_no_higher_than_it_must_be(epsilon: float, delta: float, items: int) -> None:
    cost = ApproxDP(epsilon=epsilon, delta=delta)
    scale = PureDP(epsilon=epsilon).noise_scale(sensitivity_of_counts(items))
    lower = threshold_for(cost, items) - 1
    most = min(delta, 1 - math.exp(-1 / scale))
    assert max(passes(items, lower, scale), items * passes(1, lower, scale)) > most


def test_the_same_enumeration_catches_mistakes() -> None:
    cost, scale = ApproxDP(epsilon=1.0, delta=0.05), 2.0
    threshold = threshold_for(cost, 1)
    right = chances(threshold, scale, 4)

    def broken(laws: Callable[[tuple[str, str]], Law]) -> bool:
        return largest_delta(1.0, 4, 1, 2, laws) > 0.05

    assert not broken(lambda segments: law(segments, right))
    assert broken(lambda segments: law(segments, chances(threshold - 1, scale, 4)))
    assert broken(lambda segments: law(segments, right, cumulative=True))  # a row counted in two releases
    assert broken(lambda segments: law(segments, [float(count >= 2) for count in range(5)]))  # no noise

    def between(scale: float) -> float:
        threshold = next(t for t in itertools.count(2) if passes(1, t, scale) <= 0.05)
        chance = chances(threshold, scale, threshold)
        rows, neighbour = "a" * (threshold - 1) + "b" * threshold, "a" * threshold + "b" * (threshold - 1)
        return delta_between(law([rows], chance), law([neighbour], chance), 1.0)

    assert between(scale) <= 0.05
    assert between(scale / 2) > 0.05  # noise as if a row changed one count only


def test_the_tail_is_that_of_the_definition() -> None:
    for scale, threshold, count in [(2.0, 28, 1), (0.3, 3, 2), (40.0, 200, 1), (1e-3, 2, 1)]:
        assert chance_to_pass(count, threshold, scale) == pytest.approx(passes(count, threshold, scale), rel=1e-9)


def test_worked_number() -> None:
    cost = ApproxDP(epsilon=1.0, delta=1e-6)
    assert threshold_for(cost, 1) == 28
    assert 1 - passes(50, 28, 2.0) < 1e-5


def test_what_passes_does_so_as_often_as_the_law_says() -> None:
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


def test_counts_start_again_and_public_keys_stay() -> None:
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


def test_codes_are_put_in_the_order_of_their_keys() -> None:
    for keys in (pa.array(["b", "c", "a"]), pa.array([2, 3, 1]), pa.array([["b"], ["c"], ["a"]])):
        assert in_order_of_keys(keys, np.array([0, 1, 2])).tolist() == [2, 0, 1]
        assert in_order_of_keys(keys, np.array([1, 0])).tolist() == [0, 1]


def test_bad_parameters() -> None:
    for wrong in (PureDP(epsilon=1.0), ZCDP(rho=1.0), 1.0, None):
        with pytest.raises(ParameterTypeError, match="discover_keys must be an ApproxDP"):
            KeyDiscovery(wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="no calibration"):
        KeyDiscovery(ApproxDP(epsilon=0.5, delta=1e-6, calibration="classic"))


@pytest.mark.parametrize("odd", [[2**63], [2**64], ["x"], [("a", 1)], [1.5]])
def test_one_row_does_not_change_the_type_that_is_shown(odd: list[Any]) -> None:
    """Keys whose type would have to be guessed from all of them are refused, and nothing is changed."""
    k = dpf.KeyedDPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6))
    with pytest.raises(dpf.ItemTypeError):
        k.update_many([1] * 1000 + odd, [1.0] * 1001)
    assert k.items == 0
    k.update_many([1] * 1000, [1.0] * 1000)
    assert k.release()["key"].type == pa.int64()


def test_without_public_keys_no_type_is_shown() -> None:
    for keys in ([None] * 5, [None] * 4 + ["x"]):
        k = dpf.KeyedDPFrugal1U(
            0.5, dpf.PureDP(epsilon=1.0), discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-9), null_keys="drop"
        )
        k.update_many(keys, [1.0] * 5)
        assert k.release().schema.field("key").type == pa.null()  # "x" is found once in 10^9 times


def test_keys_are_public_before_anybody_is_told_how_many() -> None:
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
