"""The walk of many keys: equal to frugal.step, key by key, bit for bit; however many threads walk it."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.keyed import walk
from dpfrugal.estimators.keyed.walk import advance_keys, comparable, walk_keys_plainly
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.estimators.walk.kernel_choice import Path
from dpfrugal.kernels import coins


def naive(
    codes: list[int], values: list[Any], path: Path, starts: list[list[int]], exponents: list[list[int]], position: int
) -> list[list[int]]:
    """Every key by itself: its rows picked out, each with the coin of its place in the whole stream."""
    ends = []
    for key, (row, sizes) in enumerate(zip(starts, exponents, strict=True)):
        mine = [(i, value) for i, (code, value) in enumerate(zip(codes, values, strict=True)) if code == key]
        end = []
        for (up_from, down_from), start, exponent in zip(path.thresholds, row, sizes, strict=True):
            estimate = start
            for i, value in mine:
                if value == value:
                    coin = coins.coin(path.key, position + i)
                    moved = step(estimate, path.grid.index(value), coin, up_from, down_from) - estimate
                    estimate += moved * 2**exponent
            end.append(estimate)
        ends.append(end)
    return ends


def walked(
    codes: NDArray[np.int32],
    values: NDArray[Any],
    path: Path,
    starts: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    position: int,
    threads: int = 1,
) -> tuple[list[list[int]], int]:
    estimates, clock = starts.copy(), np.array([position], dtype=np.int64)
    items, scale = comparable(values, path, int(np.abs(starts).max()) + 2**24 * codes.size)
    present = np.where(values == values, codes, -1).astype(np.int32)
    advance_keys(estimates, steps, clock, present, items, scale, path, threads)
    return estimates.tolist(), int(clock[0])


DTYPES: list[Any] = [np.float64, np.float32, np.int64, np.int32]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(0, 300),
    keys=st.integers(1, 40),
    quantiles=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=3, unique=True),
    decimals=st.integers(0, 2),
    dtype=st.sampled_from(DTYPES),
    position=st.one_of(st.integers(0, 200), st.integers(0, 2**50)),
    adaptive=st.booleans(),
    far=st.sampled_from([0, 2**53, -(2**61)]),
)
@example(seed=1, size=300, keys=1, quantiles=[0.5], decimals=0, dtype=np.int64, position=63, adaptive=True, far=2**61)
def test_walk_keys__walks_every_key_as_if_alone(
    seed: int,
    size: int,
    keys: int,
    quantiles: list[float],
    decimals: int,
    dtype: Any,
    position: int,
    adaptive: bool,
    far: int,
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, keys, size).astype(np.int32)
    values = rng.normal(0, 20, size)
    if np.issubdtype(dtype, np.floating) and size:
        values[rng.integers(0, size, 3)] = [np.nan, np.inf, -np.inf]
    path = Path(tuple(quantiles), Grid(decimals), coins.key_from_seed(seed))
    starts = far + rng.integers(-30, 30, (keys, len(quantiles)))
    exponents = rng.integers(0, 6, starts.shape) if adaptive else np.zeros(starts.shape, dtype=np.int64)
    # The upper bits of a step's byte say which way it came; they must not change it.
    steps = (exponents + 32 * rng.integers(0, 3, starts.shape)).astype(np.uint8) if adaptive else None
    typed = values.astype(dtype)
    expected = naive(codes.tolist(), typed.tolist(), path, starts.tolist(), exponents.tolist(), position)
    assert walked(codes, typed, path, starts, steps, position) == (expected, position + size)
    plain, clock = starts.copy(), np.array([position], dtype=np.int64)
    walk_keys_plainly(plain, steps, clock, codes, typed, path)
    assert (plain.tolist(), int(clock[0])) == (expected, position + size)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("quantiles", [(0.5,), (0.1, 0.9)])
def test_walk_keys__leaves_no_trace_of_threads(
    threads: int, quantiles: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads and blocks of keys as for millions of rows and keys, with the limits made small."""
    rng = np.random.default_rng(7)
    keys, size = 700, 2_500
    codes, values = rng.integers(-1, keys, size).astype(np.int32), rng.normal(0, 5, size)
    path, starts = Path(quantiles, Grid(0), 5), np.zeros((keys, len(quantiles)), dtype=np.int64)
    expected = walked(codes, values, path, starts, None, 17)
    monkeypatch.setattr(walk, "WORTH_A_THREAD", 1)
    for near, page in [(1 << 22, 1 << 12), (512, 64), (1, 1)]:
        monkeypatch.setattr(walk, "NEAR_MEMORY", near)
        monkeypatch.setattr(walk, "PAGE", page)
        assert walked(codes, values, path, starts, None, 17, threads) == expected


def test_walk_keys__starts_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    thread = threading.Thread

    def counting(**options: Any) -> threading.Thread:
        started.append(options)
        return thread(**options)

    monkeypatch.setattr(walk, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threading, "Thread", counting)
    path, starts = Path((0.5,), Grid(0), 5), np.zeros((100, 1), dtype=np.int64)
    walked(np.zeros(10, dtype=np.int32), np.ones(10), path, starts, None, 0, threads=4)
    assert len(started) == 3


def test_walk_keys__notices_a_thread_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpfrugal.kernels import walk_keys

    whole_walk = walk_keys.walk_keys

    def failing(*arguments: Any) -> None:
        if arguments[-1] > 0:
            raise MemoryError
        whole_walk(*arguments)

    monkeypatch.setattr(walk, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(walk_keys, "walk_keys", failing)
    path, starts = Path((0.5,), Grid(0), 5), np.zeros((100, 1), dtype=np.int64)
    with pytest.raises(MemoryError):
        walked(np.zeros(10, dtype=np.int32), np.ones(10), path, starts, None, 0, threads=2)


def test_walk_keys__compares_integers_beyond_2_to_the_53_exactly() -> None:
    """As floats, the item and the estimate would be the same number."""
    path, starts = Path((0.5,), Grid(0), 1), np.array([[2**60]], dtype=np.int64)
    for item, moves in [(2**60 + 1, True), (2**60, False)]:
        end, _ = walked(np.zeros(100, dtype=np.int32), np.full(100, item), path, starts, None, 0)
        assert (end[0][0] > 2**60) is moves
    floats, _ = walked(np.zeros(100, dtype=np.int32), np.full(100, 2.0**60), path, starts + 1, None, 0)
    assert floats == [[2**60]]
