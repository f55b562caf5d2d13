"""The planner of segments: private quantiles from noisy counts on disjoint segments of a stream. It sees no item.

The stream is cut into consecutive segments. The edges and the length of a segment are public: constants, or
functions of earlier *noisy* counts. A segment's items are counted between the edges, ``absorb`` adds discrete
noise to the counts and plans the next segment. One replaced item lies in one segment and moves its histogram by
at most 2 in L1 (2 in squared L2), however many edges it has; so every segment, and by parallel composition the whole
transcript, has the promised guarantee, for all quantiles together.

Worked number: of a million items at ε = 1, the median's rank is off by 0.0005 and that of p99 by 0.00011; those of
the exact sample quantiles by 0.0005 and 0.0001 (√(q(1-q)/n)). Measured: benchmarks/accuracy.py.
"""

import bisect
import copy
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.person_moves import Exposure, exposed
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.releases import in_quantile_order
from dpfrugal.estimators.segments.evidence import Target
from dpfrugal.estimators.segments.locate import HUGE, SHORTEST
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf
from dpfrugal.estimators.segments.one_scan import FEWEST_EDGES, MOST_EDGES, MOST_NOISE
from dpfrugal.estimators.segments.search import Search
from dpfrugal.parameters import positive, probability
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from dpfrugal.privacy.noise import add_noise
from dpfrugal.storage.json_values import floats_of, integer_of, list_of, packed

LARGEST_SCALE = 2.0**53  # of noise; no segment has as many items
FARTHEST = 2**80  # no noisy count is as large
NEAREST = 1e-9  # no quantile is sought closer to 0 or 1: no stream is long enough to tell


def noise_variance(guarantee: Guarantee, sensitivity: Sensitivity) -> float:
    """The variance of the integer noise of one count: 7.8354 for ε = 1 and a histogram."""
    if guarantee.noise_scale(sensitivity) > LARGEST_SCALE:
        raise ParameterError(f"The guarantee {guarantee} is too strong: its noise would exceed any count.")
    return guarantee.noise_variance(sensitivity)


def segment_exposure(guarantee: Guarantee, histogram: Sensitivity, number: Sensitivity) -> Exposure | None:
    """What one person can move: an item leaves a bin and comes to another, or moves one number by 1 (Theorem 8)."""
    most = number.l1
    bins = ((items, histogram, items, 1) for items in range(1, most + 1))
    numbers = ((2 * items, number, items, 1) for items in range(1, most + 1))
    return exposed(guarantee, 2 * most, itertools.chain(bins, numbers))


class SegmentPlanner:
    """A state machine: ``edges`` and ``segment_length`` out, ``absorb(counts)`` in, ``estimates`` at any time."""

    items: int
    segment_length: int
    edges: NDArray[np.float64]

    def __init__(
        self,
        quantiles: Sequence[float],
        guarantee: Guarantee,
        *,
        max_items_per_person: int = 1,
        start: float = 0.0,
        expected_items: int | None = None,
    ) -> None:
        for q in quantiles:
            if not NEAREST <= probability("quantile", q) <= 1 - NEAREST:
                raise ParameterError(f"quantile must be at least {NEAREST:g} away from 0 and from 1; {q} is not.")
        if not abs(start) <= HUGE:
            raise ParameterError(f"start must be a number of at most 2^1000 in size; {start} is not.")
        most = max_items_per_person
        self._guarantee = guarantee
        self._histogram = Sensitivity(l1=2 * most, l2_squared=2 * most**2)
        self._number = Sensitivity.of(1) if most == 1 else Sensitivity(l1=most, l2_squared=most**2)
        self._bin_variance = noise_variance(guarantee, self._histogram)
        self._number_variance = noise_variance(guarantee, self._number)
        self._longest = math.inf
        if expected_items is not None:
            self._longest = min(self._longest, positive("expected_items", expected_items) / 16)
        self._searches = [Search(Target(probability("quantile", q)), float(start)) for q in quantiles]
        self.items = 0
        self._plan([search.edges() for search in self._searches])

    def _plan(self, edges: list[list[float]]) -> None:
        """Edges and length of the next segment, from what is public: the edges that each search asks for."""
        wanted = sorted({edge + 0.0 for asked in edges for edge in asked})  # + 0.0: one zero
        self.edges = np.array(wanted, dtype=np.float64)
        lengths, bins = [], len(wanted) + 1
        for search in self._searches:
            below = min(bisect.bisect_left(wanted, search.estimate) + 1, bins - 1)
            variance = self._bin_variance * below * (bins - below) / bins if bins > 2 else self._number_variance
            lengths.append(search.length(self.items, variance, self._bin_variance))
        longest = self._longest * (4 if any(search.locating for search in self._searches) else 1)
        self.segment_length = math.ceil(max(SHORTEST, min(max(lengths), longest)))
        self._pending: tuple[list[int], int, int] | None = None

    def expect(self, items: int) -> None:
        """Plan the open segment for so many items at once, with as many edges as their noise allows.

        Noisy counts that wait for more (see ``absorb``) keep their edges.
        """
        if self._pending is None:
            for search in self._searches:
                bins_allowed = MOST_NOISE * 4 * items * search.target.variance / max(self._bin_variance, 1e-9)
                bins = min(bins_allowed, MOST_EDGES) / len(self._searches)
                search.expect(items, max(FEWEST_EDGES, int(bins)))
            self._plan([search.edges() for search in self._searches])
        self.segment_length = max(SHORTEST, items)

    def absorb(self, counts: Sequence[int] | NDArray[np.int64], *, missing: int | None = None) -> None:
        """Add noise to one segment's counts, learn from them, and plan the next segment.

        ``missing`` items lie in no bin; where there may be any, their number is one more count of the histogram.

        A segment that was closed early while locating is too short to plan by: its noisy counts are kept, the
        edges stay, and the next counts are added to them. Estimates use them meanwhile.
        """
        raw = np.asarray(counts).tolist()
        if len(raw) != self.edges.size + 1:
            raise ParameterError(f"counts must have one number per bin: {self.edges.size + 1}, not {len(raw)}.")
        items = sum(raw) + (missing or 0)  # public: the number of items in the segment
        if items <= 0:
            raise ParameterError("counts must be of at least one item.")
        self.items += items
        if self.edges.size == 1 and missing is None:
            noisy = add_noise(raw[:1], self._guarantee, self._number)
            cdf = NoisyCdf.of_one(self.edges, noisy[0], items, self._number_variance)
            self._plan(self._learn(self._searches, cdf))
            return
        noisy = add_noise(raw if missing is None else [*raw, missing], self._guarantee, self._histogram)
        if missing is not None:
            items = max(1, items - max(0, noisy.pop()))
        parts = 1
        if self._pending is not None:
            earlier, earlier_items, parts = self._pending
            noisy, items, parts = [a + b for a, b in zip(noisy, earlier, strict=True)], items + earlier_items, parts + 1
        if items < self.segment_length / 2 and any(search.locating for search in self._searches):
            self._pending = noisy, items, parts
        else:
            cdf = NoisyCdf.of_bins(self.edges, noisy, items, parts * self._bin_variance)
            self._plan(self._learn(self._searches, cdf))

    def _learn(self, searches: list[Search], cdf: NoisyCdf) -> list[list[float]]:
        """Let every search learn, and return the edges that it asks for next.

        Noise may be so extreme that a search cannot continue: it restarts, and no error says so.
        """
        edges = []
        for k, search in enumerate(searches):
            try:
                search.absorb(cdf)
                edges.append(search.edges())
                if search.locating:
                    search.length(self.items, self._bin_variance, self._bin_variance)
            except (ArithmeticError, LookupError, ValueError):
                searches[k] = Search(search.target, search.start)
                edges[k:] = [searches[k].edges()]
        return edges

    def __deepcopy__(self, memo: dict[int, Any]) -> "SegmentPlanner":
        """An independent copy. All but the searches is replaced, never changed in place."""
        copied = copy.copy(self)
        copied._searches = copy.deepcopy(self._searches, memo)
        return copied

    def _shown(self) -> list[Search]:
        """The searches, after the noisy counts of segments that were closed early."""
        if self._pending is None:
            return self._searches
        (noisy, items, parts), searches = self._pending, copy.deepcopy(self._searches)
        self._learn(searches, NoisyCdf.of_bins(self.edges, noisy, items, parts * self._bin_variance))
        return searches

    def to_state(self) -> dict[str, Any]:
        """For a checkpoint: everything that later edges, lengths and estimates depend on. It is public."""
        return {
            "items": self.items,
            "searches": [search.to_state() for search in self._searches],
            "edges": packed(self.edges),
            "segment_length": self.segment_length,
            "pending": packed(self._pending),
        }

    def restore(self, state: Any) -> None:
        """Continue from a state that ``to_state`` gave of a planner with the same parameters."""
        self.items = integer_of(state["items"])
        self._searches = [Search.of_state(part) for part in list_of(state["searches"], len(self._searches))]
        self._plan([search.edges() for search in self._searches])
        self.segment_length = integer_of(state["segment_length"], SHORTEST)
        self.edges = floats_of(state["edges"])
        if not (self.edges.size and np.isfinite(self.edges).all() and (np.diff(self.edges) > 0).all()):
            raise ValueError("edges are numbers that rise")
        if state["pending"] is not None:
            counts, items, parts = list_of(state["pending"], 3)
            noisy = [integer_of(count, -FARTHEST, FARTHEST) for count in list_of(counts, self.edges.size + 1)]
            self._pending = noisy, integer_of(items, 1), integer_of(parts, 1)

    @property
    def sensitivities(self) -> tuple[Sensitivity, Sensitivity]:
        """What a neighbour may move in the segment that holds it: a histogram, or one number."""
        return self._histogram, self._number

    @property
    def exposure(self) -> Exposure | None:
        """What one person can move in all segments together, and the noise on it."""
        return segment_exposure(self._guarantee, *self.sensitivities)

    @property
    def noisy_counts(self) -> tuple[int, ...]:
        """The noisy counts of segments that were closed early, which wait to be added to the next ones. Public."""
        return () if self._pending is None else tuple(self._pending[0])

    @property
    def estimates(self) -> tuple[float, ...]:
        """One number per quantile, in their order; a larger quantile never has a smaller estimate."""
        return self._ordered([search.estimate for search in self._shown()])

    def intervals(self, confidence: float) -> tuple[tuple[float, float], ...]:
        """Bounds of each true quantile at ``confidence``: sampling and noise. Infinite where nothing is known."""
        confidence = probability("confidence", confidence)
        bounds = [search.interval(confidence) for search in self._shown()]
        lows, highs = self._ordered([low for low, _ in bounds]), self._ordered([high for _, high in bounds])
        return tuple(zip(lows, highs, strict=True))

    @property
    def stable(self) -> bool:
        """Whether consecutive segments agreed, as far as their noisy counts can tell."""
        return all(search.agreement.stable for search in self._shown())

    def _ordered(self, values: list[float]) -> tuple[float, ...]:
        quantiles = tuple(search.target.q for search in self._searches)
        return tuple(in_quantile_order(np.array(values, dtype=np.float64), quantiles).tolist())
