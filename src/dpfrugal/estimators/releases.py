"""Releases: what leaves the private side, with the claim that covers it.

Everything in a release is public: its values carry noise, the rest never depended on an item's value.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.display.answers import Answer
from dpfrugal.estimators.grid import Grid
from dpfrugal.parameters import probability
from dpfrugal.privacy.guarantees import NEIGHBOURS, Guarantee, Sensitivity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN_BETA = 0.05
Interval = tuple[float, float]
Number = TypeVar("Number", np.int64, np.float64)


def in_quantile_order(values: NDArray[Number], quantiles: tuple[float, ...]) -> NDArray[Number]:
    """The values of each row, reordered to increase with q: noise may have made them cross.

    This is post-processing, and no error grows by it. The last axis of ``values`` is that of ``quantiles``.
    """
    ranks = np.argsort(np.argsort(quantiles, kind="stable"))
    return np.ascontiguousarray(np.sort(values, axis=-1)[..., ranks])


@dataclass(frozen=True, kw_only=True)
class Release:
    """Private quantiles and their guarantee.

    >>> import dpfrugal as dpf
    >>> release = dpf.private_quantiles([7] * 1_000, [0.5, 0.9], dpf.PureDP(epsilon=1.0))
    >>> isinstance(release, dpf.Release), release.values, str(release.guarantee), release.items
    (True, (7.0, 7.0), 'ε=1', 1000)
    """

    values: tuple[float, ...]
    quantiles: tuple[float, ...]
    guarantee: Guarantee
    items: int
    max_items_per_person: int = 1

    @property
    def value(self) -> float:
        """The private quantile, where only one was asked for."""
        return self._only(self.values, "value", "values")

    @property
    def quantile(self) -> float:
        """q, where only one was asked for."""
        return self._only(self.quantiles, "quantile", "quantiles")

    def _only(self, several: tuple[float, ...], singular: str, plural: str) -> float:
        if len(several) != 1:
            raise ParameterError(f"{singular} is for one quantile; this release has {len(several)}: use {plural}.")
        return several[0]

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        return "item" if self.max_items_per_person == 1 else f"person of ≤ {self.max_items_per_person} items"

    def _claim(self) -> str:
        return f"{self.guarantee} per {self.unit}, {self.items:,} items"

    def answers(self) -> list[Answer]:
        """Internal: what notebooks and pictures show."""
        return [Answer(q, value, None, None) for q, value in zip(self.quantiles, self.values, strict=True)]

    def _how_sure(self) -> str:
        """What the ends that are shown bound."""
        return ""

    def _repr_html_(self) -> str:
        from dpfrugal.estimators.display.html import answers_html

        return answers_html(self.answers(), self._how_sure() + self._claim())

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw each value and its interval with matplotlib, on ``ax`` where it is given; the axes are returned."""
        from dpfrugal.estimators.display.plots import plot_answers

        return plot_answers(self.answers(), self._how_sure() + self._claim(), ax)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: one record per release; ``quantile`` and ``value`` are there where only one was asked for."""
        single = {"quantile": self.quantile, "value": self.value} if len(self.values) == 1 else {}
        return single | {
            "quantiles": list(self.quantiles),
            "values": list(self.values),
            "items": self.items,
            "guarantee": self.guarantee.to_record(),
            "neighbours": NEIGHBOURS,
            "unit": self.unit,
        }


@dataclass(frozen=True, kw_only=True)
class WalkRelease(Release):
    """Released by a walk on a grid; ``alpha`` bounds its noise.

    >>> import dpfrugal as dpf
    >>> walk = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=1.0), start=50)
    >>> walk.update_many(range(100))
    >>> release = walk.release()
    >>> round(release.alpha(0.05), 2)  # noise reaches this in 5% of releases
    5.99
    """

    grid: Grid
    sensitivity: Sensitivity

    def alpha(self, beta: float, *, exact: bool = False) -> float:
        """α for each value in the data's units: |noise| of this release reaches it with probability β, both tails.

        It bounds this release's noise only, not the bias before convergence, nor what the noise of earlier releases
        left behind. The formula is that of continuous noise; ``exact=True`` gives the smallest whole number of grid
        steps that the discrete noise reaches with probability at most β.
        """
        return self.guarantee.alpha(beta, self.sensitivity, exact=exact) / self.grid.scale

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        alpha = f"{self.alpha(SHOWN_BETA, exact=True):.2g}"
        shown = ", ".join(
            f"q={q:g}: {value:.{self.grid.decimals}f} ± {alpha}"
            for q, value in zip(self.quantiles, self.values, strict=True)
        )
        return f"{shown} (noise, {1 - SHOWN_BETA:.0%}), {self._claim()}"

    def answers(self) -> list[Answer]:
        """Internal: what notebooks and pictures show."""
        alpha = self.alpha(SHOWN_BETA, exact=True)
        return [
            Answer(q, each, each - alpha, each + alpha) for q, each in zip(self.quantiles, self.values, strict=True)
        ]

    def _how_sure(self) -> str:
        return f"ends: the noise of this release, {1 - SHOWN_BETA:.0%}; "

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with α."""
        return super().to_dict() | {
            "alpha": self.alpha(SHOWN_BETA),
            "alpha_exact": self.alpha(SHOWN_BETA, exact=True),
            "beta": SHOWN_BETA,
        }


@dataclass(frozen=True, kw_only=True)
class SegmentRelease(Release):
    """Released from noisy counts of segments, with a confidence interval for each true quantile.

    ``items`` are those of the segments it rests on. ``stable`` is False where segments disagree by more than chance
    explains: the stream is sorted, or drifts, and intervals are unbounded or wide. True is no proof of the opposite;
    how often either is wrong on real columns is in docs/accuracy.md.

    >>> import dpfrugal as dpf
    >>> running = dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=1.0))
    >>> running.update_many(k * 7_919 % 10_000 for k in range(50_000))
    >>> release = running.release(close=True)
    >>> low, high = release.interval()
    >>> low < 5_000 < high, release.stable
    (True, True)
    """

    stable: bool
    bounds: Callable[[float], tuple[Interval, ...]] = field(repr=False, compare=False)

    def intervals(self, confidence: float = 1 - SHOWN_BETA) -> tuple[Interval, ...]:
        """For each quantile, an interval that holds the true one with about this probability: sampling and noise."""
        return self.bounds(probability("confidence", confidence))

    def interval(self, confidence: float = 1 - SHOWN_BETA) -> tuple[Any, ...]:
        """The interval (lower, upper) where one quantile was asked for; one for each, in order, where several were."""
        intervals = self.intervals(confidence)
        return intervals[0] if len(intervals) == 1 else intervals

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"  # a value without its interval would look certain

    def __str__(self) -> str:
        shown = ", ".join(
            f"q={q:g}: {value:.6g} in [{low:.6g}, {high:.6g}]"
            for q, value, (low, high) in zip(self.quantiles, self.values, self.intervals(), strict=True)
        )
        return f"{shown} ({1 - SHOWN_BETA:.0%}), {self._claim()}"

    def _claim(self) -> str:
        return super()._claim() + ("" if self.stable else ", NOT STABLE: segments disagree")

    def _how_sure(self) -> str:
        return f"{1 - SHOWN_BETA:.0%} intervals; "

    def answers(self) -> list[Answer]:
        """Internal: what notebooks and pictures show."""
        found = zip(self.quantiles, self.values, self.intervals(), strict=True)
        return [Answer(q, value, *interval) for q, value, interval in found]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the intervals; an end that is not known is null."""
        ends = [
            [low if abs(low) < float("inf") else None, high if abs(high) < float("inf") else None]
            for low, high in self.intervals()
        ]
        return super().to_dict() | {"intervals": ends, "confidence": 1 - SHOWN_BETA, "stable": self.stable}
