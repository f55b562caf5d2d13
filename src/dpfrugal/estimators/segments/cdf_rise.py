"""How far a CDF was seen to rise between the edges of one window, and how far apart items may lie.

Worked number: of 25,000 items a window of ten standard errors of a median that is known to 0.0016 holds 400, each of
its ten steps 40 with a standard error of 6; a step that holds none of them is part of a gap.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from dpfrugal.estimators.segments.noisy_cdf import Floats, NoisyCdf

DOUBT = 1.0  # standard errors by which a rise may have been seen as too small
HEAP = 2.0  # times the mean rise of a bin, from which on it may lie at the far end of the bin


def _nothing() -> Floats:
    return np.empty(0, dtype=np.float64)


@dataclass
class MeasuredRise:
    """The shares of items below ``edges`` in one segment; none are known at first."""

    edges: Floats = field(default_factory=_nothing)
    shares: Floats = field(default_factory=_nothing)
    items: int = 0
    bin_noise: float = 0.0  # standard error of one bin's share by noise

    @classmethod
    def of(cls, cdf: NoisyCdf, edges: list[float]) -> "MeasuredRise":
        """What a segment shows at these of its edges."""
        shares = np.array([cdf.share_at(edge) for edge in edges], dtype=np.float64)
        return cls(np.array(edges, dtype=np.float64), shares, cdf.items, cdf.bin_noise)

    def ends(self, estimate: float, down: float, up: float) -> tuple[float, float]:
        """The numbers nearest to the estimate by which the CDF has fallen by ``down``, and risen by ``up``.

        Infinite where the edges do not reach as far. A rise counts as large as it may be by one standard error. Within
        a bin the CDF is a straight line; but a bin that holds much more than others may be a heap at its far end.
        """
        if self.edges.size < 2 or not self.edges[0] < estimate < self.edges[-1]:
            return (-math.inf, math.inf) if self.edges.size else (estimate, estimate)
        middle = float(np.interp(estimate, self.edges, self.shares))
        above, below = self.edges > estimate, self.edges < estimate
        high = self._reached(self.edges[above] - estimate, self.shares[above] - middle, up)
        low = self._reached((estimate - self.edges[below])[::-1], (middle - self.shares[below])[::-1], down)
        return estimate - low, estimate + high

    def _reached(self, distances: Floats, rises: Floats, wanted: float) -> float:
        """The distance at which a rise is reached."""
        mean = float(self.shares[-1] - self.shares[0]) / float(self.edges[-1] - self.edges[0])
        before, seen = 0.0, 0.0
        for bins, (distance, rise) in enumerate(zip(distances.tolist(), rises.tolist(), strict=True), 1):
            risen = rise + DOUBT * math.sqrt(max(rise, 0.0) / self.items + bins * self.bin_noise**2)
            if risen >= wanted:
                heap = rise - seen > HEAP * mean * (distance - before)
                return float(distance if heap else before + (distance - before) * (wanted - seen) / (risen - seen))
            before, seen = distance, max(seen, risen)
        return math.inf


def coarseness(cdf: NoisyCdf, rungs: list[float]) -> float:
    """Half of how much farther apart items may lie than evenly spaced edges, by what was counted between these.

    Heaps g apart, wider than the bins' width w, fill a part w/g of the bins: the counts' variance over the square of
    their mean is g/w - 1, besides chance and noise. A straight line through such stairs is off by up to g/2.
    """
    counts = cdf.items * np.diff(cdf.share[[cdf.index(edge) for edge in rungs]])
    bins, mean = counts.size, float(counts.mean())
    chance = max(mean, 0.0) + 1.2 * (cdf.bin_noise * cdf.items) ** 2
    if mean <= math.sqrt(chance / bins):
        return math.inf  # nothing was seen
    excess = (float(((counts - mean) ** 2).sum()) / (bins - 1) - chance) / mean**2
    unsure = math.sqrt(2 / bins) * chance / mean**2
    return max(0.0, excess + unsure) * (rungs[1] - rungs[0]) / 2
