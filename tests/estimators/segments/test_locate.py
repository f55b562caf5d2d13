"""Locate: the bracket shrinks around the quantile of laws that are known, whatever noise contradicts."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from dpfrugal.estimators.segments.edge_placement import after
from dpfrugal.estimators.segments.evidence import Agreement, Target
from dpfrugal.estimators.segments.locate import HUGE, LEAST_PART, SHORTEST, Locate, interpolate, stands_out
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf

Cdf = Callable[[float], float]
LAWS: dict[str, tuple[Cdf, Callable[[float], float]]] = {
    "normal far off": (NormalDist(1e6, 3.0).cdf, NormalDist(1e6, 3.0).inv_cdf),
    "exponential": (lambda x: -math.expm1(-max(x, 0.0)), lambda q: -math.log1p(-q)),
    "tiny and negative": (NormalDist(-1e-4, 1e-6).cdf, NormalDist(-1e-4, 1e-6).inv_cdf),
}


def shown(law: Cdf, edges: list[float], items: int = 20_000, noise: float = 1e-4) -> NoisyCdf:
    places = np.unique(np.array(edges))
    shares = np.array([law(edge) for edge in places.tolist()])
    return NoisyCdf(places, shares, np.full(places.size, noise), items, noise)


def located(law: Cdf, q: float, segments: int, **options: Any) -> Locate:
    stage = Locate(Target(q), 0.0, 0.0)
    for _ in range(segments):
        stage.absorb(shown(law, stage.edges(), **options), Agreement())
    return stage


@pytest.mark.parametrize("q", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("name", LAWS)
def test_locate__brackets_the_quantile_ever_more_narrowly(name: str, q: float) -> None:
    law, inverse = LAWS[name]
    widths = []
    for segments in (2, 8, 16):
        stage = located(law, q, segments)
        assert stage.low <= inverse(q) <= stage.high
        assert stage.low <= stage.estimate <= stage.high
        widths.append(stage.high - stage.low)
    assert widths[2] <= widths[1] <= widths[0]
    assert law(stage.high) - law(stage.low) < 0.5
    assert stage.interval(3.0)[0] <= inverse(q) <= stage.interval(3.0)[1]


def test_locate__asks_for_edges_that_are_numbers_and_for_enough_items() -> None:
    for q in (0.5, 0.99):
        stage = Locate(Target(q), 3.0, 3.0)
        for segment in range(6):
            edges = stage.edges()
            assert all(abs(edge) <= 2 * HUGE and edge == edge for edge in edges), segment
            wanted = stage.length(1e6, 8.0, 8.0)
            assert max(SHORTEST, 1e6 * LEAST_PART) <= wanted <= 3e6
            stage.absorb(shown(LAWS["exponential"][0], edges), Agreement())


def test_locate__one_number_that_holds_all_items_is_found() -> None:
    stage = located(lambda edge: float(edge > 42.0), 0.5, 12)
    assert (stage.low, stage.high) == (42.0, after(42.0))
    assert stage.atom


def test_locate__gives_a_bracket_up_that_later_segments_contradict() -> None:
    first, second = NormalDist(0.0, 1.0), NormalDist(50.0, 1.0)
    stage = located(first.cdf, 0.5, 6)
    assert stage.high < 10
    agreement = Agreement()
    for _ in range(8):
        stage.absorb(shown(second.cdf, stage.edges()), agreement)
    assert stage.low <= 50.0 <= stage.high
    assert not agreement.stable


def test_locate__learns_nothing_from_a_segment_that_is_noise() -> None:
    stage = Locate(Target(0.5), 0.0, 0.0)
    stage.absorb(shown(LAWS["exponential"][0], stage.edges(), noise=0.2), Agreement())
    assert (stage.low, stage.high, stage.knots) == (-math.inf, math.inf, None)


def test_stands_out__is_more_than_four_standard_errors() -> None:
    cdf = shown(LAWS["exponential"][0], [0.0, 1.0], items=10_000, noise=0.001)
    assert not stands_out(0.004, cdf)
    assert stands_out(0.05, cdf)
    assert not stands_out(-1.0, cdf)


def test_interpolate__is_exact_where_tails_are_exponential_and_stays_between_the_edges() -> None:
    target = Target(0.999)
    edges, shares = (6.0, 8.0), (1 / (1 + math.exp(-6.0)), 1 / (1 + math.exp(-8.0)))  # of a logistic law
    found = interpolate(target, edges, shares, 1e-9)
    assert found == pytest.approx(math.log(999), rel=1e-6)
    assert 6.0 <= interpolate(target, edges, (1.2, -0.3), 1e-9) <= 8.0  # noise may say anything
