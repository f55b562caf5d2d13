"""The planner: what it asks for is public, and what it refuses."""

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.segments import planner as module
from dpfrugal.estimators.segments.locate import SHORTEST
from dpfrugal.estimators.segments.planner import SegmentPlanner, noise_variance, segment_exposure
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity

ONE = dpf.PureDP(epsilon=1.0)


def fed(planner: SegmentPlanner, items: Any, rng: np.random.Generator) -> None:
    counts = np.histogram(items, [-math.inf, *planner.edges.tolist(), math.inf])[0]
    planner.absorb(counts)


def settled(quantiles: tuple[float, ...] = (0.5, 0.9), segments: int = 25, **options: Any) -> SegmentPlanner:
    rng = np.random.default_rng(3)  # items, not noise
    planner = SegmentPlanner(quantiles, ONE, **options)
    for _ in range(segments):
        fed(planner, rng.normal(100.0, 15.0, planner.segment_length), rng)
    return planner


def test_segment_planner__finds_the_quantiles_of_what_is_counted() -> None:
    """300,000 items or so: the rank is off by less than 0.02, ten times what noise and sampling allow."""
    low, high = settled().estimates
    assert low == pytest.approx(100.0, abs=0.8)
    assert high == pytest.approx(119.2, abs=1.6)
    for (first, last), estimate in zip(settled().intervals(0.95), settled().estimates, strict=True):
        assert first < estimate < last or first <= last


@pytest.mark.parametrize("missing", [None, 7])
def test_segment_planner__adds_noise_to_each_count_of_a_segment_once(
    missing: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = list[tuple[int, Sensitivity]]()

    def recorded(values: list[int], guarantee: Guarantee, sensitivity: Sensitivity) -> list[int]:
        assert guarantee == ONE
        drawn.append((len(values), sensitivity))
        return list(values)

    monkeypatch.setattr(module, "add_noise", recorded)
    planner = SegmentPlanner((0.5,), ONE, max_items_per_person=3)
    bins = planner.edges.size + 1
    planner.absorb([100] * bins, missing=missing)
    assert drawn == [(bins + (missing is not None), Sensitivity(l1=6, l2_squared=18))]
    assert planner.items == 100 * bins + (missing or 0)


def test_segment_planner__edges_follow_noisy_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two streams whose noisy counts are the same are planned alike, whatever their raw counts were."""
    one, other = SegmentPlanner((0.5,), ONE), SegmentPlanner((0.5,), ONE)
    bins = one.edges.size + 1
    noisy = [1000] * bins
    monkeypatch.setattr(module, "add_noise", lambda values, *_: noisy)
    raw = [1000] * bins
    one.absorb(raw)
    raw[0], raw[-1] = 1001, 999  # a neighbour
    other.absorb(raw)
    assert one.edges.tolist() == other.edges.tolist()
    assert one.to_state() == other.to_state()


def test_segment_planner__keeps_the_noisy_counts_of_a_short_segment_and_its_edges() -> None:
    planner = SegmentPlanner((0.5,), ONE)
    edges = planner.edges.copy()
    planner.absorb([1] * (edges.size + 1))
    assert planner.edges.tolist() == edges.tolist()
    assert len(planner.noisy_counts) == edges.size + 1
    for _ in range(20):
        planner.absorb([50] * (planner.edges.size + 1))
        if planner.edges.size != edges.size or (planner.edges != edges).any():
            break
    assert planner.noisy_counts == ()


def test_segment_planner__continues_from_its_state_and_from_a_copy() -> None:
    planner = settled(segments=6)
    state = json.loads(json.dumps(planner.to_state()))
    restored = SegmentPlanner((0.5, 0.9), ONE)
    restored.restore(state)
    copied = copy.deepcopy(planner)
    for other in (restored, copied):
        assert other.to_state() == planner.to_state()
        assert other.estimates == planner.estimates
    copied.absorb([9] * (copied.edges.size + 1))
    assert copied.items != planner.items


@pytest.mark.parametrize("damage", [{"edges": [1.0, 1.0]}, {"edges": []}, {"searches": []}, {"segment_length": 1}])
def test_segment_planner__refuses_a_state_that_no_planner_has(damage: dict[str, Any]) -> None:
    state = SegmentPlanner((0.5,), ONE).to_state()
    SegmentPlanner((0.5,), ONE).restore(state)
    with pytest.raises((ValueError, TypeError, LookupError)):
        SegmentPlanner((0.5,), ONE).restore(state | damage)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"quantiles": (0.0,)}, "quantile must lie strictly between 0 and 1"),
        ({"quantiles": (1e-12,)}, "quantile must be at least 1e-09 away"),
        ({"start": math.inf}, "start must be a number"),
        ({"guarantee": dpf.PureDP(epsilon=1e-17)}, "too strong: its noise would exceed any count"),
    ],
)
def test_segment_planner__refuses_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    right: dict[str, Any] = {"quantiles": (0.5,), "guarantee": ONE}
    with pytest.raises(ParameterError, match=sentence):
        SegmentPlanner(**right | options)


def test_segment_planner__refuses_counts_of_other_bins_or_of_nothing() -> None:
    planner = SegmentPlanner((0.5,), ONE)
    with pytest.raises(ParameterError, match="counts must have one number per bin"):
        planner.absorb([1, 2])
    with pytest.raises(ParameterError, match="counts must be of at least one item"):
        planner.absorb([0] * (planner.edges.size + 1))
    assert planner.items == 0


def test_segment_planner__segments_are_short_where_the_stream_is_said_to_be() -> None:
    assert settled(segments=20, expected_items=16 * 400).segment_length <= 4 * 400
    assert settled(segments=20).segment_length > 4 * 400
    planner = SegmentPlanner((0.5,), ONE)
    planner.expect(10)
    assert planner.segment_length == SHORTEST


def test_noise_variance__is_that_of_a_histogram() -> None:
    assert noise_variance(ONE, Sensitivity(l1=2, l2_squared=2)) == pytest.approx(7.8354, abs=1e-4)


def test_segment_exposure__counts_a_move_between_bins_and_a_move_of_one_number() -> None:
    exposure = segment_exposure(dpf.ZCDP(rho=0.5), Sensitivity(l1=2, l2_squared=2), Sensitivity.of(1))
    assert exposure is not None
    assert exposure.budget == 2
    assert sorted((move.cost, move.shift) for move in exposure.moves) == [(1, 1), (2, 1)]
    assert exposure.size >= 0.5 * (1 - 1e-9)
