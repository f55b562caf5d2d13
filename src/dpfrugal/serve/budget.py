"""What a day may cost: the windows of a metric that its daily total covers, and their spends in the ledger.

The ledger has a spend for a block of windows (an hour's, unless ``reserve`` says otherwise) before the first of them
ends; the store counts which of them are used. Both are on disk before noise is drawn, so a crash wastes and never
overspends. Worked number: at ε = 0.5 per window of a minute, an hour's spend is ε = 30, of 720 a day.
"""

from dataclasses import dataclass
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

    def __init__(self, store: Store, ledger: Path | None, block: float) -> None:
        self._store, self._path, self._block = store, ledger, block

    def standing(self, metric: Metric, ends: float) -> Standing:
        """How much of the day of a window is spent."""
        day = day_of(ends)
        return Standing(day, self._store.spent_on(metric.name, day), metric.windows_per_day)

    def may_release(self, metric: Metric, ends: float) -> bool:
        """Whether the window that ends then is covered, by the day's total and by a spend in the ledger."""
        standing = self.standing(metric, ends)
        if standing.spent >= standing.most:
            return False
        return self._path is None or sum(self._store.granted(metric.name, standing.day).values()) > standing.spent

    def reserve(self, metric: Metric, ends: float) -> None:
        """Spend for the block of the window that ends then, if that was not done: in the ledger, then in the store."""
        if self._path is None:
            return
        day = day_of(ends)
        granted, spent = self._store.granted(metric.name, day), self._store.spent_on(metric.name, day)
        if sum(granted.values()) > spent:
            return
        length = max(self._block, metric.window)
        block = (ends - metric.window) // length * length
        rest = round((min(block + length, _midnight_after(ends)) - ends) / metric.window) + 1
        windows = min(rest, metric.windows_per_day - max(spent, sum(granted.values())))
        while windows > 0:
            if self._spent_in_ledger(metric, day, block, windows):
                self._store.grant(metric.name, day, block, windows)
                return
            windows -= 1 if windows == 1 else windows // 2  # the ledger has less left than the store knows of

    def _spent_in_ledger(self, metric: Metric, day: str, block: float, windows: int) -> bool:
        items = 1 if metric.person is None else metric.person.max_items
        assert self._path is not None  # noqa: S101 - the caller has looked
        ledger = Ledger(
            self._path, total=metric.total, max_items_per_person=items, adaptive=True, neighbours=metric.neighbours
        )
        try:
            ledger.spend(
                f"{metric.name} {day}",
                metric.cost_of(windows),
                by="dpfrugal serve",
                max_items_per_person=items,
                neighbours=metric.neighbours,
                asked={"metric": metric.base_name, "quantiles": list(metric.quantiles), "windows": windows}
                | {"window_seconds": metric.window, "from": utc(block)},
            )
        except BudgetExceeded:
            return False
        return True


def _midnight_after(ends: float) -> float:
    return ((ends - 0.001) // 86_400 + 1) * 86_400
