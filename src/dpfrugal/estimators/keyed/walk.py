"""The walk of a batch of rows with keys: which form of it runs, and in how many threads.

``advance_keys`` calls the compiled kernel; ``walk_keys_plainly`` is what it must equal, bit for bit. The coin of a row
belongs to its position in the whole stream, not to its key (docs/proofs.md, Theorem 10).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.walk.frugal import step
from dpfrugal.estimators.walk.kernel_choice import EXACT_AS_FLOAT, Path
from dpfrugal.kernels import coins, compiler
from dpfrugal.kernels.bit_layout import STEP_EXPONENT
from dpfrugal.kernels.compiler import loading, read_only
from dpfrugal.kernels.threads import WORTH_A_THREAD, at_once

# Estimates that take up more memory than this are prefetched.
NEAR_MEMORY: Final = 1 << 20
PAGE: Final = 1 << 12
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
                size = 1 if steps is None else 1 << int(steps[code, k] & STEP_EXPONENT)
                estimates[code, k] += size * (step(estimate, item, coin, up_from, down_from) - estimate)
        clock[0] += 1  # whatever the row did, its position's coin is used up


def is_small(rows: int) -> bool:
    """Whether so few rows have come that loading the compiler would take longer than walking without it."""
    return not compiler.worth_loading(rows, WORTH_COMPILING)


def is_one_call(rows: int, threads: int) -> bool:
    """Whether a walk, after so many rows, is one call of compiled code, which no interrupt can cut in two."""
    return threads == 1 and not is_small(rows) and not compiler.is_off()


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

    In one thread it is one call of compiled code: both or neither.
    """
    with loading(("walk_keys", items.dtype)):
        from dpfrugal.kernels.walk_keys import walk_keys

        threads = threads if codes.size >= WORTH_A_THREAD else 1
        # Keys go to threads in blocks: of a page of memory where there are many keys, else of a few cache lines.
        per_page = max(1, PAGE // (8 * estimates.shape[1]))
        block = per_page if estimates.shape[0] >= 16 * per_page * threads else 16
        flat = estimates.reshape(-1)
        bytes_of_steps = None if steps is None else read_only(steps.reshape(-1))

        def walk(own_clock: NDArray[np.int64], thread: int) -> None:
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
                    estimates.nbytes > NEAR_MEMORY,
                    block.bit_length() - 1,
                    threads,
                    thread,
                )

        if threads == 1:
            walk(clock, 0)
            return
        clocks = np.repeat(clock, threads)
        at_once(lambda thread: walk(clocks[thread : thread + 1], thread), threads)
        clock[0] = clocks[0]
