"""The comparison of items with limits: equal to the one by numpy, whatever the sizes."""

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.segments.counting import compare_by_numpy
from dpfrugal.kernels.count_edges import BLOCK, compare


@settings(max_examples=40)
@given(
    size=st.integers(0, 3 * BLOCK),
    limits=st.integers(1, 8),
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([np.float64, np.float32, np.int64, np.int32]),
)
@example(size=4 * BLOCK, limits=9, seed=1, dtype=np.float64)
def test_compare__equals_numpy(size: int, limits: int, seed: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    items: NDArray[Any] = rng.normal(0, 3, size).astype(dtype)
    if items.dtype.kind == "f" and size:
        items[rng.integers(0, size, 3)] = [np.nan, np.inf, -np.inf]
    edges: NDArray[Any] = np.sort(rng.normal(0, 3, limits)).astype(dtype)
    found, expected = rng.integers(0, 9, limits), np.zeros(limits, dtype=np.int64)
    before = found.copy()
    assert compare(items, edges, found) == compare_by_numpy(items, edges, expected)
    assert (found - before).tolist() == expected.tolist()
