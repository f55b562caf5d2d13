"""The paper's streams."""

import math

import numpy as np
import pytest

from benchmarks.accuracy import PAPER
from dpfrugal.paper.datasets import CHUNK, DATASETS

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
