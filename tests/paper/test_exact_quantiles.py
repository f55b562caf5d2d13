"""Exact quantiles of long streams."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.paper.datasets import CHUNK, DATASETS, Floats
from dpfrugal.paper.exact_quantiles import Bracket, ExactQuantiles, ranks, selected
from dpfrugal.paper.settings import QUANTILES


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
