"""Counting items between edges: numpy and the compiled kernel agree with the obvious counts, for every type."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.estimators.segments import counting, locate
from dpfrugal.kernels import count_edges

rng = np.random.default_rng(17)


def test_count_below__compares_integers_beyond_2_to_the_53_exactly() -> None:
    edges = np.array([-(2.0**63), -1.5, 2.0**53, 2.0**60, 2.0**63])
    items: NDArray[np.int64] = np.array(
        [2**53 - 1, 2**53, 2**53 + 1, 2**60 - 1, 2**60 + 1, -(2**63), 2**63 - 1, -2, -1]
    )
    below, _ = counting.count_below(items, edges)
    assert below.tolist() == [sum(item < edge for item in items.tolist()) for edge in edges.tolist()]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_count_below__compares_the_ends_of_a_type_exactly(dtype: type) -> None:
    kind = np.finfo if dtype in (np.float64, np.float32) else np.iinfo
    least, most = kind(dtype).min, kind(dtype).max
    items: NDArray[Any] = np.array([least, most, 0, -1, 1, 16_777_216, 16_777_217 if kind is np.iinfo else 0.1], dtype)
    if kind is np.finfo:
        items = np.append(items, np.array([np.inf, -np.inf, 5e-324, 1e-45], dtype))
    places = [0.0, 0.1, -1.0, 2.0**24, 2.0**24 + 0.5, 2.0**24 + 1, locate.HUGE, -locate.HUGE]
    if dtype is not np.float64:
        places += [float(least), float(most)]
    edges = np.unique([place for near in places for place in (near, math.nextafter(near, -1), math.nextafter(near, 9))])
    expected = [sum(item < edge for item in items.tolist()) for edge in edges.tolist()]
    for compare in (counting.compare_by_numpy, count_edges.compare):
        below = np.zeros(edges.size, dtype=np.int64)
        compare(items, counting.limits_of(edges, items.dtype), below)
        if kind is np.iinfo:
            below[edges <= float(least)] = 0
        assert below.tolist() == expected
    assert counting.count_below(items, edges)[0].tolist() == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 60])
def test_count_below__equals_the_obvious_counts(dtype: type, count: int) -> None:
    items: NDArray[Any] = rng.normal(0, 50, 20_011).astype(dtype)
    edges = np.unique(np.append(rng.normal(0, 50, count - 1), items[3]).astype(np.float64))
    expected = [int((items.astype(np.float64) < edge).sum()) for edge in edges]
    below, nans = counting.count_below(items, edges)
    assert (below.tolist(), nans) == (expected, 0)
    limits = counting.limits_of(edges, items.dtype)
    for compare in (counting.compare_by_numpy, count_edges.compare):
        below = np.zeros(edges.size, dtype=np.int64)
        assert compare(items, limits, below) == 0
        assert below.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compare__counts_nan_apart_and_below_nothing(dtype: type) -> None:
    items: NDArray[Any] = np.array([1, np.nan, -np.inf, 5, np.nan, np.inf], dtype=dtype)
    limits = counting.limits_of(np.array([0.0, 2.0]), items.dtype)
    for compare in (counting.compare_by_numpy, count_edges.compare):
        below = np.zeros(2, dtype=np.int64)
        assert compare(items, limits, below) == 2
        assert below.tolist() == [1, 2]
