"""The compiled comparison of items with limits; see ``counting``."""

from typing import Any, Final

from dpfrugal.compiler import cached

BLOCK: Final = 8192


@cached
def compare(items: Any, limits: Any, below: Any) -> Any:
    """Every item with every limit, three limits in one pass over a block; the first pass looks for NaN too."""
    nans, size, edges = 0, items.shape[0], limits.shape[0]
    for first in range(0, size, BLOCK):
        block = items[first : min(first + BLOCK, size)]
        for k in range(0, edges, 3):
            one, two, three = limits[k], limits[min(k + 1, edges - 1)], limits[min(k + 2, edges - 1)]
            at_one, at_two, at_three, odd = 0, 0, 0, 0
            if k == 0:
                for i in range(block.shape[0]):
                    item = block[i]
                    at_one += item <= one
                    at_two += item <= two
                    at_three += item <= three
                    odd += item != item
            else:
                for i in range(block.shape[0]):
                    item = block[i]
                    at_one += item <= one
                    at_two += item <= two
                    at_three += item <= three
            nans += odd
            below[k] += at_one
            if k + 1 < edges:
                below[k + 1] += at_two
            if k + 2 < edges:
                below[k + 2] += at_three
    return nans
