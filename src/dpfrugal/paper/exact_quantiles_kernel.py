"""The compiled part of ``exact_quantiles``: one pass over a chunk for one quantile."""

from typing import Any

from dpfrugal.kernels.compiler import cached


@cached
def gather(items: Any, low: Any, high: Any, kept: Any) -> Any:
    """Copy the items in [low, high] to ``kept``, which has room for one more; count them and the items below."""
    below, count = 0, 0
    for i in range(items.shape[0]):
        item = items[i]
        kept[count] = item  # overwritten by the next item unless it counts: cheaper than a branch
        count += (item >= low) & (item <= high)
        below += item < low
    return count, below
