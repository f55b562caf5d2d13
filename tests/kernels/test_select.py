"""The scan for rows within intervals: equal to the one by numpy, whatever the sizes, types and room."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.table.rows.native_rows import TYPES
from dpfrugal.estimators.table.rows.scanning import scan_by_numpy
from dpfrugal.kernels.coins import BLOCK
from dpfrugal.kernels.select import scan


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(0, 5 * BLOCK),
    intervals=st.integers(1, 4),
    room=st.integers(4 * BLOCK, 9 * BLOCK),
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from(TYPES),
)
def test_scan__equals_numpy(size: int, intervals: int, room: int, seed: int, dtype: np.dtype[Any]) -> None:
    rng = np.random.default_rng(seed)
    rows: NDArray[Any] = rng.normal(100, 3, size).astype(dtype)
    if dtype.kind == "f" and size > 2:
        rows[rng.integers(0, size, 3)] = [np.inf, -np.inf, -0.0]
    ends = np.sort(rng.normal(100, 3, 2 * intervals)).astype(dtype)
    lows, highs, collected = ends[::2], ends[1::2], rng.random(intervals) < 0.7
    below, upto, found = np.zeros(intervals, np.int64), np.zeros(intervals, np.int64), np.empty(room, dtype)
    parts, first, calls = [rows[:0]], 0, 0
    while True:
        first, taken = scan(rows, lows.copy(), highs.copy(), collected, below, upto, found, 0, first)
        parts.append(found[:taken].copy())
        calls += 1
        assert calls <= size + 1, "every call makes progress"
        if first == size:
            break
    expected = np.zeros(intervals, np.int64), np.zeros(intervals, np.int64)
    collected_by_numpy = scan_by_numpy(rows, lows, highs, collected, *expected)
    assert below.tolist() == expected[0].tolist()
    assert upto.tolist() == expected[1].tolist()
    assert np.sort(np.concatenate(parts)).tolist() == np.sort(collected_by_numpy).tolist()


@pytest.mark.parametrize("dtype", TYPES)
def test_scan__counts_ends_as_inside(dtype: np.dtype[Any]) -> None:
    rows = np.arange(200).astype(dtype)
    below, upto, found = np.zeros(2, np.int64), np.zeros(2, np.int64), np.empty(1000, dtype)
    lows, highs = np.array([3, 60], dtype=dtype), np.array([5, 70], dtype=dtype)
    assert scan(rows, lows, highs, np.array([True, False]), below, upto, found, 0, 0) == (200, 3)
    assert (below.tolist(), upto.tolist(), found[:3].tolist()) == ([3, 60], [6, 71], [3, 4, 5])
