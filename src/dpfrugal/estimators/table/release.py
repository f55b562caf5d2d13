"""``TableRelease``: private quantiles of a table, and what is public about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfrugal.estimators.releases import SHOWN_BETA, Release
from dpfrugal.estimators.table.levels import Neighbours, Plan
from dpfrugal.parameters import probability


@dataclass(frozen=True, kw_only=True)
class TableRelease(Release):
    """Released from a table, in the type of its column; values rise with q.

    ``items``, the number of rows, is None under ``neighbours="add-remove"``, which keeps it private.
    """

    values: tuple[Any, ...]
    items: Any
    neighbours: Neighbours
    plan: Plan

    @property
    def value(self) -> Any:
        """The private quantile, where only one was asked for."""
        return self._only(self.values, "value", "values")

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        return "row" if self.max_items_per_person == 1 else f"person of ≤ {self.max_items_per_person} rows"

    def rows_off(self, beta: float = SHOWN_BETA) -> tuple[float, ...]:
        """For each quantile, by how many rows its rank may be off: more with probability at most ``beta``.

        It holds where possible answers lie about as densely on one side of the quantile as on the other. A table with
        fewer rows beyond a quantile than some multiple of this is too small for it.
        """
        bounds = self.plan.rows_off(probability("beta", beta))
        order = sorted(self.quantiles)
        return tuple(bounds[order.index(q)] for q in self.quantiles)

    def __str__(self) -> str:
        shown = ", ".join(
            f"q={q:g}: {value:.6g} ± {off:.0f} rows"
            if isinstance(value, float)
            else f"q={q:g}: {value} ± {off:.0f} rows"
            for q, value, off in zip(self.quantiles, self.values, self.rows_off(), strict=True)
        )
        changed = "replaced" if self.neighbours == "replace" else "added or removed"
        rows = "" if self.items is None else f", {self.items:,} rows"
        return f"{shown} ({1 - SHOWN_BETA:.0%}), {self.guarantee} per {self.unit} {changed}{rows}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON; dates, timestamps, durations and decimals are strings, and the number of rows may be null."""
        record = super().to_dict()
        values = [_plain(value) for value in self.values]
        single = {"value": values[0]} if len(values) == 1 else {}
        off = {"rows_off": list(self.rows_off()), "beta": SHOWN_BETA}
        neighbours = "replace-one" if self.neighbours == "replace" else "add-or-remove-one"
        return record | single | {"values": values, "neighbours": neighbours} | off


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, np.generic) else str(value)
