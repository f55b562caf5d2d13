"""Releases: their values in the order of q, what they say, and their records for JSON."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.releases import SegmentRelease, WalkRelease, in_quantile_order
from dpfrugal.privacy.guarantees import Sensitivity

ONE = dpf.PureDP(epsilon=1.0)


def walk_release(*values: float, quantiles: tuple[float, ...] = (0.5,), people: int = 1) -> WalkRelease:
    return WalkRelease(
        values=values,
        quantiles=quantiles,
        guarantee=ONE,
        items=1500,
        max_items_per_person=people,
        grid=Grid(1),
        sensitivity=Sensitivity.of(2),
    )


def segment_release(*intervals: tuple[float, float], stable: bool = True) -> SegmentRelease:
    return SegmentRelease(
        values=tuple(low + 1 if math.isfinite(low) else 0.0 for low, _ in intervals),
        quantiles=(0.5, 0.9, 0.99)[: len(intervals)],
        guarantee=ONE,
        items=1500,
        stable=stable,
        bounds=lambda confidence: intervals,
    )


@given(st.lists(st.integers(-99, 99), min_size=3, max_size=3), st.permutations([0.1, 0.5, 0.9]))
def test_in_quantile_order__sorts_values_by_q_and_loses_none(points: list[int], quantiles: list[float]) -> None:
    found = in_quantile_order(np.array([points, points]), tuple(quantiles))
    by_q = [value for _, value in sorted(zip(quantiles, found[0].tolist(), strict=True))]
    assert by_q == sorted(points)
    assert found[1].tolist() == found[0].tolist()


@given(st.lists(st.floats(-99, 99), min_size=4, max_size=4), st.lists(st.floats(-99, 99), min_size=4, max_size=4))
def test_in_quantile_order__makes_no_error_larger(true: list[float], noisy: list[float]) -> None:
    """The largest error of any value, where the true ones are in order."""
    found = in_quantile_order(np.array(noisy), (0.1, 0.2, 0.3, 0.4))
    truth = np.sort(true)
    assert np.abs(found - truth).max() <= np.abs(np.array(noisy) - truth).max() + 1e-9


def test_release__has_one_value_where_one_quantile_was_asked_for() -> None:
    assert (walk_release(3.0).value, walk_release(3.0).quantile) == (3.0, 0.5)
    several = walk_release(3.0, 4.0, quantiles=(0.5, 0.9))
    for name in ("value", "quantile"):
        with pytest.raises(dpf.ParameterError, match=f"{name} is for one quantile; this release has 2: use {name}s."):
            getattr(several, name)


def test_release__names_whose_change_is_hidden() -> None:
    assert walk_release(3.0).unit == "item"
    assert walk_release(3.0, people=4).unit == "person of ≤ 4 items"


def test_walk_release__has_an_alpha_in_the_units_of_the_data() -> None:
    release = walk_release(3.0)
    assert release.alpha(0.05) == pytest.approx(2 * math.log(20) / 10)
    assert release.alpha(0.05, exact=True) == pytest.approx(ONE.alpha(0.05, Sensitivity.of(2), exact=True) / 10)
    assert str(release) == f"q=0.5: 3.0 ± {release.alpha(0.05, exact=True):.2g} (noise, 95%), ε=1 per item, 1,500 items"


@pytest.mark.parametrize("release", [walk_release(3.0), segment_release((1.0, 5.0)), segment_release((-math.inf, 2.0))])
def test_to_dict__is_plain_json_with_the_claim(release: WalkRelease | SegmentRelease) -> None:
    record = json.loads(json.dumps(release.to_dict(), allow_nan=False))
    assert record["values"] == list(release.values)
    assert record["value"] == release.value
    assert record["guarantee"] == {"PureDP": {"epsilon": 1.0}}
    assert (record["items"], record["unit"], record["neighbours"]) == (1500, "item", "replace-one")


def test_segment_release__shows_an_unknown_end_as_null() -> None:
    assert segment_release((-math.inf, 2.0)).to_dict()["intervals"] == [[None, 2.0]]
    assert segment_release((1.0, 5.0)).to_dict()["intervals"] == [[1.0, 5.0]]


def test_segment_release__has_one_interval_or_several() -> None:
    assert segment_release((1.0, 5.0)).interval() == (1.0, 5.0)
    assert segment_release((1.0, 5.0), (2.0, 6.0)).interval() == ((1.0, 5.0), (2.0, 6.0))
    for wrong in (0, 1, math.nan):
        with pytest.raises(dpf.ParameterError, match="confidence"):
            segment_release((1.0, 5.0)).intervals(wrong)


def test_segment_release__says_when_segments_disagree() -> None:
    assert "NOT STABLE" not in str(segment_release((1.0, 5.0)))
    assert str(segment_release((1.0, 5.0), stable=False)).endswith("NOT STABLE: segments disagree")


def test_repr__shows_a_value_with_its_interval() -> None:
    quantile = dpf.PrivateQuantile(0.5, ONE)
    quantile.update_many(range(5_000))
    walk = dpf.DPFrugal1U(0.5, ONE)
    walk.update(3.0)
    for release in (quantile.release(), walk.release()):
        assert repr(release) == f"{type(release).__name__}({release})"
    low, high = quantile.release().interval()
    assert f"[{low:.6g}, {high:.6g}]" in repr(quantile.release())
