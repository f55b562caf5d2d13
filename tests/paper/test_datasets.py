"""The paper's streams and their exact quantiles."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.accuracy import PAPER
from dpfrugal.paper.datasets import CHUNK, DATASETS, Floats
from dpfrugal.paper.exact_quantiles import Bracket, ExactQuantiles, ranks, selected
from dpfrugal.paper.settings import QUANTILES

CDFS = dict(zip(DATASETS, (dataset.cdf for dataset in PAPER.values()), strict=True))


def farthest_from_cdf(name: str, cdf_of: str) -> float:
    """The Kolmogorov–Smirnov distance times √n; above 2.5 once in 130,000 seeds, if the distribution is right."""
    items = np.sort(next(DATASETS[name].stream(seed=1, cuts=[20_000])))
    cdf = np.array([CDFS[cdf_of](x) for x in items])
    steps = np.arange(items.size + 1) / items.size
    return float(max((cdf - steps[:-1]).max(), (steps[1:] - cdf).max())) * math.sqrt(items.size)


@pytest.mark.parametrize("name", DATASETS)
def test_datasets__are_those_of_the_paper(name: str) -> None:
    assert farthest_from_cdf(name, name) < 2.5


@pytest.mark.parametrize("name", DATASETS)
def test_datasets__of_another_distribution_would_be_noticed(name: str) -> None:
    others = [other for other in DATASETS if other != name]
    assert min(farthest_from_cdf(name, other) for other in others) > 2.5


def test_datasets__are_the_same_however_they_are_cut() -> None:
    dataset, length = DATASETS["D5"], 2 * CHUNK + 1000
    whole = np.concatenate(list(dataset.stream(7, [length])))
    assert whole.size == length
    cuts = [1, 999, CHUNK - 1, CHUNK, CHUNK + 5, 2 * CHUNK, length]
    parts = list(dataset.stream(7, cuts))
    assert np.cumsum([part.size for part in parts]).tolist() == cuts
    assert np.array_equal(np.concatenate(parts), whole)
    shorter = np.concatenate(list(dataset.stream(7, [CHUNK + 10])))
    assert np.array_equal(shorter, whole[: CHUNK + 10])
    assert not np.array_equal(next(dataset.stream(8, [1000])), whole[:1000])


def test_datasets__have_a_seed_of_their_own_for_every_repetition() -> None:
    seeds = [dataset.seed(repetition) for dataset in DATASETS.values() for repetition in range(1, 101)]
    assert len(set(seeds)) == len(seeds)


@given(st.integers(1, 10**9), st.sampled_from(QUANTILES))
def test_exact_ranks__are_the_definition(items: int, quantile: float) -> None:
    place = 1 + Fraction(str(quantile)) * (items - 1)
    lower, upper = ranks(quantile, items)
    assert lower <= place <= upper
    assert upper - lower == (0 if place.denominator == 1 else 1)
    assert 1 <= lower <= upper <= items


def by_sorting(items: Floats, quantile: float) -> tuple[float, float]:
    ascending = np.sort(items)
    lower, upper = ranks(quantile, items.size)
    return float(ascending[lower - 1]), float(ascending[upper - 1])


@pytest.mark.parametrize("name", DATASETS)
def test_exact_quantiles__are_found_for_every_prefix_in_one_pass(name: str) -> None:
    cuts = [1, 2, 1000, CHUNK // 2, CHUNK + 17]
    exact, seen = ExactQuantiles(QUANTILES), np.empty(0)
    for chunk in DATASETS[name].stream(3, cuts):
        exact.update(chunk)
        seen = np.concatenate([seen, chunk])
        if seen.size in cuts:
            assert exact.at_now() == {q: by_sorting(seen, q) for q in QUANTILES}


def test_exact_quantiles__keep_little_of_a_long_stream() -> None:
    bracket = Bracket(0.99)
    for chunk in DATASETS["D5"].stream(3, [4 * CHUNK]):
        bracket.update(chunk)
    assert bracket.found(4 * CHUNK) is not None
    assert sum(part.size for part in bracket._kept) < 0.006 * 4 * CHUNK


def test_exact_quantiles__notice_a_first_chunk_that_misleads() -> None:
    items = np.sort(np.concatenate(list(DATASETS["D5"].stream(3, [CHUNK]))))
    exact = ExactQuantiles([0.5])
    for part in np.array_split(items, 10):
        exact.update(part)
    assert exact.at_now() == {0.5: None}
    found = [selected(lambda: np.array_split(items, 10), rank) for rank in ranks(0.5, items.size)]
    assert tuple(found) == by_sorting(items, 0.5)


@settings(max_examples=30)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40), st.data())
def test_exact_selection__is_sorting(numbers: list[float], data: st.DataObject) -> None:
    items, rank = np.array(numbers), data.draw(st.integers(1, len(numbers)))

    def stream() -> Iterable[Floats]:
        return [items[:7], items[7:]]

    assert selected(stream, rank) == np.sort(items)[rank - 1]
