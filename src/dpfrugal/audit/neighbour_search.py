"""The search for worst-case neighbours: streams that differ in one item and whose outputs lie far apart.

Under a guarantee so weak that the noise vanishes, an output shows what the noise would hide, and with fixed coins it is
the same in every run; so one run of each stream suffices to compare a pair. All neighbouring streams of a few items are
compared, with one release at the end or one after each of several parts. Then every kind of replacement is followed by
more items, one at a time, each chosen to drive the two outputs farthest apart. This finds misplaced coins, which show
only on streams that fit the coins.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.privacy.guarantees import Guarantee, PureDP

Items = tuple[Any, ...]
Periods = tuple[Items, ...]  # the items before each release
Numbers = Sequence[Sequence[float]]  # what is seen of each release; as many numbers each time

MOST_STREAMS = 700  # compared with all their neighbours
LONGEST = 24
PATIENCE = 8  # items that may be added without any effect
FAR = 1e4  # farther apart than this is far enough
WITHOUT_NOISE = PureDP(epsilon=1e6)  # a promise so weak that an output shows what noise would hide
OUT_OF_SIGHT = 1e12  # stands for an infinite number


@dataclass(frozen=True)
class Case:
    """An estimator with its settings, items worth trying, and what anyone sees of a run of it.

    A case of one's own is a function of a guarantee and of the items of each period:

    >>> import dpfrugal as dpf
    >>> from dpfrugal.audit import Case
    >>> def run(guarantee, periods):
    ...     walk = dpf.DPFrugal1U(0.5, guarantee, coin_seed=1)
    ...     for items in periods:
    ...         walk.update_many(items)
    ...     return [[walk.release().value]]
    >>> case = Case("DPFrugal1U", run, items=(-2, 0, 2))
    >>> case.name
    'DPFrugal1U'
    """

    name: str
    run: Callable[[Guarantee, Periods], Numbers]
    items: Items
    longest: int = LONGEST
    neighbours: tuple[tuple[Periods, Periods], ...] = ()  # to try instead of those that a search finds
    chosen: bool = False  # numbers are chosen among few, not added noise to


@dataclass(frozen=True)
class Pair:
    """Neighbouring streams of a case, and the distance of their outputs without noise."""

    case: Case
    first: Periods
    second: Periods
    distance: float

    def swapped(self) -> "Pair":
        """The same neighbours the other way round."""
        return Pair(self.case, self.second, self.first, self.distance)


def seen(case: Case, guarantee: Guarantee, periods: Periods) -> NDArray[np.float64]:
    """One transcript: releases × numbers, all finite."""
    numbers = np.asarray(case.run(guarantee, periods), dtype=np.float64)
    return np.clip(np.nan_to_num(numbers, nan=OUT_OF_SIGHT), -OUT_OF_SIGHT, OUT_OF_SIGHT)


def patterns(length: int) -> Iterator[tuple[int, ...]]:
    """How many items come before each release: all of them; or the first, then the rest."""
    yield (length,)
    if length > 1:
        yield (1, length - 1)


def pairs(case: Case) -> Iterator[Pair]:
    """The best pair of every pattern of releases, and the extended pair of every kind of replacement."""
    if case.neighbours:
        yield from (Pair(case, first, second, FAR) for first, second in case.neighbours)
        return
    length = max(n for n in (1, 2, 3) if n == 1 or len(case.items) ** n <= MOST_STREAMS)
    for pattern in patterns(length):
        yield best_of_all(case, pattern)
    for item, other in itertools.combinations(case.items, 2) if case.longest > 1 else ():
        yield grown(Pair(case, ((item,),), ((other,),), 0.0))


def best_of_all(case: Case, pattern: tuple[int, ...]) -> Pair:
    """The neighbours whose outputs are farthest apart, among all streams of that many items."""
    ends = list(itertools.accumulate(pattern))

    def periods(stream: Items) -> Periods:
        return tuple(stream[end - size : end] for size, end in zip(pattern, ends, strict=True))

    streams = list(itertools.product(range(len(case.items)), repeat=sum(pattern)))
    cut = {stream: periods(tuple(case.items[k] for k in stream)) for stream in streams}
    outputs = {stream: seen(case, WITHOUT_NOISE, cut[stream]) for stream in streams}
    best: tuple[float, Any, Any] = (-1.0, None, None)
    for stream in streams:
        for place, k in itertools.product(range(len(stream)), range(len(case.items))):
            if k > stream[place]:
                other = (*stream[:place], k, *stream[place + 1 :])
                if (far := distance(outputs[stream], outputs[other])) > best[0]:
                    best = (far, stream, other)
    far, stream, other = best
    return Pair(case, cut[stream], cut[other], far)


def grown(pair: Pair) -> Pair:
    """The pair with more items in its last period, the same in both streams, added while the distance grows."""
    best, last, in_vain = pair, pair, 0
    while sum(map(len, last.first)) < pair.case.longest and best.distance < FAR and in_vain < PATIENCE:
        last = max((extended(last, item) for item in pair.case.items), key=lambda longer: longer.distance)
        best, in_vain = (last, 0) if last.distance > best.distance else (best, in_vain + 1)
    return best


def extended(pair: Pair, item: Any) -> Pair:
    """Both streams with one more item."""
    first, second = ((*periods[:-1], (*periods[-1], item)) for periods in (pair.first, pair.second))
    outputs = seen(pair.case, WITHOUT_NOISE, first), seen(pair.case, WITHOUT_NOISE, second)
    return Pair(pair.case, first, second, distance(*outputs))


def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The sum of the absolute differences, each at most ``FAR``."""
    return float(np.minimum(np.abs(one - other), FAR).sum())
