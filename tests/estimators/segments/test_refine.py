"""Refine: an edge at the estimate, a window around it, and the density there; fed with exact shares of known laws."""

import copy
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.segments.evidence import Agreement, Evidence, Target
from dpfrugal.estimators.segments.locate import HUGE, SHORTEST
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf
from dpfrugal.estimators.segments.refine import Refine, settled_length

Cdf = Callable[[float], float]
NORMAL = NormalDist(100.0, 15.0)


def uniform(edge: float) -> float:
    return min(max(edge, 0.0), 1.0)


def multiples(unit: float, law: Cdf) -> Cdf:
    """The law of numbers that are rounded down to a multiple: the share *below* an edge."""
    return lambda edge: law(math.ceil(edge / unit) * unit)


def segment(refine: Refine, law: Cdf, items: int, noise: float = 0.0) -> NoisyCdf:
    """What a segment with these edges would show without chance, each share with a claimed noise."""
    edges = np.unique(np.array(refine.edges()))
    shares = np.array([law(edge) for edge in edges.tolist()])
    return NoisyCdf(edges, shares, np.full(edges.size, noise), items, noise)


def refined(law: Cdf, q: float, estimate: float, window: tuple[float, float], segments: int, items: int) -> Refine:
    evidence = Evidence()
    evidence.add(estimate, 0.0, 1 / 0.02**2)
    refine, agreement = Refine(Target(q), estimate, window, evidence), Agreement()
    for _ in range(segments):
        refine.absorb(segment(refine, law, items), agreement)
        assert not refine.lost
        assert agreement.stable
    return refine


@given(q=st.floats(0.001, 0.999), total=st.floats(0, 1e9), variance=st.floats(0, 1e6))
def test_settled_length__is_a_part_of_all_items(q: float, total: float, variance: float) -> None:
    length = settled_length(Target(q), total, variance)
    assert length >= SHORTEST
    assert length <= max(SHORTEST, 0.4 * total)
    assert length >= min(0.4 * total, total / 6 if total < 2e6 else total / 3)


def test_settled_length__is_longer_where_noise_is_loud() -> None:
    target = Target(0.5)
    assert settled_length(target, 10_000, 8.0) == 2_500
    assert settled_length(target, 10_000, 100.0) == 3_200
    assert settled_length(target, 10_000, 1e6) == 4_000


@pytest.mark.parametrize(("q", "start"), [(0.5, 101.0), (0.9, 118.0), (0.1, 82.0), (0.99, 134.0)])
def test_refine__comes_to_the_quantile_and_its_density(q: float, start: float) -> None:
    """Shares are exact: what is left is what a bent CDF adds, far below the standard error of so many items."""
    refine = refined(NORMAL.cdf, q, start, (start - 6.0, start + 6.0), 60, 20_000)
    true = NORMAL.inv_cdf(q)
    assert refine.estimate == pytest.approx(true, abs=1.5 * refine.evidence.error / NORMAL.pdf(true))
    assert refine.density == pytest.approx(NORMAL.pdf(true), rel=0.1)
    low, high = refine.window
    assert low < true < high
    assert high - low < 12.0


@pytest.mark.parametrize("segments", [1, 2, 5, 9, 17, 33])
def test_refine__has_an_interval_that_holds_the_quantile_and_shrinks(segments: int) -> None:
    early, late = (refined(NORMAL.cdf, 0.5, 101.0, (95.0, 107.0), n, 5_000) for n in (segments, 4 * segments))
    for refine in (early, late):
        low, high = refine.interval(1.96)
        assert low <= 100.0 <= high
        assert refine.interval(3.0)[0] <= low
        assert high <= refine.interval(3.0)[1]
    assert np.diff(late.interval(1.96)) <= np.diff(early.interval(1.96)) * 1.01


def test_refine__counts_at_one_edge_and_measures_the_window_every_fourth_time() -> None:
    refine, agreement = refined(NORMAL.cdf, 0.5, 101.0, (95.0, 107.0), 6, 20_000), Agreement()
    assert refine.settled
    counts = []
    for _ in range(16):
        counts.append(len(refine.edges()))
        refine.absorb(segment(refine, NORMAL.cdf, 20_000), agreement)
    assert counts.count(1) == 12
    assert set(counts) <= {1, 10, 12}  # the window, its centre and seven between; a round number
    places = [k for k, count in enumerate(counts) if count > 1]
    assert np.diff(places).tolist() == [4, 4, 4]


def test_refine__has_edges_that_are_finite_and_hold_its_centre() -> None:
    refine = Refine(Target(0.5), 3.0, (2.0, 5.0))
    assert (min(refine.edges()), max(refine.edges())) == (2.0, 5.0)
    assert refine.centre == 3.0 in refine.edges()
    assert Refine(Target(0.5), 3.2, (2.0, 5.0), grain=1.0).centre == 3.5


@pytest.mark.parametrize("shift", [-200.0, 200.0])
def test_refine__that_has_lost_the_quantile_says_so(shift: float) -> None:
    refine, agreement = refined(NORMAL.cdf, 0.5, 101.0, (95.0, 107.0), 8, 20_000), Agreement()
    moved = NormalDist(100.0 + shift, 15.0)
    for _ in range(4):
        refine.absorb(segment(refine, moved.cdf, 20_000), agreement)
        if refine.lost:
            break
    assert refine.lost
    assert not agreement.stable


def test_refine__widens_a_window_that_cannot_be_told_from_an_empty_one() -> None:
    """Between two heaps there is nothing: the window grows until it sees something."""

    def two_heaps(edge: float) -> float:
        return 0.5 * uniform(edge) + 0.5 * uniform(edge - 1_000.0)

    evidence = Evidence()
    evidence.add(400.0, 0.0, 1 / 0.05**2)
    refine, agreement = Refine(Target(0.5), 400.0, (390.0, 410.0), evidence), Agreement()
    widths = []
    for _ in range(6):
        widths.append(refine.window[1] - refine.window[0])
        refine.absorb(segment(refine, two_heaps, 5_000, noise=0.001), agreement)
    assert widths == sorted(widths)
    assert widths[-1] > 4 * widths[0]
    low, high = refine.interval(1.96)
    assert low <= 1.0 + 400.0
    assert high >= 400.0


@pytest.mark.parametrize(("unit", "q"), [(1.0, 0.47), (1.0, 0.9), (10.0, 0.47), (100.0, 0.1)])
def test_refine__finds_out_that_only_multiples_of_a_power_of_ten_occur(unit: float, q: float) -> None:
    smooth = NormalDist(100.0 * unit, 15.0 * unit)
    start = smooth.inv_cdf(q) + 0.2 * unit
    evidence, agreement = Evidence(), Agreement()
    evidence.add(start, 0.0, 1 / 0.02**2)
    refine = Refine(Target(q), start, (start - 9 * unit, start + 9 * unit), evidence)
    for _ in range(60):
        refine.absorb(segment(refine, multiples(unit, smooth.cdf), 50_000), agreement)
        assert not refine.lost
        assert not refine.tied
        if refine.atom:
            break
    assert refine.grain == unit
    assert refine.number == pytest.approx(math.floor(smooth.inv_cdf(q) / unit) * unit)


def test_refine__has_bounds_that_are_multiples_where_only_those_occur() -> None:
    refine = Refine(Target(0.5), 7.2, (3.0, 11.0), density=0.1, grain=1.0, pooled_items=800.0, pooled_width=8000.0)
    refine.evidence.add(7.2, 0.0, 1 / 0.05**2)
    refine.multiples = (7.0, 7.0)  # one number that holds many items: between it and the next there may be others
    assert refine.interval(1.96) == (5.5, 8.5)
    refine.multiples = (7.0, 8.0)
    low, high = refine.interval(1.96)
    assert (low, high) == (round(low), round(high))
    assert refine.number == 7.0
    assert low <= 7.0 <= high


@given(
    shares=st.lists(st.floats(-0.5, 1.5), min_size=100, max_size=100),
    q=st.sampled_from([0.001, 0.1, 0.5, 0.99]),
    noise=st.sampled_from([0.0, 1e-4, 0.05]),
)
def test_refine__stays_finite_whatever_the_counts_say(shares: list[float], q: float, noise: float) -> None:
    evidence = Evidence()
    evidence.add(0.3, 0.0, 1 / 0.05**2)
    refine, agreement, told = Refine(Target(q), 0.3, (0.1, 0.9), evidence), Agreement(), iter(shares)
    for _ in range(8):
        edges = np.unique(np.array(refine.edges()))
        before = copy.deepcopy(refine)
        share = np.array([next(told) for _ in edges])
        try:
            refine.absorb(NoisyCdf(edges, share, np.full(edges.size, noise), 300, noise), agreement)
        except (ArithmeticError, ValueError):
            break  # the machine starts such a search again, and nobody is told
        assert all(math.isfinite(edge) and abs(edge) <= HUGE for edge in refine.edges())
        assert refine.window[0] <= refine.window[1]
        assert refine.length(10_000, 8.0, 8.0) >= SHORTEST
        if refine.lost:
            assert before.window == refine.window
            break
