"""Estimators with one mistake each, for an audit that has never failed proves nothing. Never use them."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.audit.broken_tables import BROKEN_TABLES
from dpfrugal.audit.cases import keyed_cases, segment_cases, walk_cases
from dpfrugal.audit.neighbour_search import Case
from dpfrugal.estimators.releases import WalkRelease
from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U, sensitivity_of
from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity, of_noise


def quieter(guarantee: Guarantee, sensitivity: Sensitivity, share: float) -> Guarantee:
    """A weaker guarantee: its noise is that share of the noise of the one promised."""
    scale = share * guarantee.noise_scale(sensitivity)
    return of_noise(guarantee.noise, scale, sensitivity)


class FromFirstItem(DPFrugal1U):
    """Starts at the first item, as the authors' program does."""

    def __init__(self, quantile: float, guarantee: Guarantee, **options: Any) -> None:
        super().__init__(quantile, guarantee, **options)
        self._options = options

    def update_many(self, items: Any) -> None:
        """Move the start, then take the batch in."""
        if not self.items and not math.isnan(items[0]):
            self._walk = Frugal1U(self.quantiles, start=items[0], **self._options)
        super().update_many(items)


class WithoutReAnchoring(DPFrugal1U):
    """Releases, and goes on from the raw state."""

    def _re_anchor(self, points: NDArray[np.int64]) -> None:
        self._anchor = points, self.items


class QuietWalk(DPFrugal1U):
    """Adds noise at 0.7 of its scale."""

    def __init__(self, quantile: float, guarantee: Guarantee, **options: Any) -> None:
        super().__init__(quantile, quieter(guarantee, sensitivity_of(1, 1), 0.7), **options)


class SkipsMissing(DPFrugal1U):
    """Uses up no coin for an omitted item, so the later coins depend on the data."""

    def update_many(self, items: Iterable[float] | Any) -> None:
        """Leave out what is missing before any coin is drawn."""
        super().update_many([item for item in items if not math.isnan(item)])


class _AlwaysFresh(DPFrugal1U):
    def release(self) -> WalkRelease:
        return self._fresh_release()


class PerKeyCoins:
    """One walk per key, each with coins of its own: a row that changes its key moves all later coins of both."""

    def __init__(self, quantile: float, guarantee: Guarantee, *, keys: list[str], **options: Any) -> None:
        self._walks = {key: _AlwaysFresh(quantile, guarantee, **options) for key in keys}

    def update_many(self, keys: list[str], values: list[float]) -> None:
        """Each row to the walk of its key."""
        for key, value in zip(keys, values, strict=True):
            if key in self._walks:
                self._walks[key].update(value)

    def release(self) -> Any:
        """A table, as the keyed estimator's."""
        import pyarrow as pa

        return pa.table({"value": [walk.release().value for walk in self._walks.values()]})


class QuietSegments(PrivateQuantile):
    """Adds noise at half its scale."""

    def __init__(self, quantile: float, guarantee: Guarantee, **options: Any) -> None:
        super().__init__(quantile, quieter(guarantee, Sensitivity(l1=2, l2_squared=2), 0.5), **options)


class _CountsAgain(SegmentPlanner):
    before: Any = 0

    def absorb(self, counts: Any, **options: Any) -> None:
        both = np.asarray(counts) + (self.before if np.size(self.before) == np.size(counts) else 0)
        self.before = np.asarray(counts)
        super().absorb(both, **options)


class CountsTwice(PrivateQuantile):
    """Counts the items of a segment again in the next one."""

    def __init__(self, quantile: float, guarantee: Guarantee, **options: Any) -> None:
        super().__init__(quantile, guarantee, **options)
        self._planner.__class__ = _CountsAgain


class _MovesEdges(SegmentPlanner):
    def absorb(self, counts: Any, **options: Any) -> None:
        super().absorb(counts, **options)
        self.edges = self.edges + 1e3 * float(np.argmax(counts))


class EdgesFromRawCounts(PrivateQuantile):
    """Moves the edges by what was counted: the edges are public, so the raw count is too."""

    def __init__(self, quantile: float, guarantee: Guarantee, **options: Any) -> None:
        super().__init__(quantile, guarantee, **options)
        self._planner.__class__ = _MovesEdges


# What the command line can be asked to audit, by name.
BROKEN: dict[str, Callable[[], list[Case]]] = {
    "first-item": lambda: walk_cases(FromFirstItem),
    "no-re-anchoring": lambda: walk_cases(WithoutReAnchoring),
    "quiet-walk": lambda: walk_cases(QuietWalk),
    "skipped-coins": lambda: walk_cases(SkipsMissing),
    "per-key-coins": lambda: keyed_cases(PerKeyCoins),
    "quiet-segments": lambda: segment_cases(QuietSegments)[:1],
    "counted-twice": lambda: segment_cases(CountsTwice)[:1],
    "raw-edges": lambda: segment_cases(EdgesFromRawCounts)[:1],
    **BROKEN_TABLES,
}
