"""Which form of the walk runs: every one equals the step, item by item."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.walk import kernel_choice
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.estimators.walk.kernel_choice import Path, advance, advance_by_numpy
from dpfrugal.inputs.numbers import Chunk
from dpfrugal.kernels import coins

QUANTILES = (0.1, 0.5, 0.99)


def plainly(estimates: NDArray[np.int64], position: int, chunk: Chunk, path: Path) -> int:
    """One step after the other."""
    absent = 0
    for i, value in enumerate(chunk.values.tolist()):
        if value != value or (chunk.missing is not None and chunk.missing[i]):
            absent += 1
            continue
        for k, thresholds in enumerate(path.thresholds):
            coin = coins.coin(path.key, position + i)
            estimates[k] = step(int(estimates[k]), path.grid.index(value), coin, *thresholds)
    return absent


chunks = st.one_of(
    st.lists(st.floats(-50, 50) | st.just(float("nan")), max_size=90).map(lambda x: np.array(x, dtype=np.float64)),
    st.lists(st.integers(-50, 50), max_size=90).map(lambda x: np.array(x, dtype=np.int32)),
)


@settings(max_examples=60)
@given(chunks, st.booleans(), st.sampled_from([0, 2]), st.integers(0, 200), st.integers(0, 2**64 - 1))
def test_advance__equals_the_step_on_floats_integers_and_what_is_missing(
    values: NDArray[Any], nulls: bool, decimals: int, position: int, key: int
) -> None:
    chunk = Chunk(values, np.arange(values.size) % 3 == 0 if nulls else None)
    path = Path(QUANTILES, Grid(decimals), key)
    expected = np.array([-5, 0, 5], dtype=np.int64)
    absent = plainly(expected, position, chunk, path)
    for form in (advance_by_numpy, advance):
        estimates = np.array([-5, 0, 5], dtype=np.int64)
        assert form(estimates, position, chunk, path) == absent
        assert estimates.tolist() == expected.tolist()


@pytest.mark.parametrize("far", [0, 2**35, 2**55])
def test_advance__of_estimates_that_lie_far_apart_equals_the_step(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2^30 each is walked by itself, beyond 2^53 on grid points; long batches are cut."""
    monkeypatch.setattr(kernel_choice, "LONGEST_BATCH", 64)
    values = np.where(np.arange(200) % 2 == 0, 3.0, float(far))
    path, chunk = Path(QUANTILES, Grid(0), 99), Chunk(values, None)
    expected, estimates = (np.array([0, far // 2, far], dtype=np.int64) for _ in range(2))
    plainly(expected, 7, chunk, path)
    advance(estimates, 7, chunk, path)
    assert estimates.tolist() == expected.tolist()
    assert estimates.tolist() != [0, far // 2, far] or far == 0
