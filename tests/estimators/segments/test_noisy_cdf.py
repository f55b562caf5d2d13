"""Noisy shares below public edges, read off one segment's noisy counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf
from tests.support.statistics import FALSE_ALARM

EDGES = np.array([0.0, 1.0, 2.0, 3.0])
histograms = st.lists(st.integers(-50, 300), min_size=2, max_size=9)


def edges_of(count: int) -> np.ndarray:
    return np.arange(float(count))


def exact(shares: list[float], items: int = 10_000, noise: float = 0.0) -> NoisyCdf:
    """Shares with hardly any error."""
    several = np.array(shares)
    return NoisyCdf(edges_of(len(shares)), several, np.full(several.size, noise), items, noise)


def test_of_bins__without_noise_is_the_share_below_each_edge() -> None:
    cdf = NoisyCdf.of_bins(EDGES, [10, 20, 30, 15, 25], 100, 0.0)
    assert cdf.share.tolist() == pytest.approx([0.1, 0.3, 0.6, 0.75])
    assert cdf.noise.tolist() == [0.0] * 4
    assert (cdf.items, cdf.bin_noise) == (100, 0.0)


def test_of_bins__has_the_noise_of_the_worked_number() -> None:
    cdf = NoisyCdf.of_bins(EDGES[:3], [200, 300, 300, 200], 1000, 8.0)
    assert cdf.noise[1] == pytest.approx(0.0028, abs=5e-5)
    assert cdf.bin_noise == pytest.approx(math.sqrt(8) / 1000)


@given(histograms, st.integers(1, 1000))
def test_of_bins__gives_the_same_from_below_and_from_above(noisy: list[int], items: int) -> None:
    """Reading the histogram backwards gives the shares above: all of them are one less the shares below."""
    edges = edges_of(len(noisy) - 1)
    forward, backward = (NoisyCdf.of_bins(edges, bins, items, 2.0) for bins in (noisy, noisy[::-1]))
    assert forward.share.tolist() == pytest.approx((1 - backward.share[::-1]).tolist(), abs=1e-9)
    assert forward.noise.tolist() == pytest.approx(backward.noise[::-1].tolist())


def test_of_bins__has_as_much_noise_as_it_says() -> None:
    """Of 4,000 histograms with rounded Gaussian noise: each variance within 15%; by chance once in 10^9 runs.

    The leg that must fail: the variance of a sum from below alone, j counts, is larger by half and more.
    """
    rng, variance, runs = np.random.default_rng(7), 64.0, 4_000
    true, items = np.array([100, 300, 250, 50, 300]), 1000
    shares = np.array(
        [
            NoisyCdf.of_bins(EDGES, (true + np.rint(rng.normal(0, 8, 5)).astype(int)).tolist(), items, variance).share
            for _ in range(runs)
        ]
    )
    said = NoisyCdf.of_bins(EDGES, true.tolist(), items, variance + 1 / 12).noise ** 2
    seen, slack = shares.var(axis=0), 6.5 * math.sqrt(2 / runs)
    assert slack < 0.15
    assert FALSE_ALARM <= 1e-9
    assert np.all(np.abs(seen / said - 1) < slack)
    from_below = variance * np.arange(1, 5) / items**2
    assert np.any(np.abs(seen / from_below - 1) > slack)
    assert np.allclose(shares.mean(axis=0), np.cumsum(true)[:-1] / items, atol=6.5 * 0.01 / math.sqrt(runs))


def test_of_one__is_one_noisy_number() -> None:
    cdf = NoisyCdf.of_one(EDGES[:1], 37, 100, 4.0)
    assert (cdf.share.tolist(), cdf.noise.tolist(), cdf.bin_noise) == ([0.37], [0.02], 0.02)


@given(q=st.floats(0.01, 0.99), noise=st.floats(0, 0.1), items=st.integers(1, 10**6))
def test_error__is_that_of_sampling_and_noise_together(q: float, noise: float, items: int) -> None:
    cdf = exact([0.2, 0.4], items, noise)
    assert cdf.error(q).tolist() == pytest.approx([math.hypot(math.sqrt(q * (1 - q) / items), noise)] * 2)
    assert cdf.error_at(1, q) == pytest.approx(cdf.error(q)[1])


def test_index_and_share_at__find_an_edge() -> None:
    cdf = exact([0.2, 0.4, 0.9])
    assert [cdf.index(edge) for edge in (0.0, 1.0, 2.0)] == [0, 1, 2]
    assert cdf.share_at(1.0) == 0.4


@pytest.mark.parametrize(
    ("shares", "q", "bracket"),
    [
        ([0.1, 0.3, 0.6, 0.9], 0.5, (1.0, 2.0)),
        ([0.1, 0.3, 0.6, 0.9], 0.05, (-math.inf, 0.0)),
        ([0.1, 0.3, 0.6, 0.9], 0.95, (3.0, math.inf)),
        ([0.1, 0.5, 0.5, 0.9], 0.5, (0.0, 3.0)),  # edges that may be either side are no bounds
        ([0.5], 0.5, (-math.inf, math.inf)),
        ([0.1, 0.3, 0.9, 0.3], 0.5, (1.0, math.inf)),  # one outlier cannot set a bound
        ([0.9, 0.1, 0.3, 0.9], 0.5, (-math.inf, 3.0)),
    ],
)
def test_bracket__ends_where_the_edges_that_are_believed_end(
    shares: list[float], q: float, bracket: tuple[float, float]
) -> None:
    assert exact(shares).bracket(q, 2.5) == bracket


@given(shares=st.lists(st.floats(0, 1), min_size=1, max_size=9), q=st.floats(0.01, 0.99), more=st.floats(0, 5))
def test_bracket__of_more_certainty_is_no_narrower(shares: list[float], q: float, more: float) -> None:
    cdf = exact(shares, 500, 0.01)
    narrow, wide = cdf.bracket(q, 1.0), cdf.bracket(q, 1.0 + more)
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


@given(shares=st.lists(st.floats(0, 1), min_size=2, max_size=9), q=st.floats(0.01, 0.99))
def test_interval__lies_within_the_bracket(shares: list[float], q: float) -> None:
    cdf = exact(sorted(shares), 300, 0.01)
    low, high = cdf.bracket(q, 2.0)
    inner = cdf.interval(q, 2.0)
    assert low <= inner[0]
    assert inner[1] <= high


def test_interval__ends_between_edges_where_little_lies_between_them() -> None:
    """On a straight CDF its ends are where q is two errors away, which between edges is read off by a line."""
    edges = np.linspace(0, 1, 201)
    cdf = NoisyCdf(edges, edges.copy(), np.full(201, 0.001), 10_000, 0.001)
    low, high = cdf.interval(0.5, 2.0)
    error = cdf.error_at(0, 0.5)
    assert (low, high) == pytest.approx((0.5 - 2 * error, 0.5 + 2 * error), abs=1e-4)
    assert cdf.bracket(0.5, 2.0)[0] < low


@pytest.mark.parametrize(
    ("shares", "rising"),
    [
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        ([0.3, 0.1], [0.2, 0.2]),
        ([0.5, 0.4, 0.3, 0.9], [0.4, 0.4, 0.4, 0.9]),
        ([-0.2, 0.5, 1.3], [0.0, 0.5, 1.0]),
        ([0.1, 0.4, 0.2, 0.2, 0.8], [0.1, 0.8 / 3, 0.8 / 3, 0.8 / 3, 0.8]),
    ],
)
def test_rising__is_the_isotonic_regression(shares: list[float], rising: list[float]) -> None:
    assert exact(shares).rising().tolist() == pytest.approx(rising)


@given(shares=st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=12))
def test_rising__rises_between_0_and_1_and_is_no_farther_from_any_true_cdf(shares: list[float]) -> None:
    found = exact(shares).rising()
    assert np.all(np.diff(found) >= -1e-12)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    true = np.linspace(0.05, 0.95, len(shares))
    assert np.sum((found - true) ** 2) <= np.sum((np.array(shares) - true) ** 2) + 1e-9
