"""The kernels equal ``frugal.step`` bit for bit. ``make test`` runs this file with the compiler on and off."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.walk import kernel_choice
from dpfrugal.estimators.walk.frugal import walk_plainly
from dpfrugal.inputs.numbers import Chunk
from dpfrugal.kernels import coins, compiled_coins

# With the compiler off, numpy warns of the wrapping multiplication that SplitMix64 is made of.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

compiled_only = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow without the compiler")

DTYPES = [np.int64, np.int32, np.float64, np.float32]
KEYS = st.integers(0, 2**64 - 1)
WAYS = (kernel_choice.advance, kernel_choice.advance_by_numpy)


@st.composite
def streams(draw: st.DrawFn) -> NDArray[np.generic]:
    """Narrow, wide, far and mixed items, so that blocks are walked, counted, and both by turns."""
    dtype = draw(st.sampled_from(DTYPES))
    size = draw(st.integers(0, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([0.5, 3.0, 40.0, 70.0, 500.0, 1e6]))
    items = rng.normal(draw(st.sampled_from([0.0, 5.0, -90.0, 2000.0])), spread, size).astype(dtype)
    if items.dtype.kind == "f" and size:
        special = draw(st.lists(st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e18, -0.0]), max_size=5))
        with np.errstate(over="ignore"):
            items[rng.integers(0, size, len(special))] = np.array(special).astype(dtype)
    elif items.dtype == np.int64 and size:
        special = draw(st.lists(st.sampled_from([2**63 - 1, -(2**63), 2**62, 10**18]), max_size=5))
        items[rng.integers(0, size, len(special))] = special
    return items


STARTS = st.sampled_from([0, 7, -100, 2**31, 2**52, 2**53 - 65, 2**53, -(2**53) - 1, 2**62, -(2**62)])
QUANTILES = st.lists(
    st.sampled_from([0.001, 0.1, 0.3, 0.5, 0.75, 0.99, 0.999999]), min_size=1, max_size=5, unique=True
).map(tuple)


@settings(max_examples=300)
@given(
    items=streams(),
    cuts=st.lists(st.integers(0, 300), max_size=4),
    position=st.integers(0, 200) | st.integers(2**40, 2**40 + 200),
    quantiles=QUANTILES,
    decimals=st.sampled_from([0, 0, 1, 3]),
    start=STARTS,
    key=KEYS,
)
def test_walk_stream__equals_the_step_for_every_cut_of_every_stream(
    items: NDArray[np.generic],
    cuts: list[int],
    position: int,
    quantiles: tuple[float, ...],
    decimals: int,
    start: int,
    key: int,
) -> None:
    path = kernel_choice.Path(quantiles, Grid(decimals), key)
    expected = np.full(len(quantiles), start, dtype=np.int64)
    expected_absent = walk_plainly(expected, position, Chunk(items), path)
    for advance in WAYS:
        found = np.full(len(quantiles), start, dtype=np.int64)
        absent, at = 0, 0
        for end in [*sorted(min(cut, items.size) for cut in cuts), items.size]:
            absent += advance(found, position + at, Chunk(items[at:end]), path)
            at = end
        assert found.tolist() == expected.tolist()
        assert absent == expected_absent


@compiled_only
@pytest.mark.parametrize(
    "quantiles", [(0.5,), (0.1, 0.9), (0.3, 0.5, 0.99), (0.1, 0.3, 0.5, 0.99), (0.1, 0.2, 0.3, 0.5, 0.9)]
)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_walk__goes_over_from_far_items_to_near_ones_and_back(
    quantiles: tuple[float, ...], dtype: type[np.generic]
) -> None:
    """Many blocks: items come near in the middle of a leg, some are no numbers, and estimates are far apart at last."""
    rng = np.random.default_rng(len(quantiles))
    spreads = np.repeat([1e6, 5.0, 300.0, 2000.0, 5.0, 1e6, 60.0, 1e5], 5_000)
    items = (rng.normal(0, 1, spreads.size) * spreads).astype(dtype)
    if dtype is np.float64:
        items[rng.integers(0, items.size, 40)] = np.nan
    path = kernel_choice.Path(quantiles, Grid(0), 7)
    expected, found = (np.zeros(len(quantiles), dtype=np.int64) for _ in range(2))
    assert walk_plainly(expected, 3, Chunk(items), path) == kernel_choice.advance(found, 3, Chunk(items), path)
    assert found.tolist() == expected.tolist()
    expected += np.arange(len(quantiles)) * 30_000
    found[:] = expected
    walk_plainly(expected, 3, Chunk(items), path)
    kernel_choice.advance(found, 3, Chunk(items), path)
    assert found.tolist() == expected.tolist()


@settings(max_examples=100)
@given(items=streams(), seed=st.integers(0, 2**32 - 1), quantiles=QUANTILES, decimals=st.sampled_from([0, 2]), key=KEYS)
def test_walk_stream__keeps_the_coins_of_missing_items(
    items: NDArray[np.generic], seed: int, quantiles: tuple[float, ...], decimals: int, key: int
) -> None:
    path = kernel_choice.Path(quantiles, Grid(decimals), key)
    missing = np.random.default_rng(seed).random(items.size) < 0.3
    expected = np.zeros(len(quantiles), dtype=np.int64)
    expected_absent = walk_plainly(expected, 5, Chunk(items, missing), path)
    for advance in WAYS:
        found = np.zeros(len(quantiles), dtype=np.int64)
        assert advance(found, 5, Chunk(items, missing), path) == expected_absent
        assert found.tolist() == expected.tolist()


@settings(max_examples=100)
@given(
    key=KEYS, lane=st.integers(0, 127), nudge=st.integers(-(2**16), 2**16), spread=st.sampled_from([30.0, 500.0, 1e6])
)
def test_walk_stream__decides_exactly_next_to_a_threshold(key: int, lane: int, nudge: int, spread: float) -> None:
    threshold = min(max(coins.coin(key, lane) + nudge, 1), coins.COINS - 2)
    quantiles = (threshold / coins.COINS, 1 - threshold / coins.COINS, 0.5)
    items = np.random.default_rng(key).normal(0, spread, 200).astype(np.int64)
    path = kernel_choice.Path(quantiles, Grid(0), key)
    expected = np.zeros(3, dtype=np.int64)
    walk_plainly(expected, 0, Chunk(items), path)
    for advance in WAYS:
        found = np.zeros(3, dtype=np.int64)
        advance(found, 0, Chunk(items), path)
        assert found.tolist() == expected.tolist()


@given(key=KEYS, block=st.integers(0, 2**50))
@example(key=2**64 - 1, block=0)
def test_walk_stream__has_the_coins_of_the_specification(key: int, block: int) -> None:
    first = block * coins.BLOCK
    row, upper = np.empty(coins.BLOCK, dtype=np.uint32), np.empty(coins.BLOCK, dtype=np.uint16)
    compiled_coins.block_coins(np.uint64(key), first, row, upper)
    assert upper.tolist() == (row >> 16).tolist()
    single = [int(compiled_coins.coin(np.uint64(key), first + lane)) for lane in range(coins.BLOCK)]
    assert row.tolist() == single == [coins.coin(key, first + lane) for lane in range(coins.BLOCK)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_walk_stream__reads_read_only_arrays(dtype: type) -> None:
    items: NDArray[np.generic] = np.arange(200).astype(dtype)
    items.flags.writeable = False
    found = np.zeros(1, dtype=np.int64)
    kernel_choice.advance(found, 0, Chunk(items), kernel_choice.Path((0.5,), Grid(0), 1))
    assert found[0] != 0


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=120)


def test_compiler__compiles_where_no_cache_can_be_written() -> None:
    """A read-only install: numba then finds no place for its cache."""
    run(
        "import numba.core.caching as caching\n"
        "for kind in vars(caching).values():\n"
        "    if hasattr(kind, '_locator_classes'):\n"
        "        kind._locator_classes = []\n"
        "import numpy as np, dpfrugal as dpf\n"
        "f = dpf.Frugal1U(0.5, coin_seed=1)\n"
        "f.update_many(np.full(20_000, 50))\n"
        "assert f.estimate == 50\n"
    )


@compiled_only
def test_walk_stream__lets_other_threads_run() -> None:
    """The lock of the interpreter is released: a second thread counts on during one long batch."""
    run(
        "import threading, numpy as np, dpfrugal as dpf\n"
        "f = dpf.Frugal1U([0.1, 0.5, 0.9]); f.update_many(np.zeros(20_000))\n"
        "batch = np.random.default_rng(1).normal(0, 3, 30_000_000)\n"
        "done, ticks = threading.Event(), []\n"
        "walker = threading.Thread(target=lambda: (f.update_many(batch), done.set()))\n"
        "walker.start()\n"
        "while not done.is_set():\n"
        "    ticks.append(f.items)\n"
        "walker.join()\n"
        "assert ticks.count(20_000) > 1_000, len(ticks)\n"
    )


@compiled_only
def test_walk_stream__takes_a_batch_of_more_than_2_to_the_31_items() -> None:
    """One number, seen two thousand million times, which takes no memory."""
    f = dpf.Frugal1U(0.5, coin_seed=1)
    f.update_many(np.broadcast_to(np.int8(5), 2**31 + 3))
    assert (f.estimate, f.items) == (5, 2**31 + 3)


def test_advance__a_long_array_is_walked_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are shortened, so that a short batch crosses as many borders as one of 2^31 items would."""
    monkeypatch.setattr(kernel_choice, "LONGEST_BATCH", 1_000)
    items = np.random.default_rng(2).normal(0, 40, 10_001)
    path = kernel_choice.Path((0.2, 0.7), Grid(1), 9)
    expected, found = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    walk_plainly(expected, 2**40 + 7, Chunk(items), path)
    kernel_choice.advance(found, 2**40 + 7, Chunk(items), path)
    assert found.tolist() == expected.tolist()
