"""Locate: from all magnitudes to a bracket that holds the quantile and little else.

The first segment's edges lie at all magnitudes. Those of the next lie where the quantile may be: at equal levels of
the posterior P[quantile ≤ e] = Φ((F(e) - q) / error). A bound is accepted at 2.5 standard errors and measured again
with every segment. A tail of unknown length gets few edges, at growing distances: every bin above the quantile adds its
noise to the tail's count.
"""

import bisect
import itertools
import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from dpfrugal.estimators.segments.edge_placement import after, between, logit, roundest
from dpfrugal.estimators.segments.evidence import Agreement, Evidence, Target
from dpfrugal.estimators.segments.noisy_cdf import Floats, NoisyCdf

ACCEPTED = 2.5  # standard errors for a bound to be accepted
LOST = 5.0  # standard errors for a contradiction
SHORTEST = 160  # items in the shortest segment
LEAST_PART = 1 / 48  # of all items in a segment: a search that starts over and over must not take ever more of them
HUGE = 2.0**1000  # no edge lies beyond, so that sums and differences of edges stay finite
SMALLEST = 2.0**-40  # the smallest scale to start from
MAGNITUDES = tuple(2.0**power for power in range(-35, 66, 5))
LEVELS = (0.01, 0.06, 0.16, 0.32, 0.5, 0.68, 0.84, 0.94, 0.99)
NEAR = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0)  # edges into a tail, in widths of the bulk
FAR = (2.0**12, 2.0**40, 2.0**80)
MOST_KNOTS = 18
TOO_NOISY = 0.1  # noise of one count, as a share of the items, above which a segment shows no magnitudes
BULK = (0.15, 0.85)
STANDARD = NormalDist()


@dataclass
class Locate:
    """A bracket that shrinks, and what the last segment showed in and around it."""

    target: Target
    start: float
    estimate: float
    low: float = -math.inf
    high: float = math.inf
    bulk: tuple[float, float] | None = None  # where the middle of the data lies
    knots: NoisyCdf | None = None
    mass: float = 1.0  # share of the items in the bracket
    resolving: bool = True  # the bulk still shrinks with every segment: short ones will do
    asked: float = 0.0  # items that the next segment should have, because shorter ones did not decide
    evidence: Evidence = field(default_factory=Evidence)
    gathered_over: float = math.inf  # the bracket's width when the evidence was begun
    ready: bool = False  # the bracket is so narrow that the density hardly varies in it

    def edges(self) -> list[float]:
        """The edges wanted for the next segment."""
        if math.isinf(self.low) and math.isinf(self.high):
            return [self.start, *(self.start + sign * reach for reach in MAGNITUDES for sign in (-1, 1))]
        if side := self.far_side:
            return self._tail_edges(side)
        inside = [self.low, after(self.low), self.high, *self._likely_edges()]
        if (number := roundest(after(self.low), self.high)) is not None:
            inside += [number, after(number)]
        return inside

    def length(self, total: float, noise_variance: float, bin_variance: float) -> float:
        """Items wanted in the next segment, when counts below the estimate have ``noise_variance``."""
        shortest = max(SHORTEST, total * LEAST_PART)
        if math.isinf(self.low) and math.isinf(self.high):
            return max(shortest, 15 * math.sqrt(bin_variance * 10), total / 2)
        if self.far_side and self.resolving:
            return max(shortest, 15 * math.sqrt(bin_variance * 10))
        error, noise = 0.9 * self.target.tail / ACCEPTED, 6 * bin_variance
        if not self.far_side:
            error, noise = min(self.mass / 10, error), noise_variance
        variance = self.target.variance
        wanted = (variance + math.sqrt(variance**2 + 4 * error**2 * noise)) / (2 * error**2)
        return max(shortest, min(max(wanted, self.asked), 3 * total))

    @property
    def far_side(self) -> int:
        """1 or -1 if the bound above or below is missing, or far beyond the bulk of the data; else 0."""
        if self.bulk is None:
            return 0
        above, below = self.high - self.bulk[1], self.bulk[0] - self.low
        if max(above, below) <= 32 * self._scale():
            return 0
        return 1 if above > below else -1

    def _scale(self) -> float:
        """The width of the bulk, or how far from it the quantile is known or thought to lie."""
        first, last = self.bulk or (self.low, self.high)
        smallest = max(SMALLEST, max(abs(first), abs(last)) * 2.0**-48)
        beyond = max(self.estimate - last, first - self.estimate) / 4 if self._bulk_tied else 0.0
        return max(last - first, self.low - last, first - self.high, beyond, smallest)

    @property
    def _bulk_tied(self) -> bool:
        """Whether one number holds most of the data, which then have no scale."""
        return self.bulk is not None and self.bulk[1] <= after(self.bulk[0])

    def _tail_edges(self, sign: int) -> list[float]:
        base, scale = (self.low if sign > 0 else self.high), self._scale()
        first, last = self.bulk or (base, base)
        tail = [base + sign * scale * steps for steps in NEAR]
        tail += [base + sign * max(scale, abs(base)) * steps for steps in FAR]
        tail = [edge for edge in tail if self.low < edge < self.high]
        number = roundest(math.nextafter(first, -math.inf), last)
        ties = [number, after(number)] if number is not None else []
        return [self.low, self.high, *tail, *ties, *(between(first, last, part / 7) for part in range(8))]

    def _likely_edges(self) -> list[float]:
        if self.knots is None:
            return [between(self.low, self.high, part / 10) for part in range(1, 10)]
        inside = (self.knots.edges > self.low) & (self.knots.edges < self.high)
        gaps = (self.knots.rising()[inside] - self.target.q) / self.knots.error(self.target.q)[inside]
        posterior = list(itertools.accumulate([0.0, *(STANDARD.cdf(gap) for gap in gaps.tolist()), 1.0], max))
        edges = [self.low, *self.knots.edges[inside].tolist(), self.high]
        likely = []
        for level in LEVELS:
            k = bisect.bisect_left(posterior, level, 1, len(posterior) - 1) - 1
            rise = posterior[k + 1] - posterior[k]
            likely.append(between(edges[k], edges[k + 1], (level - posterior[k]) / rise if rise > 0 else 0.5))
        return likely

    def absorb(self, cdf: NoisyCdf, agreement: Agreement) -> None:
        """Take in the noisy CDF of one segment."""
        if cdf.bin_noise > TOO_NOISY:
            return
        shares, old_width = cdf.rising(), self.high - self.low
        low, high = self._bounds(cdf, agreement)
        if self.bulk is None or self.far_side:
            old, self.bulk = self.bulk, self._middle(cdf, shares)
            shrunk = old is None or self.bulk[1] - self.bulk[0] < 0.5 * (old[1] - old[0])
            self.resolving = shrunk and not self._bulk_tied
        self.low, self.high = low, high
        first, last = max(0, cdf.index(low) - 1), min(cdf.edges.size, cdf.index(high) + 2)
        if last - first > MOST_KNOTS:  # only while a side is open
            first, last = (first, first + MOST_KNOTS) if math.isfinite(low) else (last - MOST_KNOTS, last)
        near = slice(first, last)
        self.knots = NoisyCdf(cdf.edges[near], cdf.share[near], cdf.noise[near], cdf.items, cdf.bin_noise)
        inside = np.flatnonzero((cdf.edges >= low) & (cdf.edges <= high))
        if inside.size < 2:
            self.estimate = min(max(self.estimate, low), high)
            return
        error = self._estimate(cdf, inside, shares)
        self.mass = max(float(shares[inside[-1]] - shares[inside[0]]), error)
        self.asked = 1.4 * cdf.items if high - low > 0.7 * old_width else 0.0
        if math.isinf(high - low) or self.far_side or self._tied(cdf, inside):
            return
        sides = high - self.estimate, self.estimate - low
        narrow = self.mass <= min(10 * error, self.target.tail) and max(sides) < 10 * min(sides)
        quarters = np.interp([between(low, high, 0.25), between(low, high, 0.75)], cdf.edges[inside], shares[inside])
        self.ready = narrow and float(quarters[1]) - float(quarters[0]) > 0.2 * self.mass  # else it spans a gap

    def _bounds(self, cdf: NoisyCdf, agreement: Agreement) -> tuple[float, float]:
        """The bounds of this segment, narrowed by those of earlier ones where it does not contradict them."""
        low, high = cdf.bracket(self.target.q, ACCEPTED)
        error = cdf.error(self.target.q)
        old_low, old_high = self.low, self.high
        if math.isfinite(old_low):
            at = cdf.index(old_low)
            gap = float((self.target.q - cdf.share[at]) / error[at])
            if gap < 0.5:
                above = cdf.edges[cdf.edges > after(old_low)]
                neighbour = float(above[0]) if above.size else old_low
                old_low -= 2 * max(self.estimate - old_low, neighbour - old_low) if gap > -LOST else math.inf
        if math.isfinite(old_high):
            at = cdf.index(old_high)
            gap = float((cdf.share[at] - self.target.q) / error[at])
            if gap < 0.5:
                neighbour = float(cdf.edges[max(at - 1, 0)])
                old_high += 2 * max(old_high - self.estimate, old_high - neighbour) if gap > -LOST else math.inf
        if (math.isinf(old_low) and math.isfinite(self.low)) or (math.isinf(old_high) and math.isfinite(self.high)):
            self.evidence.forget()
            agreement.contradicted()
        old_low, old_high = old_low if old_low >= -HUGE else -math.inf, old_high if old_high <= HUGE else math.inf
        return (max(low, old_low), min(high, old_high)) if max(low, old_low) < min(high, old_high) else (low, high)

    def _middle(self, cdf: NoisyCdf, shares: Floats) -> tuple[float, float]:
        lower, upper = np.flatnonzero(shares < BULK[0]), np.flatnonzero(shares > BULK[1])
        return float(cdf.edges[lower[-1] if lower.size else 0]), float(cdf.edges[upper[0] if upper.size else -1])

    def _estimate(self, cdf: NoisyCdf, inside: "np.ndarray[tuple[int], np.dtype[np.int64]]", shares: Floats) -> float:
        """Set the estimate, by interpolation pooled with that of earlier segments; return the segment's error."""
        edges, inner = cdf.edges[inside], shares[inside]
        k = min(max(bisect.bisect_left(inner, self.target.q), 1), inside.size - 1)
        first, last = float(edges[k - 1]), float(edges[k])
        error = cdf.error_at(int(inside[k]), self.target.q)
        mass = max(float(inner[k] - inner[k - 1]), cdf.bin_noise)
        if last == after(first) and stands_out(mass, cdf):  # a number's share is not averaged with its neighbours'
            self.evidence.forget()
            self.estimate = first
            return error
        if not 2 * (self.high - self.low) > self.gathered_over:  # evidence from a much wider bracket is too coarse
            self.evidence.forget()
        if self.evidence.weight == 0:
            self.gathered_over = self.high - self.low
        found = first
        if last > after(first):
            found = interpolate(self.target, (first, last), (float(inner[k - 1]), float(inner[k])), cdf.bin_noise)
        self.evidence.add(self._sensible(found, cdf), 0.0, 1 / (error**2 + (0.2 * mass) ** 2))
        self.estimate = min(max(self.evidence.quantile(1.0), self.low), self.high)
        return error

    def _sensible(self, found: float, cdf: NoisyCdf) -> float:
        """``found``, no farther into an open tail than the first edge that may lie beyond the quantile."""
        if not self.far_side or self.bulk is None:
            return found
        slack, farthest = cdf.error(self.target.q), math.inf if self._bulk_tied else NEAR[-1] * self._scale()
        past, short = cdf.share >= self.target.q - slack, cdf.share <= self.target.q + slack
        if self.far_side > 0:
            edge = float(cdf.edges[np.argmax(past)]) if past.any() else math.inf
            return min(found, max(self.low, min(edge, self.bulk[1] + farthest)))
        edge = float(cdf.edges[::-1][np.argmax(short[::-1])]) if short.any() else -math.inf
        return max(found, min(self.high, max(edge, self.bulk[0] - farthest)))

    def _tied(self, cdf: NoisyCdf, inside: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> bool:
        """Whether one number holds much of the bracket."""
        for i in inside[:-1].tolist():
            if cdf.edges[i + 1] == after(float(cdf.edges[i])):
                atom = float(cdf.share[i + 1] - cdf.share[i])
                if atom > 0.2 * self.mass and stands_out(atom, cdf):
                    return True
        return False

    @property
    def atom(self) -> bool:
        """Whether the bracket holds one number only."""
        return self.high == after(self.low)

    @property
    def proven(self) -> tuple[float, float]:
        """Numbers that are certainly below and above the quantile."""
        return (-math.inf, math.inf) if self.knots is None else self.knots.bracket(self.target.q, LOST)

    def interval(self, certainty: float) -> tuple[float, float]:
        """Bounds at ``certainty`` standard errors."""
        if self.knots is None:
            return self.low, self.high
        low, high = self.knots.bracket(self.target.q, certainty)
        return max(low, self.low), min(high, self.high)


def stands_out(mass: float, cdf: NoisyCdf, errors: float = 4.0) -> bool:
    """Whether a bin's share is more than noise."""
    return mass > errors * math.sqrt(max(mass, 0.0) / cdf.items + cdf.bin_noise**2)


def interpolate(target: Target, edges: tuple[float, float], shares: tuple[float, float], noise: float) -> float:
    """Where the quantile lies between two edges whose shares are known, if tails are exponential."""
    floor = min(max(noise, target.tail / 10), target.tail / 2)
    below, above = (min(max(share, floor), 1 - floor) for share in shares)
    rise = logit(above) - logit(below)
    part = (logit(target.q) - logit(below)) / rise if rise > 0 else 0.5
    return between(*edges, min(max(part, 0.0), 1.0))
