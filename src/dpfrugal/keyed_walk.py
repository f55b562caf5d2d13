"""The walk of many keys: how a batch of rows moves the estimates of their keys.

``advance_keys`` picks the kernel and shares the work among threads; ``walk_keys_plainly`` is what it must equal, bit
for bit. The coin of a row belongs to its position in the whole stream, not to its key (docs/proofs.md, Theorem 10).
"""

import sys
import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal import coins
from dpfrugal.compiler import loading, read_only
from dpfrugal.frugal import step
from dpfrugal.steps import EXPONENT
from dpfrugal.walk import EXACT_AS_FLOAT, Path

# Estimates that take up more memory than this are walked part by part: the processor keeps track of so many pages.
NEAR_MEMORY: Final = 1 << 22
MOST_PARTS: Final = 4
PAGE: Final = 1 << 12
# Fewer rows than this are not worth a second thread.
WORTH_A_THREAD: Final = 1 << 15
# Loading the compiler takes longer than walking so many rows in plain Python.
WORTH_COMPILING: Final = 1 << 13


def walk_keys_plainly(
    estimates: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    clock: NDArray[np.int64],
    codes: NDArray[np.int32],
    values: NDArray[Any],
    path: Path,
) -> None:
    """``advance_keys`` in plain Python: the specification, and the faster way for a handful of rows."""
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        if code >= 0 and value == value:
            item, coin = path.grid.index(value), coins.coin(path.key, int(clock[0]))
            for k, (up_from, down_from) in enumerate(path.thresholds):
                estimate = int(estimates[code, k])
                size = 1 if steps is None else 1 << int(steps[code, k] & EXPONENT)
                estimates[code, k] += size * (step(estimate, item, coin, up_from, down_from) - estimate)
        clock[0] += 1  # whatever the row did, its position's coin is used up


def is_small(rows: int) -> bool:
    """Whether so few rows have come that loading the compiler would take longer than walking without it."""
    return rows < WORTH_COMPILING and "numba" not in sys.modules


def comparable(values: NDArray[Any], path: Path, reach: int) -> tuple[NDArray[Any], np.float64 | None]:
    """Items as a kernel compares them, and their scale: as they are, or as grid points. NaN is the caller's to drop.

    ``reach`` bounds every estimate, now and after the batch; where a float may not hold it, items become grid points.
    """
    if values.dtype.kind == "f" and reach < EXACT_AS_FLOAT:
        return values, np.float64(path.grid.scale)
    if values.dtype.kind != "f" and path.grid.scale == 1:
        return values, None
    return path.grid.indices(values), None


def advance_keys(
    estimates: NDArray[np.int64],
    steps: NDArray[np.uint8] | None,
    clock: NDArray[np.int64],
    codes: NDArray[np.int32],
    items: NDArray[Any],
    scale: np.float64 | None,
    path: Path,
    threads: int = 1,
) -> None:
    """Move the estimates past the rows in place, and the clock with them.

    In one thread it is one call of compiled code, which no interrupt can cut in two.
    """
    with loading(("walk_keys", items.dtype)):
        from dpfrugal.keyed_kernel import walk_keys

        if codes.size < WORTH_A_THREAD:
            threads = 1
        each = _parts(estimates.nbytes // threads) if codes.size >= WORTH_A_THREAD else 1
        parties = each * threads
        # An estate is a page where there are many; in a small state it is a few cache lines.
        per_page = max(1, PAGE // (8 * estimates.shape[1]))
        estate = per_page if estimates.shape[0] >= 16 * per_page * parties else 16
        flat = estimates.reshape(-1)
        bytes_of_steps = None if steps is None else read_only(steps.reshape(-1))

        def walk(own_clock: NDArray[np.int64], first_party: int) -> None:
            # Without the compiler (NUMBA_DISABLE_JIT) the coins' arithmetic is numpy's, which warns when it wraps.
            with np.errstate(over="ignore"):
                walk_keys(
                    read_only(codes),
                    read_only(items),
                    scale,
                    flat,
                    bytes_of_steps,
                    path.up_from,
                    path.down_from,
                    np.uint64(path.key),
                    own_clock,
                    estate.bit_length() - 1,
                    parties,
                    first_party,
                    first_party + each - 1,
                )

        if threads == 1:
            walk(clock, 0)
            return
        clocks = [clock.copy() for _ in range(threads)]
        others = [threading.Thread(target=walk, args=(clocks[k], each * k)) for k in range(1, threads)]
        for other in others:
            other.start()
        walk(clocks[0], 0)
        for other in others:
            other.join()
        if any(own[0] != clocks[0][0] for own in clocks):
            raise RuntimeError("A thread that walked a batch has failed.")
        clock[0] = clocks[0][0]


def _parts(nbytes: int) -> int:
    """In how many turns to walk, a power of two."""
    parts = 1
    while parts < MOST_PARTS and nbytes > parts * NEAR_MEMORY:
        parts *= 2
    return parts
