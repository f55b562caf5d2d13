"""``WindowQuantile``: quantiles of a stream, period by period, each as a table's.

>>> import numpy as np, dpfrugal as dpf
>>> w = WindowQuantile([0.5, 0.99], dpf.PureDP(epsilon=1.0))
>>> for hour in (1, 2):
...     w.update_many(np.random.default_rng(hour).normal(100.0 * hour, 5.0, 50_000))
...     r = w.release()
...     print(r.window, r.items, abs(r.values[0] - 100.0 * hour) < 0.5)
1 50000 True
2 50000 True
"""

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.estimators import base
from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind
from dpfrugal.estimators.table.choices.answers import ranks_of
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.private_quantiles import draw_release
from dpfrugal.estimators.table.rows.columns import SORTED, Column
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.estimators.table.rows.selected_rows import SelectedRows
from dpfrugal.estimators.walk.frugal import admitted
from dpfrugal.estimators.windows.held_items import HeldItems
from dpfrugal.estimators.windows.rehearsal import rehearse
from dpfrugal.estimators.windows.typed_items import TIMES, Time
from dpfrugal.estimators.windows.window_estimator import WindowEstimator
from dpfrugal.estimators.windows.window_items import batch_of
from dpfrugal.estimators.windows.window_options import recorded_options
from dpfrugal.estimators.windows.window_plan import WindowPlan
from dpfrugal.estimators.windows.window_release import WindowRelease, window_release
from dpfrugal.parameters import NanPolicy, Neighbours
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.storage.checkpoint_file import Contents

HELD: Final = 1 << 22
MOST_PENDING: Final = 1 << 10
SINGLE: Final = (None, FLOATS, INTEGERS)  # types to which a number may be added


class WindowQuantile(WindowEstimator):
    """Private quantiles of each window of a stream: of the items since the last release, which are then forgotten.

    The guarantee (Theorem 20) is for neighbours that differ by one replaced item or, with
    ``neighbours="add-remove"``, by one item more; however many windows are released, as an item is in one of them. Of a
    person it covers at most ``max_items_per_person`` items per window, which ``person``, ids given with the items,
    enforces; a person who is there in many windows has one guarantee for each. With ``windows=24`` the guarantee covers
    a person in 24 windows together, and a ledger is charged again after every 24; without it, once for ever.

    At most ``hold`` items are held, beyond that a uniform sample of so many (None: all). The other options are those of
    ``private_quantiles``. A window without items is released like any other. It may be used from several threads.

    >>> from dpfrugal import PureDP
    >>> w = WindowQuantile(0.9, PureDP(epsilon=1.0))
    >>> w.update_many([12.5] * 1_000)
    >>> w.release().value, w.items_in_window
    (12.5, 0)
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        guarantee: Guarantee,
        *,
        hold: int | None = HELD,
        neighbours: Neighbours = "replace",
        intervals: bool = True,
        confidence: float = 0.95,
        interval_of: IntervalOf = "population",
        low: float | None = None,
        high: float | None = None,
        decimals: int | None = None,
        max_items_per_person: int = 1,
        windows: int | None = None,
        nan_policy: NanPolicy = "raise",
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._pending: list[int | float] = []
        per_person = parameters.max_items_per_person(max_items_per_person)
        asked = WindowPlan.of(
            quantile, guarantee, rows_per_person=per_person, hold=hold, sampled="table",
            neighbours=neighbours, intervals=intervals, confidence=confidence, interval_of=interval_of,
            windows=windows, nan_policy=nan_policy, hints=(low, high, decimals),
        )  # fmt: skip
        super().__init__(asked, per_person, ledger, dataset, guarantee)

    @property
    def max_items_per_person(self) -> int:
        """How many items of one person in a window the guarantee covers."""
        return self._max_items_per_person

    def update(self, item: float | Time, person: Any = None) -> None:
        """Take in one item."""
        if person is not None or self._with_persons:
            self.update_many([item], None if person is None else [person])
            return
        if self._owner is not None or self._forks != base.forks:
            self._refuse_copies_and_loops()
        number: Any = item
        if (kind := type(item)) is not int and (kind is not float or item != item):
            if item is None or isinstance(item, TIMES):
                self.update_many([item])
                return
            number = admitted(item, self._asked.nan_policy)
        if len(self._pending) >= MOST_PENDING:  # first: what is refused here must not take the item in
            with self._alone():
                self._settle()
        with self._lock:
            if self._kind in SINGLE:
                self._pending.append(number)
                return
        self.update_many([item])

    def update_many(self, items: Any, person: Any = None) -> None:
        """Take in a batch: all of it, or, where any of it is refused, nothing. ``person`` has an id for each item."""
        with self._alone():
            self._settle()
            batch = batch_of(items, self._asked.nan_policy)
            self._asked.kind_with(batch, self._kind)  # refuses another type before anything is taken in
            self._take(batch, self._persons(person, batch.codes.size))

    def release(self) -> WindowRelease:
        """The quantiles of the items since the last release; they are forgotten, and the next window begins."""
        with self._alone():
            self._settle()
            kind = self._kind or FLOATS
            bounds = self._asked.base(kind)
            rows = self._ordered(kind, bounds)
            rows.prepare(ranks_of(self._planned, rows.rows))
            rehearse(self._planned, None)
            window, number = self._end_window()
            with self._account.owning_up():
                release = draw_release(rows, number, self._planned, bounds, kind, self._asked.quantiles)
            return window_release(release, window, has_persons=bool(self._with_persons))

    def _ordered(self, kind: Kind, bounds: Base) -> OrderStatistics:
        """The items that count, by rank; of each person at most so many, chosen by priority."""
        arrays = self._held.arrays()
        codes = arrays["codes"]
        if self._with_persons:
            rows = KeyedRows("raise", self._threads)
            everyone = np.zeros(codes.size, dtype=np.int32)
            rows.add_coded(kind, codes, everyone, arrays["who"], arrays["priorities"].astype(np.uint64))
            rows.keep_chosen(self._max_items_per_person, None)
            codes, _ = rows.by_group(np.zeros(1, dtype=np.int32), 1, kind)
        if codes.size <= SORTED:
            return SortedRows(codes, bounds.low, bounds.high)
        column = Column(kind, codes.size, codes.size, codes.dtype, None, lambda: iter([codes]))
        return SelectedRows(column, bounds.low, bounds.high)

    def _empty(self) -> HeldItems:
        if not self._with_persons:
            return HeldItems(self._asked.hold)
        return HeldItems(self._asked.hold, ("who",), per_person=self._max_items_per_person)

    def _begin(self) -> None:
        super()._begin()
        self._pending = []

    def _number(self) -> int:
        return self._window_items + len(self._pending)

    def _settle(self) -> None:
        if self._pending:
            batch = batch_of(self._pending, "omit")  # each was admitted when it came
            if self._with_persons:
                raise AssertionError("items with persons do not wait")
            self._persons(None, batch.codes.size)
            self._take(batch)
            self._pending = []

    def _parameters(self) -> dict[str, Any]:
        return super()._parameters() | {"max_items_per_person": self._max_items_per_person}

    def _contents(self) -> Contents:
        self._settle()
        state, arrays = self._window_contents()
        return Contents(type(self).__name__, self._parameters(), state, arrays=arrays)

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        estimator = cls(**recorded_options(contents.parameters), hold=contents.parameters["hold"])
        estimator._restore(contents)
        return estimator
