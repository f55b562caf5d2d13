"""The noisy share of items below each public edge, read off one segment's noisy counts.

Counts carry independent noise; their true total is public. The share below edge j can be summed from below
(j noisy counts) or from above (E + 1 - j of them); the weighted mean of both has the least noise, with variance
j·(E + 1 - j)/(E + 1) times that of one count. Worked number: three edges, noise variance 8 per count, 1000
items: the share below the middle edge has a noise of √(8·2·2/4) / 1000 = 0.0028.
"""

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.segments.edge_placement import between

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyCdf:
    """One segment's public result: ``share[j]`` of its ``items`` lie below ``edges[j]``, up to ``noise[j]``."""

    edges: Floats
    share: Floats
    noise: Floats  # standard deviations, as shares
    items: int
    bin_noise: float  # the standard deviation of one count's noise, as a share

    @classmethod
    def of_bins(cls, edges: Floats, noisy: Sequence[int], items: int, variance: float) -> "NoisyCdf":
        """From a noisy histogram of ``items`` items, each count with noise of ``variance``."""
        bins = len(noisy)
        excess = (sum(noisy) - items) / bins  # of all the noise; each bin is assumed to hold an equal part of it
        below = itertools.accumulate(noisy[:-1])
        share = [(count - excess * j) / items for j, count in enumerate(below, 1)]
        noise = [math.sqrt(variance * j * (bins - j) / bins) / items for j in range(1, bins)]
        return cls(edges, np.array(share), np.array(noise), items, math.sqrt(variance) / items)

    @classmethod
    def of_one(cls, edges: Floats, noisy: int, items: int, variance: float) -> "NoisyCdf":
        """From the noisy number of items below the only edge."""
        noise = math.sqrt(variance) / items
        return cls(edges, np.array([noisy / items]), np.array([noise]), items, noise)

    def index(self, edge: float) -> int:
        """The position of ``edge``, which must be one of the edges."""
        return bisect.bisect_left(self.edges, edge)

    def error(self, q: float) -> Floats:
        """The standard error of each share, if the true share is ``q``: sampling and noise."""
        return np.sqrt(q * (1 - q) / self.items + self.noise**2)

    def error_at(self, index: int, q: float) -> float:
        """The same of one share."""
        return math.sqrt(q * (1 - q) / self.items + float(self.noise[index]) ** 2)

    def share_at(self, edge: float) -> float:
        """The share below ``edge``, which must be one of the edges."""
        return float(self.share[self.index(edge)])

    def bracket(self, q: float, certainty: float) -> tuple[float, float]:
        """The edges between which the quantile ``q`` lies, at ``certainty`` standard errors.

        A bound needs every edge beyond it to be significant too; one outlier cannot set it.
        """
        first, last = self._unsure(q, certainty)
        low = float(self.edges[first - 1]) if first else -math.inf
        high = float(self.edges[last]) if last < self.edges.size else math.inf
        return low, high

    def interval(self, q: float, certainty: float) -> tuple[float, float]:
        """The same, with ends that may lie between two edges if little lies between them."""
        low, high = self.bracket(q, certainty)
        first, last = self._unsure(q, certainty)
        error = self.error(q)
        if 0 < first < self.edges.size and self.share[first] - self.share[first - 1] < 3 * error[first]:
            gaps = self.share[first - 1 : first + 1] + certainty * error[first - 1 : first + 1] - q
            low = between(low, float(self.edges[first]), float(gaps[0] / (gaps[0] - gaps[1])))
        if 0 < last < self.edges.size and self.share[last] - self.share[last - 1] < 3 * error[last]:
            gaps = self.share[last - 1 : last + 1] - certainty * error[last - 1 : last + 1] - q
            high = between(float(self.edges[last - 1]), high, float(gaps[0] / (gaps[0] - gaps[1])))
        return low, high

    def _unsure(self, q: float, certainty: float) -> tuple[int, int]:
        """The first edge not significantly below the quantile; the last not significantly above it, plus one."""
        slack = certainty * self.error(q)
        below, above = self.share + slack >= q, self.share - slack <= q
        first = int(np.argmax(below)) if below.any() else self.edges.size
        last = self.edges.size - int(np.argmax(above[::-1])) if above.any() else 0
        return first, last

    def rising(self) -> Floats:
        """The shares as a true CDF would have them: rising, between 0 and 1 (isotonic regression)."""
        blocks: list[tuple[float, int]] = []
        for share in self.share.tolist():
            mean, size = share, 1
            while blocks and blocks[-1][0] > mean:
                other, width = blocks.pop()
                mean, size = (mean * size + other * width) / (size + width), size + width
            blocks.append((mean, size))
        rising: list[float] = []
        for mean, size in blocks:
            rising += [min(max(mean, 0.0), 1.0)] * size
        return np.array(rising, dtype=np.float64)
