"""The paper's datasets that the benchmark reads: D1 ×1000, D5, D5 ×1000, D6 and D6 ×1000, shuffled and sorted.

All items are truncated to integers, as in the paper. "Narrow" data (D5: a dozen different values) keeps every item
near the estimate; in "wide" data nearly all items are far from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

QUANTILE = 0.99
Order = Literal["shuffled", "sorted"]


@dataclass(frozen=True)
class Law:
    """A distribution of the paper, what its draws are multiplied by, and bounds a careful person might guess."""

    name: str
    draw: Callable[[np.random.Generator, int], NDArray[np.float64]]
    scale: int
    bounds: tuple[int, int]


def _uniform(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.uniform(0, 1000, size)


def _normal(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return rng.normal(50, 2, size)


def _cauchy(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    return 10_000 + 1250 * rng.standard_cauchy(size)


LAWS = (
    Law("D5", _normal, 1, (0, 1000)),
    Law("D5×1000", _normal, 1000, (0, 1_000_000)),
    Law("D1×1000", _uniform, 1000, (0, 2_000_000)),
    Law("D6", _cauchy, 1, (-1_000_000, 1_000_000)),
)
# The 0.99-quantile is 50 million steps from 0: more than there are items. It is measured for this library alone.
FAR = Law("D6×1000", _cauchy, 1000, (-1_000_000_000, 1_000_000_000))


@dataclass(frozen=True)
class Dataset:
    """Items in one order. ``thinned`` leaves some out for slow peers, which keeps the distribution and the order."""

    law: Law
    order: Order
    items: NDArray[np.int64]

    @cached_property
    def ascending(self) -> NDArray[np.int64]:
        """The items sorted: their empirical distribution function."""
        return self.items if self.order == "sorted" else np.sort(self.items)

    @property
    def sorted(self) -> "Dataset":
        """The same items in ascending order."""
        return Dataset(self.law, "sorted", self.ascending)

    def thinned(self, most: int) -> NDArray[np.int64]:
        """At most ``most`` of the items, evenly spaced over the whole array."""
        stride = max(1, -(-self.items.size // most))
        return np.ascontiguousarray(self.items[::stride])

    def rank_error(self, estimate: float) -> float:
        """How far the 0.99 lies from the ranks of ``estimate``.

        Equal items share a range of ranks, from the share of items below to the share at or below; in that range
        the error is 0. Where items hardly repeat it is |F(estimate) - q|.
        """
        below = np.searchsorted(self.ascending, estimate, side="left") / self.items.size
        up_to = np.searchsorted(self.ascending, estimate, side="right") / self.items.size
        return float(max(below - QUANTILE, QUANTILE - up_to, 0.0))


def dataset(law: Law, size: int, seed: int = 1) -> Dataset:
    """``size`` items of a law in the order they were drawn in; ``Dataset.sorted`` holds the same items."""
    drawn = law.draw(np.random.default_rng(seed), size) * law.scale
    return Dataset(law, "shuffled", np.trunc(drawn).astype(np.int64))
