"""One quantile's search: public edges out, noisy shares in; its stages, its bounds, and what it keeps."""

import copy
import json
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.segments.edge_placement import after
from dpfrugal.estimators.segments.evidence import Target
from dpfrugal.estimators.segments.locate import HUGE, Locate
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf
from dpfrugal.estimators.segments.one_scan import OneScan
from dpfrugal.estimators.segments.refine import Refine
from dpfrugal.estimators.segments.search import STAGES, Atom, Search

Cdf = Callable[[float], float]
NORMAL = NormalDist(100.0, 15.0)


def constant(number: float) -> Cdf:
    """All items are one number: the share below an edge."""
    return lambda edge: float(number < edge)


def tied(number: float, share: float, law: Cdf) -> Cdf:
    """One number holds a share of the items, a smooth law the rest."""
    return lambda edge: share * (number < edge) + (1 - share) * law(edge)


def segment(search: Search, law: Cdf, items: int, noise: float = 1e-4) -> NoisyCdf:
    """What a segment would show without chance."""
    edges = np.unique(np.array(search.edges()))
    shares = np.array([law(edge) for edge in edges.tolist()])
    return NoisyCdf(edges, shares, np.full(edges.size, noise), items, noise)


def searched(law: Cdf, q: float, segments: int, items: int = 5_000, **options: Any) -> Search:
    search = Search(Target(q), 0.0, **options)
    for _ in range(segments):
        search.absorb(segment(search, law, items))
    return search


def test_search__begins_with_edges_at_all_magnitudes_around_its_start() -> None:
    search = Search(Target(0.5), 7.0)
    edges = search.edges()
    assert 7.0 in edges
    assert min(edges) < -1e18
    assert max(edges) > 1e18
    assert min(abs(edge - 7.0) for edge in edges if edge != 7.0) < 1e-9
    assert search.locating
    assert search.estimate == 7.0
    assert search.interval(0.95) == (-math.inf, math.inf)


@pytest.mark.parametrize("q", [0.01, 0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(("mean", "deviation"), [(100.0, 15.0), (-1e9, 1.0), (0.0, 1e-9), (3e12, 1e12)])
def test_search__locates_and_refines_a_quantile_of_any_scale(q: float, mean: float, deviation: float) -> None:
    law = NormalDist(mean, deviation)
    search = searched(law.cdf, q, 80, 20_000)
    true = law.inv_cdf(q)
    assert isinstance(search.stage, Refine)
    assert not search.locating
    assert search.agreement.stable
    assert abs(law.cdf(search.estimate) - q) < 0.1 * min(q, 1 - q)
    low, high = search.interval(0.95)
    assert low <= true <= high
    assert high - low < deviation


@pytest.mark.parametrize("number", [0.0, 7.25, -3e9, 2.0**60])
def test_search__ends_at_the_one_number_that_all_items_are(number: float) -> None:
    search = searched(constant(number), 0.5, 40)
    assert isinstance(search.stage, Atom)
    assert search.estimate == number
    assert search.interval(0.99) == (number, number)
    assert search.edges() == [number, after(number)]


def test_search__ends_at_a_number_that_holds_the_quantile_among_others() -> None:
    search = searched(tied(0.0, 0.4, NormalDist(0.0, 5.0).cdf), 0.5, 60, 20_000)
    assert isinstance(search.stage, Atom)
    assert search.estimate == 0.0


def test_search__leaves_a_number_that_no_longer_holds_the_quantile() -> None:
    search = searched(constant(5.0), 0.5, 40)
    for _ in range(40):
        search.absorb(segment(search, constant(9.0), 5_000))
        if not isinstance(search.stage, Atom):
            break
    assert search.locating
    assert not search.agreement.stable
    low, high = search.interval(0.95)
    assert low <= 5.0 <= high, "where it has been while segments disagreed"


def test_search__follows_a_moved_quantile_and_says_that_segments_disagree() -> None:
    search = searched(NORMAL.cdf, 0.5, 60, 5_000)
    moved = NormalDist(400.0, 15.0)
    unstable = False
    for _ in range(200):
        search.absorb(segment(search, moved.cdf, 5_000))
        unstable |= not search.agreement.stable
    assert unstable
    assert search.estimate == pytest.approx(400.0, abs=5.0)


@given(confidence=st.floats(0.01, 0.99), more=st.floats(0.001, 0.99))
@settings(max_examples=20)
def test_search__has_wider_intervals_at_more_confidence(confidence: float, more: float) -> None:
    search, surer = searched(NORMAL.cdf, 0.9, 12), confidence + (1 - confidence) * more * 0.99
    low, high = search.interval(confidence)
    wide_low, wide_high = search.interval(surer)
    assert wide_low <= low <= search.estimate <= high <= wide_high


LAWS: dict[str, Cdf] = {"normal": NORMAL.cdf, "one number": constant(3.5), "ties": tied(90.0, 0.2, NORMAL.cdf)}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("segments", [0, 1, 3, 8, 20, 40])
def test_search__goes_on_from_its_record_exactly(law: str, segments: int) -> None:
    original = searched(LAWS[law], 0.5, segments)
    restored = Search.of_state(json.loads(json.dumps(original.to_state())))
    for _ in range(10):
        assert restored.edges() == original.edges()
        assert restored.length(10**5, 8.0, 8.0) == original.length(10**5, 8.0, 8.0)
        assert restored.interval(0.9) == original.interval(0.9)
        for search in (original, restored):
            search.absorb(segment(search, LAWS[law], 4_000))
    assert restored.to_state() == original.to_state()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("segments", [0, 1, 3, 8, 20, 40])
def test_search__copies_deeply_what_it_changes(law: str, segments: int) -> None:
    search = searched(LAWS[law], 0.5, segments)
    before, twin = search.to_state(), copy.deepcopy(search)
    for _ in range(10):
        twin.absorb(segment(twin, NormalDist(-1e4, 1.0).cdf, 3_000))
    assert search.to_state() == before
    assert twin.to_state() != before


def test_search__refuses_a_record_that_is_none() -> None:
    state = searched(NORMAL.cdf, 0.5, 3).to_state()
    for wrong in ({}, {**state, "kind": "Other"}, {**state, "stage": {}}, {**state, "search": None}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            Search.of_state(wrong)


def test_search__has_a_record_for_every_stage() -> None:
    """The names are those in checkpoints, whatever the classes are called."""
    assert {"Locate": Locate, "Refine": Refine, "Atom": Atom, "Conclude": OneScan} == STAGES


def test_expect__cuts_a_window_into_bins_and_nothing_else() -> None:
    search = Search(Target(0.5), 0.0)
    search.expect(10**6, 20)
    assert isinstance(search.stage, Locate)
    search = searched(NORMAL.cdf, 0.5, 60, 20_000)
    before = search.estimate
    search.expect(10**6, 20)
    assert isinstance(search.stage, OneScan)
    assert len(search.edges()) >= 21
    assert search.length(10**5, 8.0, 8.0) == 10**6
    assert search.estimate == before
    search.absorb(segment(search, NORMAL.cdf, 10**6, 1e-6))
    assert isinstance(search.stage, Refine)
    assert search.estimate == pytest.approx(100.0, abs=0.05)


@settings(max_examples=60)
@given(data=st.data(), q=st.sampled_from([1e-9, 0.01, 0.5, 0.999]))
def test_search__asks_for_finite_edges_whatever_the_counts_say(data: st.DataObject, q: float) -> None:
    search = Search(Target(q), 0.0)
    for _ in range(6):
        edges = np.unique(np.array(search.edges()))
        assert np.isfinite(edges).all()
        assert np.abs(edges).max() <= HUGE
        share = np.array(data.draw(st.lists(st.floats(-2, 3), min_size=edges.size, max_size=edges.size)))
        try:
            search.absorb(NoisyCdf(edges, share, np.full(edges.size, 0.01), 200, 0.01))
        except (ArithmeticError, LookupError, ValueError):
            return  # the machine starts such a search again, and nobody is told
        low, high = search.interval(0.95)
        assert low <= search.estimate <= high
        assert Search.of_state(search.to_state()).edges() == search.edges()


def test_atom__is_confirmed_while_the_quantile_is_within_its_share() -> None:
    atom = Atom(Target(0.5), 2.0)
    edges = np.array([2.0, after(2.0)])
    for below, upto, confirmed in ((0.4, 0.6, True), (0.5, 0.9, True), (0.1, 0.49, True), (0.9, 1.0, False)):
        again = copy.deepcopy(atom)
        cdf = NoisyCdf(edges, np.array([below, upto]), np.full(2, 0.001), 2_000, 0.001)
        assert again.confirmed(cdf) is confirmed
    assert atom.edges() == [2.0, after(2.0)]
    for _ in range(400):  # a little too much below, again and again
        cdf = NoisyCdf(edges, np.array([0.503, 0.9]), np.full(2, 0.001), 2_000, 0.001)
        if not atom.confirmed(cdf):
            break
    else:
        pytest.fail("many segments together must see what one cannot")


@pytest.mark.parametrize("spacing", [0.3, 1.15, 5.0, 23.0])
@pytest.mark.parametrize("q", [0.31, 0.5, 0.9])
def test_search__intervals_hold_the_quantile_of_any_lattice(spacing: float, q: float) -> None:
    """Only multiples of a number occur, which is no power of ten: the quantile is one of them."""

    def stairs(edge: float) -> float:
        return NORMAL.cdf(math.ceil(edge / spacing) * spacing)

    exact = math.floor(NORMAL.inv_cdf(q) / spacing) * spacing
    assert stairs(exact) <= q <= stairs(after(exact))
    for segments in (5, 12, 25, 40):
        low, high = searched(stairs, q, segments).interval(0.95)
        assert low <= exact <= high
