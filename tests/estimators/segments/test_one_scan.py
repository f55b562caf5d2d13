"""One long segment between many edges, in place of many short ones."""

import numpy as np
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.errors import ItemError, ParameterError
from dpfrugal.estimators.segments.counting import count_below

SAMPLE = 1 << 16


def binned(items: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    below, _ = count_below(items, edges)
    return np.diff(below, prepend=0, append=items.size)


def concluded(items: NDArray[np.float64], quantiles: list[float], rest: NDArray[np.float64]) -> dpf.SegmentRelease:
    p = dpf.PrivateQuantile(quantiles, dpf.PureDP(epsilon=1.0))
    p.update_many(items[:SAMPLE])
    p.expect(items.size - SAMPLE)
    assert p.edges.size < 120
    p.absorb(binned(rest, p.edges))
    return p.release()


def far_off(items: NDArray[np.float64], release: dpf.SegmentRelease) -> list[bool]:
    """Which values are more than three of the exact sample quantile's standard errors from the items' own quantile."""
    return [
        abs(float(np.mean(items < value)) - q) > 3 * (q * (1 - q) / items.size) ** 0.5
        for q, value in zip(release.quantiles, release.values, strict=True)
    ]


@pytest.mark.parametrize("name", ["normal", "standard_cauchy", "exponential"])
def test_one_scan__is_as_good_as_many_short_segments(name: str) -> None:
    # The error added to the items' own quantile has a standard deviation below 0.3 of that unit: 3 is ten of them.
    items = getattr(np.random.default_rng(5), name)(size=400_000) * 7 + 1000
    release = concluded(items, [0.1, 0.5, 0.99], items[SAMPLE:])
    assert not any(far_off(items, release))
    assert release.items == items.size
    # A leg that must fail: a rest that is not that of the items.
    assert far_off(items, concluded(items, [0.5], items[SAMPLE:] + 0.2)) == [True]


def test_one_scan__finds_a_number_that_holds_the_quantile() -> None:
    items = np.floor(np.random.default_rng(6).lognormal(4, 1, 600_000))
    # Both numbers hold q by more than thirty standard deviations of the noise.
    values = concluded(items, [0.3, 0.5], items[SAMPLE:]).values
    assert [round(value) for value in values] == np.quantile(items, [0.3, 0.5]).tolist()


def test_expect__changes_the_length_only_before_anything_is_known() -> None:
    p = dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0))
    edges = p.edges
    p.expect(12_345)
    assert p.segment_length == 12_345
    assert np.array_equal(p.edges, edges)


def test_absorb__pools_segments_and_takes_missing_items() -> None:
    p = dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0), nan_policy="omit")
    counts = np.zeros(p.edges.size + 1, dtype=np.int64)
    counts[3] = p.segment_length - 10
    p.absorb(counts, whole=False, missing=3)
    assert p._planner.items == 0
    p.absorb(counts, whole=False)
    assert p._planner.items == p.items == 2 * (counts[3]) + 3


def test_expect_and_absorb__refuse_in_sentences() -> None:
    p = dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0))
    counts = np.ones(p.edges.size + 1, dtype=np.int64)
    with pytest.raises(ItemError, match="NaN or nulls"):
        p.absorb(counts, missing=1)
    with pytest.raises(ItemError, match="at least one item"):
        p.absorb(counts, missing=-1)
    for items in (0, -1, 2.0**60, float("nan")):
        with pytest.raises(ParameterError, match="items"):
            p.expect(items)  # type: ignore[arg-type]
    assert p.items == 0
