"""The walk of a chunk of items: which form of it runs. All forms equal ``frugal.step`` bit for bit.

``advance`` picks the compiled kernel: on floats as they are, on integers as they are, or on grid points where items
must be put on the grid first or some are missing. ``advance_by_numpy`` serves until loading numba pays.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.grid import Grid
from dpfrugal.inputs.numbers import CHUNK, Chunk
from dpfrugal.kernels import coins
from dpfrugal.kernels.compiler import loading, read_only

# Up to here a float holds every integer, so an estimate may be compared as one.
EXACT_AS_FLOAT: Final = 1 << 53
# What a kernel may be given at once: estimates are 32-bit distances from an origin, which so many items cannot outrun.
WIDEST_SPREAD: Final = 1 << 30
LONGEST_BATCH: Final = 1 << 28


@dataclass(frozen=True)
class Path:
    """What steers a walk besides the items: all of it public or random, none of it data."""

    quantiles: tuple[float, ...]
    grid: Grid
    key: int

    @cached_property
    def thresholds(self) -> list[tuple[int, int]]:
        """Per quantile, the smallest coins that allow a step up and a step down."""
        return [coins.thresholds(q) for q in self.quantiles]

    @cached_property
    def up_from(self) -> NDArray[np.uint32]:
        """The first of the thresholds, for the kernels."""
        return np.array([up for up, _ in self.thresholds], dtype=np.uint32)

    @cached_property
    def down_from(self) -> NDArray[np.uint32]:
        """The second of the thresholds, for the kernels."""
        return np.array([down for _, down in self.thresholds], dtype=np.uint32)


def advance_by_numpy(estimates: NDArray[np.int64], position: int, chunk: Chunk, path: Path) -> int:
    """``advance`` without the compiler: 0.1 µs an item, a fifteenth of ``walk_plainly``; numba takes 0.5 s to load."""
    absent_items = 0
    for first in range(0, chunk.values.size, CHUNK):
        part = chunk.values[first : first + CHUNK]
        here = coins.coins(path.key, position + first, part.size)
        points = path.grid.indices(part)
        absent = part != part
        if chunk.missing is not None:
            absent |= chunk.missing[first : first + CHUNK]
        if absent.any():
            absent_items += int(absent.sum())
            points, here = points[~absent], here[~absent]
        for k, (up_from, down_from) in enumerate(path.thresholds):
            able = here >= min(up_from, down_from)
            rises, falls = (here[able] >= up_from).tolist(), (here[able] >= down_from).tolist()
            estimate = int(estimates[k])
            for point, rise, fall in zip(points[able].tolist(), rises, falls, strict=True):
                if point > estimate:
                    estimate += rise
                elif point < estimate:
                    estimate -= fall
            estimates[k] = estimate
    return absent_items


def advance(estimates: NDArray[np.int64], position: int, chunk: Chunk, path: Path) -> int:
    """Move ``estimates`` past ``chunk`` in place, and return how many NaNs and nulls it held."""
    with loading(("walk", chunk.values.dtype)):
        return _advance(estimates, position, chunk, path)


def _advance(estimates: NDArray[np.int64], position: int, chunk: Chunk, path: Path) -> int:
    from dpfrugal.kernels import walk_stream

    values, missing = chunk.values, chunk.missing
    floats = values.dtype.kind == "f"
    exact = not floats or int(np.abs(estimates).max()) + values.size < EXACT_AS_FLOAT
    if missing is None and exact and (floats or path.grid.scale == 1):
        scale = np.float64(path.grid.scale) if floats else None
        return walk_array(estimates, position, values, scale, path)
    absent_items = 0
    for first in range(0, values.size, CHUNK):
        part = values[first : first + CHUNK]
        absent = np.isnan(part) if floats else np.zeros(part.size, dtype=np.bool_)
        if missing is not None:
            absent |= missing[first : first + CHUNK]
        points = path.grid.indices(part)
        if absent.any():
            absent_items += int(absent.sum())
            steered = (estimates, path.up_from, path.down_from, np.uint64(path.key), position + first)
            with np.errstate(over="ignore"):
                walk_stream.walk_singly(read_only(points), absent, None, *steered)
        else:
            walk_array(estimates, position + first, points, None, path)
    return absent_items


def walk_array(
    estimates: NDArray[np.int64], position: int, items: NDArray[Any], scale: np.float64 | None, path: Path
) -> int:
    """Move ``estimates`` past ``items`` in one pass, or one pass each where they are too far apart; count the NaNs."""
    from dpfrugal.kernels import walk_stream

    nans = 0
    for first in range(0, items.size, LONGEST_BATCH):
        batch = read_only(items[first : first + LONGEST_BATCH])
        is_narrow = int(estimates.max()) - int(estimates.min()) <= WIDEST_SPREAD
        groups = [slice(None)] if is_narrow else [slice(k, k + 1) for k in range(estimates.size)]
        # Without the compiler (NUMBA_DISABLE_JIT) the coins' arithmetic is numpy's, which warns when it wraps.
        with np.errstate(over="ignore"):
            counts = [
                walk_stream.walk(
                    batch,
                    scale,
                    estimates[k],
                    path.up_from[k],
                    path.down_from[k],
                    np.uint64(path.key),
                    position + first,
                )
                for k in groups
            ]
        nans += int(counts[0])
    return nans
