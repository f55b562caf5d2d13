"""A sample of a stream: the same for the same priorities however rows are cut, and uniform."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.table.rows import sample
from dpfrugal.estimators.table.rows.sample import Sample, held_sample


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


@given(st.integers(0, 300), st.integers(1, 40), st.lists(st.integers(0, 300)), st.integers(0, 2**32))
def test_sample__has_the_rows_of_the_smallest_priorities_whatever_the_cuts(
    size: int, most: int, cuts: list[int], seed: int
) -> None:
    rows = np.arange(size, dtype=np.float64)
    priorities = generator(seed).integers(0, 2**64, size, dtype=np.uint64)
    expected = rows[np.argsort(priorities, kind="stable")[:most]]
    found = Sample(most, generator(seed))
    for part in np.split(rows, sorted(min(cut, size) for cut in cuts)):
        found.add(part)
    assert np.sort(found.rows).tolist() == np.sort(expected).tolist()
    assert found._waiting <= 2 * most


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 30))
def test_sample__merged_ones_are_one_of_all(left: int, right: int, most: int) -> None:
    one, other = Sample(most, generator(1)), Sample(most, generator(2))
    one.add(np.arange(left))
    other.add(np.arange(left, left + right))
    one.merge(other)
    drawn = [generator(seed).integers(0, 2**64, size, dtype=np.uint64) for seed, size in ((1, left), (2, right))]
    expected = np.argsort(np.concatenate(drawn), kind="stable")[:most]
    assert np.sort(one.rows).tolist() == np.sort(expected).tolist()


def biased(batches: list[NDArray[Any]], most: int) -> NDArray[Any]:
    """A mistake: the later half of the rows is considered twice as often."""
    rows = np.concatenate(batches)
    return held_sample([rows, rows[rows.size // 2 :]], most)


def chi_square(sampler: Any) -> float:
    """Of how often each of 20 rows is among 5 sampled ones, in 4000 runs."""
    seen = np.zeros(20)
    for _ in range(4000):
        seen[sampler([np.arange(7), np.arange(7, 20)], 5)] += 1
    return float((((seen - 1000) ** 2) / 1000).sum())


def test_held_sample__is_uniform() -> None:
    """Chi-square with 19 degrees of freedom times 1 − 5/20: above 60 with a chance below 1e-7."""
    assert chi_square(held_sample) < 60
    assert chi_square(biased) > 60, "a sampler with a mistake must fail"


@pytest.mark.parametrize("most", [1, 10, 1000])
def test_held_sample__has_exactly_so_many_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "DRAWN", 16)
    found = held_sample((np.arange(start, start + 50) for start in range(0, 500, 50)), most)
    assert found.size == min(most, 500)
    assert np.unique(found).size == found.size
    assert held_sample([], most).size == 0
