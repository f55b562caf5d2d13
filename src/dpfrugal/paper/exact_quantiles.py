"""Exact quantiles of streams too long to keep: lower and upper, by the paper's Definition 1.

One pass suffices for a stream in random order: the first chunk gives two values between which the quantile must lie;
items between them are kept, items below are counted. Afterwards it is certain whether the quantile is among those kept.
If it is not, ``selected`` finds it in four more passes, whatever the order.

Worked number: for q = 0.99 of a hundred million items 0.4 million are kept, 3 MB.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from dpfrugal.paper.datasets import Floats
from dpfrugal.parameters import exact

# Half the width of a bracket, in standard deviations of the first chunk's quantile.
DEVIATIONS: Final = 10
DIGIT_BITS: Final = 16


def ranks(quantile: float, items: int) -> tuple[int, int]:
    """The ranks of the lower and the upper quantile, from 1: ⌊1 + q(n-1)⌋ and ⌈1 + q(n-1)⌉; q as it is written.

    >>> ranks(0.1, 11), ranks(0.99, 10)
    ((2, 2), (9, 10))
    """
    place = 1 + exact(quantile) * (items - 1)
    return math.floor(place), math.ceil(place)


class ExactQuantiles:
    """The exact quantiles of all items so far; ``at_now`` may be called at any time."""

    def __init__(self, quantiles: Sequence[float]) -> None:
        self._brackets = [Bracket(quantile) for quantile in quantiles]
        self._items = 0

    def update(self, items: Floats) -> None:
        """Take in a chunk of finite items."""
        self._items += items.size
        for bracket in self._brackets:
            bracket.update(items)

    def at_now(self) -> dict[float, tuple[float, float] | None]:
        """Lower and upper quantile for each q, or None if the bracket missed it and ``selected`` must find it."""
        return {bracket.quantile: bracket.found(self._items) for bracket in self._brackets}


class Bracket:
    """The items between two values that enclose one quantile, and how many are below."""

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile
        self._low, self._high = -math.inf, math.inf
        self._below = 0
        self._kept: list[Floats] = []
        self._room = np.empty(0)

    def update(self, items: Floats) -> None:
        """Keep what lies inside, count what lies below."""
        from dpfrugal.paper import exact_quantiles_kernel

        if not self._kept:
            self._enclose(items)
        if self._room.size <= items.size:
            self._room = np.empty(items.size + 1)
        count, below = exact_quantiles_kernel.gather(items, self._low, self._high, self._room)
        self._below += int(below)
        self._kept.append(self._room[:count].copy())

    def _enclose(self, pilot: Floats) -> None:
        margin = DEVIATIONS * (math.sqrt(self.quantile * (1 - self.quantile) * pilot.size) + 1)
        first, last = math.floor(self.quantile * pilot.size - margin), math.ceil(self.quantile * pilot.size + margin)
        inside = [place for place in (first, last) if 0 <= place < pilot.size]
        ordered = np.partition(pilot, inside) if inside else pilot
        self._low = float(ordered[first]) if first in inside else -math.inf
        self._high = float(ordered[last]) if last in inside else math.inf

    def found(self, items: int) -> tuple[float, float] | None:
        """The lower and the upper quantile, if both are among the items kept."""
        kept = np.concatenate(self._kept)
        self._kept = [kept]
        places = [rank - 1 - self._below for rank in ranks(self.quantile, items)]
        if places[0] < 0 or places[1] >= kept.size:
            return None
        ordered = np.partition(kept, places)
        return float(ordered[places[0]]), float(ordered[places[1]])


def selected(stream: Callable[[], Iterable[Floats]], rank: int) -> float:
    """The item of this rank, from 1, by radix selection: four passes over the stream and 64 Ki counters."""
    prefix, left = 0, rank
    for shift in range(64 - DIGIT_BITS, -1, -DIGIT_BITS):
        counts = np.zeros(1 << DIGIT_BITS, dtype=np.int64)
        for items in stream():
            keys = _ascending_keys(items)
            if shift + DIGIT_BITS < 64:
                keys = keys[keys >> np.uint64(shift + DIGIT_BITS) == np.uint64(prefix)]
            digits = (keys >> np.uint64(shift)) & np.uint64((1 << DIGIT_BITS) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=counts.size)
        upto = np.cumsum(counts)
        digit = int(np.searchsorted(upto, left))
        left -= int(upto[digit] - counts[digit])
        prefix = prefix << DIGIT_BITS | digit
    bits = prefix ^ (1 << 63) if prefix >> 63 else prefix ^ ((1 << 64) - 1)
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])


def _ascending_keys(items: Floats) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint64]]":
    """The floats as unsigned integers in the same order: the sign bit flipped, and all others of a negative."""
    bits = np.ascontiguousarray(items).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    return np.where(negative, ~bits, bits | np.uint64(1 << 63))
