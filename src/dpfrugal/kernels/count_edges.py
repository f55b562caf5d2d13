"""How many items are at most each limit. Equal to ``estimators.segments.counting.compare_by_numpy``.

Items are compared a page at a time: a page stays in the nearest cache while all limits are tried, three at a time, and
its counts fit 32 bits, so that more of them fit a vector. Pages of the first and of the second half of the array take
turns: the processor prefetches within a page only, and loads the next page of one half while the other's is compared.
Measured on four million floats: the turns are a fifth faster with one limit and a tenth with three, comparing three
limits at a time is a fifth faster with nine.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.compiler import cached, inlined

BLOCK: Final = 512  # items of 8 bytes in a page


@inlined
def compare_with_one(block: Any, limits: Any, k: Any, below: Any, careful: Any) -> Any:
    """All items with one limit; returns the NaNs met, if ``careful`` is not None."""
    limit, count, nans = limits[k], np.int32(0), np.int32(0)
    for i in range(block.shape[0]):
        item = block[i]
        count = np.int32(count + np.int32(item <= limit))
        if careful is not None:
            nans = np.int32(nans + np.int32(item != item))
    below[k] += count
    return nans


@inlined
def compare_with_three(block: Any, limits: Any, k: Any, below: Any, careful: Any) -> Any:
    """All items with three limits, likewise."""
    one, two, three = limits[k], limits[k + 1], limits[k + 2]
    at_one, at_two, at_three, nans = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
    for i in range(block.shape[0]):
        item = block[i]
        at_one = np.int32(at_one + np.int32(item <= one))
        at_two = np.int32(at_two + np.int32(item <= two))
        at_three = np.int32(at_three + np.int32(item <= three))
        if careful is not None:
            nans = np.int32(nans + np.int32(item != item))
    below[k] += at_one
    below[k + 1] += at_two
    below[k + 2] += at_three
    return nans


@inlined
def compare_block(block: Any, limits: Any, below: Any) -> Any:
    """All items with all limits, of which there is one at least; returns the NaNs met."""
    edges = limits.shape[0]
    if edges < 3:
        nans, k = compare_with_one(block, limits, 0, below, True), 1
    else:
        nans, k = compare_with_three(block, limits, 0, below, True), 3
    while k + 3 <= edges:
        compare_with_three(block, limits, k, below, None)
        k += 3
    while k < edges:
        compare_with_one(block, limits, k, below, None)
        k += 1
    return nans


@cached
def compare(items: Any, limits: Any, below: Any) -> Any:
    """Add to ``below`` how many items are at most each limit; return how many are NaN."""
    nans, size = 0, items.shape[0]
    half = size // (2 * BLOCK) * BLOCK
    for first in range(0, half, BLOCK):
        nans += compare_block(items[first : first + BLOCK], limits, below)
        nans += compare_block(items[half + first : half + first + BLOCK], limits, below)
    for first in range(2 * half, size, BLOCK):
        nans += compare_block(items[first : min(first + BLOCK, size)], limits, below)
    return nans
