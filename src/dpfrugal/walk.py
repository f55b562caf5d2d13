"""The walk: how a chunk of items moves the estimates, compiled.

``advance`` picks the kernel: on floats as they are, on integers as they are, or on grid points where the items
must first be put on the grid or some of them are missing. All ways give the bits of ``frugal.step``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal import coins
from dpfrugal.grid import Grid
from dpfrugal.items import CHUNK, Chunk

# Up to here a float holds every integer, so an estimate may be compared as one.
EXACT_AS_FLOAT: Final = 1 << 53


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


def advance(estimates: NDArray[np.int64], position: int, chunk: Chunk, path: Path) -> int:
    """Move ``estimates`` past ``chunk`` in place, and return how many NaNs and nulls it held."""
    from dpfrugal import kernels

    values, missing = chunk.values, chunk.missing
    steered = (estimates, path.up_from, path.down_from, np.uint64(path.key))
    floats = values.dtype.kind == "f"
    exact = not floats or int(np.abs(estimates).max()) + values.size < EXACT_AS_FLOAT
    if missing is None and exact and (floats or path.grid.scale == 1):
        scale = float(path.grid.scale) if floats else None
        return int(kernels.walk(read_only(values), scale, *steered, position))
    absent_items = 0
    for first in range(0, values.size, CHUNK):
        part = values[first : first + CHUNK]
        absent = np.isnan(part) if floats else np.zeros(part.size, dtype=np.bool_)
        if missing is not None:
            absent |= missing[first : first + CHUNK]
        points = read_only(path.grid.indices(part))
        if absent.any():
            absent_items += int(absent.sum())
            kernels.walk_singly(points, absent, None, *steered, position + first)
        else:
            kernels.walk(points, None, *steered, position + first)
    return absent_items


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that the kernels see as one type, whether or not the caller's array may be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
