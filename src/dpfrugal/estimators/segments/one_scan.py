"""One scan: one long segment, counted between many edges at once, instead of many short ones.

An engine reads a table as a whole: it cannot stop after every segment to move one edge. So the window around the
estimate is divided into many bins, and the quantile is interpolated between the two edges that bracket it. An item
still falls into one bin, so the segment costs no more privacy than one with three edges (docs/proofs.md, Theorem 8).

Worked number: after 100,000 items a median's rank is known to ±0.0016, so the window holds 1.6% of the items and each
of 40 bins 0.04%: interpolation of a thousand million items errs by a bin's curvature, some 1e-7, where their sampling
error is 1.6e-5.
"""

from dataclasses import dataclass

import numpy as np

from dpfrugal.estimators.segments.cdf_rise import coarseness
from dpfrugal.estimators.segments.edge_placement import after, roundest
from dpfrugal.estimators.segments.evidence import Agreement
from dpfrugal.estimators.segments.locate import LOST
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf
from dpfrugal.estimators.segments.refine import WINDOW, Refine

MOST_EDGES = 56  # of all quantiles together
FEWEST_EDGES = 4  # of one quantile
MOST_NOISE = 0.1  # the most that noise may add to the sampling variance, as a part of it
BEYOND = (2.0, 6.0, 20.0)  # edges outside the window, in halves of it
NEIGHBOURS = 3  # bins on each side that the density is measured over


@dataclass
class OneScan:
    """A ``Refine`` whose next segment is one long scan."""

    refine: Refine
    items: int
    bins: int
    lost: bool = False  # the quantile lies beyond all edges
    atom: float | None = None  # the one number that holds the quantile

    def edges(self) -> list[float]:
        """Even steps through the window, and a few far steps on both sides of it."""
        (low, high), centre, grain = self.refine.window, self.refine.centre, self.refine.grain
        half = (high - low) / 2
        if grain:  # between the numbers that may occur
            return [centre + grain * step for step in range(-self.bins // 2, self.bins // 2 + 1)]
        inside = self._steps()
        for reach in (0.0, *BEYOND[:2]):
            if (number := roundest(low - reach * half, high + reach * half)) is not None:
                inside += [number, after(number)]
        return [*inside, *(edge for reach in BEYOND for edge in (low - reach * half, high + reach * half))]

    def _steps(self) -> list[float]:
        """Evenly spaced edges from one end of the window to the other."""
        low, high = self.refine.window
        return [low + (high - low) * step / self.bins for step in range(self.bins + 1)]

    def length(self, total: float, noise_variance: float, bin_variance: float) -> float:
        """The items that were announced."""
        return self.items

    def absorb(self, cdf: NoisyCdf, agreement: Agreement) -> None:
        """Take in the noisy CDF of the segment, and move the ``Refine`` to the quantile found."""
        refine, q, edges = self.refine, self.refine.target.q, sorted({edge + 0.0 for edge in self.edges()})
        at = np.searchsorted(cdf.edges, edges)
        shares, errors = cdf.rising()[at], cdf.error(q)[at]
        self.lost = bool(q < shares[0] - LOST * errors[0] or q > shares[-1] + LOST * errors[-1])
        if self.lost:
            agreement.contradicted()
            return
        k = int(np.clip(np.searchsorted(shares, q), 1, len(edges) - 1))
        rise, error = float(shares[k] - shares[k - 1]), float(errors[k])
        part = min(max(float(q - shares[k - 1]) / rise, 0.0), 1.0) if rise > 0 else 0.5
        if edges[k] == after(edges[k - 1]) and rise > 10 * cdf.bin_noise:
            self.atom = edges[k - 1]
            return
        steps = self._steps()
        nearest = int(
            np.clip(np.searchsorted(steps, edges[k]) - NEIGHBOURS, 0, max(len(steps) - 2 * NEIGHBOURS - 1, 0))
        )
        rungs = steps[nearest : nearest + 2 * NEIGHBOURS + 1]
        found = edges[k - 1] + part * (edges[k] - edges[k - 1])
        first, last = max(0, k - 1 - NEIGHBOURS), min(len(edges) - 1, k + NEIGHBOURS)
        seen, width = float(shares[last] - shares[first]), edges[last] - edges[first]
        if not seen * cdf.items > 3 * (seen * cdf.items + 2 * (cdf.bin_noise * cdf.items) ** 2) ** 0.5:
            return  # too few items to say more than was known
        refine.density = seen / width
        agreement.note(refine.density * (found - refine.estimate) / float(np.hypot(error, refine.evidence.error)))
        refine.evidence.add(found, 0.0, 1 / error**2)
        refine.estimate = refine.evidence.quantile(refine.density)
        refine.pooled_items, refine.pooled_width = seen * cdf.items, width * cdf.items
        refine.pooled_below = float(shares[k] - shares[first]) * cdf.items, (edges[k] - edges[first]) * cdf.items
        refine.uncertainty = float(np.hypot(seen**0.5 / cdf.items**0.5, 2**0.5 * cdf.bin_noise)) / seen
        refine.coarseness = 0.0 if refine.grain else coarseness(cdf, rungs)
        half = max(WINDOW * refine.evidence.error / refine.density, edges[k] - edges[k - 1], 2 * refine.grain)
        refine.window, refine.settled = (refine.estimate - half, refine.estimate + half), True
