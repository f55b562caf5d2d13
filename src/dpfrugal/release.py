"""A release: what leaves the private side, with the claim that covers it."""

from dataclasses import asdict, dataclass
from typing import Any

from dpfrugal.errors import ParameterError
from dpfrugal.grid import Grid
from dpfrugal.guarantees import NEIGHBOURS, Guarantee, Sensitivity

SHOWN_BETA = 0.05


@dataclass(frozen=True)
class Release:
    """Private quantiles, and how far noise may have moved them.

    Everything here is public: the values carry noise, the rest never depended on an item's value.
    """

    values: tuple[float, ...]
    quantiles: tuple[float, ...]
    guarantee: Guarantee
    items: int
    grid: Grid
    sensitivity: Sensitivity
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

    def alpha(self, beta: float, *, exact: bool = False) -> float:
        """α for each value in the data's units: |noise| of this release reaches it with probability β, both tails.

        It speaks of this release's noise only, not of how far the walk has come, nor of what earlier releases left
        in it. The formula is that of continuous noise; ``exact=True`` gives the smallest whole number of grid steps
        that the discrete noise reaches with probability at most β.
        """
        return self.guarantee.alpha(beta, self.sensitivity, exact=exact) * self.grid.step

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        return "item" if self.max_items_per_person == 1 else f"person of ≤ {self.max_items_per_person} items"

    def __str__(self) -> str:
        alpha = f"{self.alpha(SHOWN_BETA, exact=True):.2g}"
        shown = ", ".join(
            f"q={q:g}: {value:.{self.grid.decimals}f} ± {alpha}"
            for q, value in zip(self.quantiles, self.values, strict=True)
        )
        return f"{shown} (noise, {1 - SHOWN_BETA:.0%}), {self.guarantee} per {self.unit}, {self.items:,} items"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: one record per release; ``quantile`` and ``value`` are there where only one was asked for."""
        single = {"quantile": self.quantile, "value": self.value} if len(self.values) == 1 else {}
        return single | {
            "quantiles": list(self.quantiles),
            "values": list(self.values),
            "alpha": self.alpha(SHOWN_BETA),
            "alpha_exact": self.alpha(SHOWN_BETA, exact=True),
            "beta": SHOWN_BETA,
            "items": self.items,
            "guarantee": {type(self.guarantee).__name__: asdict(self.guarantee)},
            "neighbours": NEIGHBOURS,
            "unit": self.unit,
        }
