"""What a day may cost: the windows of a metric that its daily total covers, and their spends in the ledger.

The ledger has a spend for so many windows at once (an hour's, unless ``reserve`` says otherwise) before the first of
them ends; the store counts which of them are used. Both are on disk before noise is drawn, so a crash wastes and never
overspends. Worked number: at ε = 0.5 per window of a minute, an hour's spend is ε = 30, of 720 a day.

Settings may change within a day. Each window is recorded with its *terms*: its cost, and how many such windows a day
covers. 144 windows of which a day covers 1,440 are a tenth of the day, whatever the terms of the next one; and what the
ledger was charged on other terms pays for none.
"""

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpfrugal.budget.ledger import Ledger
from dpfrugal.errors import BudgetExceeded
from dpfrugal.serve.clock import day_of, utc
from dpfrugal.serve.settings import Metric
from dpfrugal.serve.store import Store


@dataclass(frozen=True)
class Standing:
    """A metric's day, all public: it depends on the clock and on crashes only."""

    day: str
    spent: int  # windows
    most: int


class Budget:
    """The budgets of all metrics. ``reserve`` may wait for the ledger; ``may_release`` and ``standing`` do not."""

    def __init__(self, store: Store, ledger: Path | None, at_once: float) -> None:
        self._store, self._path, self._at_once = store, ledger, at_once

    def standing(self, metric: Metric, ends: float) -> Standing:
        """How much of the day of a window is spent."""
        day = day_of(ends)
        own, others = self._spent(metric, day)
        return Standing(day, min(metric.windows_per_day, own + others), metric.windows_per_day)

    def _spent(self, metric: Metric, day: str) -> tuple[int, int]:
        """Windows of a day on the terms of today, and how many of these the windows on other terms come to."""
        spent = self._store.spent_on(metric.name, day)
        own = spent.pop(terms_of(metric), 0)
        share = sum(Fraction(windows, json.loads(terms)["windows_per_day"]) for terms, windows in spent.items())
        return own, math.ceil(share * metric.windows_per_day)

    def may_release(self, metric: Metric, ends: float) -> bool:
        """Whether the window that ends then is covered, by the day's total and by a spend in the ledger."""
        day = day_of(ends)
        own, others = self._spent(metric, day)
        if own + others >= metric.windows_per_day:
            return False
        return self._path is None or self._store.granted(metric.name, day, terms_of(metric)) > own

    def reserve(self, metric: Metric, ends: float, needed: int = 1) -> None:
        """Spend for the window that ends then and the next ones, unless so many are paid for: in the ledger first."""
        if self._path is None:
            return
        day, terms = day_of(ends), terms_of(metric)
        granted, (own, others) = self._store.granted(metric.name, day, terms), self._spent(metric, day)
        rest = round((_midnight_after(ends) - ends) / metric.window) + 1
        unused = max(0, granted - own)
        if unused >= min(needed, rest):
            return
        at_once = max(1, round(self._at_once / metric.window))
        windows = min(at_once, rest - unused, metric.windows_per_day - others - max(own, granted))
        while windows > 0:
            if self._spent_in_ledger(metric, ends, windows):
                self._store.grant(metric.name, day, terms, windows)
                return
            windows -= 1 if windows == 1 else windows // 2  # the ledger has less left than the store knows of

    def _spent_in_ledger(self, metric: Metric, ends: float, windows: int) -> bool:
        items = 1 if metric.person is None else metric.person.max_items
        assert self._path is not None  # noqa: S101 - the caller has looked
        ledger = Ledger(
            self._path, total=metric.total, max_items_per_person=items, adaptive=True, neighbours=metric.neighbours
        )
        try:
            ledger.spend(
                f"{metric.name} {day_of(ends)}",
                metric.cost_of(windows),
                by="dpfrugal serve",
                max_items_per_person=items,
                neighbours=metric.neighbours,
                asked={"metric": metric.base_name, "quantiles": list(metric.quantiles), "windows": windows}
                | {"window_seconds": metric.window, "from": utc(ends - metric.window)},
            )
        except BudgetExceeded:
            return False
        return True


def terms_of(metric: Metric) -> str:
    """What a window costs, for whom, and how many of them a day covers."""
    whose = {"neighbours": metric.neighbours, "max_items": None if metric.person is None else metric.person.max_items}
    return json.dumps({"cost": metric.cost.to_record(), "windows_per_day": metric.windows_per_day} | whose)


def _midnight_after(ends: float) -> float:
    return ((ends - 0.001) // 86_400 + 1) * 86_400
