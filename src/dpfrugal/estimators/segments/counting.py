"""Counting items between edges: the only thing ``PrivateQuantile`` does with data.

``count_below`` gives, for every edge, how many items lie below it. The compiled form reads the items once, in blocks
that stay in the processor's nearest cache, and compares and adds only, so that it vectorises: with up to three edges it
runs at the speed of reading memory. numpy compares until the work repays loading numba.

An integer is compared with an edge exactly, also beyond 2^53: ``x < e`` is ``x <= ceil(e) - 1``. So that one form
serves all types, a float is compared likewise, with the float before ``e``. NaN is below nothing; it is counted apart.
"""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.inputs.numbers import Chunk
from dpfrugal.kernels.compiler import loading, read_only, worth_loading

BLOCK: Final = 1 << 15
# numpy compares at about four thousand million a second; loading the compiler takes a third of a second. A file comes
# in small batches and is read once. Who has millions of items in memory will count more than once.
WORTH_COMPILING: Final = 1 << 30
MANY_AT_ONCE: Final = 1 << 21

_compared = 0


def count_below(items: NDArray[Any], edges: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """How many items lie below each of the sorted edges, and how many are NaN."""
    global _compared
    below, limits = np.zeros(edges.size, dtype=np.int64), limits_of(edges, items.dtype)
    if edges.size and (worth_loading(_compared, WORTH_COMPILING) or worth_loading(items.size, MANY_AT_ONCE)):
        with loading(("counting", items.dtype)):
            from dpfrugal.kernels.count_edges import compare

            nans = compare(read_only(items), limits, below)
    else:
        _compared += items.size * edges.size
        nans = compare_by_numpy(items, limits, below)
    if items.dtype.kind != "f" and edges.size and edges[0] <= (least := float(np.iinfo(items.dtype).min)):
        below[edges <= least] = 0  # no integer lies below these
    return below, int(nans)


def limits_of(edges: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The largest number of the type below each edge: an item is below the edge if it is at most that."""
    if dtype == np.float64:
        return np.nextafter(edges, -np.inf)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # an edge beyond all float32 is ±inf
            near = edges.astype(dtype)
            return np.where(near < edges, near, np.nextafter(near, -np.inf, dtype=dtype))
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.array([min(max(math.ceil(edge) - 1, least), most) for edge in edges.tolist()], dtype=dtype)


def compare_by_numpy(items: NDArray[Any], limits: NDArray[Any], below: NDArray[np.int64]) -> int:
    """``count_edges.compare`` without the compiler."""
    nans = 0
    for first in range(0, items.size, BLOCK):
        block = items[first : first + BLOCK]
        for k, limit in enumerate(limits):
            below[k] += np.count_nonzero(block <= limit)
        if items.dtype.kind == "f":
            nans += int(np.count_nonzero(block != block))
    return nans


def counts_of(chunk: Chunk, first: int, last: int, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many of some items lie between the edges: below the first, …, from the last on; and how many are missing."""
    values = chunk.values[first:last]
    nulls = 0
    if chunk.missing is not None:
        absent = chunk.missing[first:last]
        nulls, values = int(absent.sum()), values[~absent]
    below, nans = count_below(values, edges)
    counts = np.empty(edges.size + 2, dtype=np.int64)
    counts[:-2], counts[-2], counts[-1] = below, values.size - nans, nulls + nans
    counts[1:-1] -= below
    return counts
