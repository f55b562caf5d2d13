"""PrivateQuantile: quantiles as accurate as the exact sample quantiles, with no bounds to guess, in a few counters.

The stream is cut into consecutive segments of public length. Of a segment only counts between public edges are kept;
discrete noise makes them private, and the noisy counts determine the next edges (``planner``). An item is counted in
one segment, so the whole transcript keeps the one guarantee (docs/proofs.md, Theorems 8 and 9), for all quantiles
together: an item falls into one bin, however many quantiles there are.

Worked number: a million items at ε = 1: the private median's rank is off by 0.0005, as is that of the exact sample
median; the state is under a kilobyte.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import ItemError, ParameterError
from dpfrugal.estimators import base
from dpfrugal.estimators.base import PrivateEstimator
from dpfrugal.estimators.releases import SegmentRelease
from dpfrugal.estimators.segments.counting import counts_of
from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.estimators.walk.frugal import admitted
from dpfrugal.inputs.numbers import Chunk, chunks
from dpfrugal.parameters import NanPolicy, positive
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee
from dpfrugal.privacy.noise import in_lots
from dpfrugal.storage import json_values
from dpfrugal.storage.checkpoint_file import Contents

MOST_PENDING: Final = 1 << 10
MOST_ITEMS: Final = 1 << 53  # in one segment


class PrivateQuantile(PrivateEstimator):
    """Private quantiles of a stream: one q or several, a guarantee, and nothing else is needed.

    The guarantee (Theorem 9) is for neighbours that differ by one replaced item, or by the at most
    ``max_items_per_person`` items of one person. ``start`` and ``expected_items`` are public hints, never needed;
    A stream that changes is for ``WindowQuantile``. ``release`` costs nothing, as often as it is asked.
    With a ``ledger`` the guarantee is spent on ``dataset``, once, before the first segment takes noise. It may be used
    from several threads.

    >>> import numpy as np
    >>> from dpfrugal import PureDP
    >>> p = PrivateQuantile([0.5, 0.9], PureDP(epsilon=1.0))
    >>> p.update_many(np.random.default_rng(1).normal(1e6, 3.0, 200_000))
    >>> r = p.release()
    >>> abs(r.values[0] - 1e6) < 0.5, r.values[0] < r.values[1]
    (True, True)
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        guarantee: Guarantee,
        *,
        max_items_per_person: int = 1,
        start: float = 0.0,
        expected_items: int | None = None,
        half_life: None = None,
        nan_policy: NanPolicy = "raise",
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._quantiles = parameters.quantiles(quantile)
        self._guarantee = checked_guarantee(guarantee)
        self._max_items_per_person = parameters.max_items_per_person(max_items_per_person)
        self._nan_policy = parameters.nan_policy(nan_policy)
        parameters.number("start", start)
        if half_life is not None:
            raise ParameterError(
                "half_life was retired: on a stream with a rhythm it was off by 0.15 in rank. Use WindowQuantile, "
                "which shows each period by itself."
            )
        self._hints = (start, expected_items)
        self._planner = SegmentPlanner(
            self._quantiles,
            guarantee,
            max_items_per_person=self._max_items_per_person,
            start=start,
            expected_items=expected_items,
        )
        super().__init__(
            Account.opened(
                *(ledger, dataset, guarantee, *self._planner.sensitivities),
                by=type(self).__name__,
                max_items_per_person=self._max_items_per_person,
                exposure=self._planner.exposure,
                asked={"quantiles": list(self._quantiles)},
            )
        )
        self._counts = self._empty_counts(self._planner)
        self._filled = 0  # items in the open segment
        self._pending: list[int | float] = []
        self._last: SegmentRelease | None = None

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are estimated, in the caller's order."""
        return self._quantiles

    @property
    def items(self) -> int:
        """How many items have been taken in, omitted ones included."""
        return self._planner.items + self._filled + len(self._pending)

    @property
    def noisy_counts(self) -> tuple[int, ...]:
        """Internal: public counts that wait to be added to those of the next segment."""
        return self._planner.noisy_counts

    @property
    def edges(self) -> NDArray[np.float64]:
        """The public edges of the open segment, for whoever counts elsewhere; see ``absorb``."""
        self._refuse_copies_and_loops()
        return self._planner.edges.copy()

    @property
    def segment_length(self) -> int:
        """The public number of items that the open segment wants."""
        self._refuse_copies_and_loops()
        return self._planner.segment_length

    def update(self, item: float) -> None:
        """Take in one item."""
        if self._owner is not None or self._forks != base.forks:
            self._refuse_copies_and_loops()
        if (kind := type(item)) is not int and (kind is not float or item != item):
            item = admitted(item, self._nan_policy)
        if len(self._pending) >= MOST_PENDING:  # first: what is refused here must not take the item in
            with self._alone():
                self._settle()
        with self._lock:
            self._pending.append(item)

    def update_many(self, items: Iterable[float] | Any) -> None:
        """Take in a batch: all of it, or, where any of it is refused, nothing."""
        with self._alone():
            self._settle()
            self._take(chunks(items, unsigned=True))

    def expect(self, items: int) -> None:
        """Plan the open segment for ``items`` items that an engine will count in one scan: more edges, one segment.

        Items that are in the open segment already close it as it is.
        """
        if not positive("items", items) < MOST_ITEMS:
            raise ParameterError(f"items must be less than 2^53; {items} is not.")
        with self._alone():
            self._settle()
            if self._filled:
                self._close(self._counts)
            planner = copy.deepcopy(self._planner)
            planner.expect(math.ceil(items))
            self._planner, self._counts = planner, self._empty_counts(planner)

    def absorb(self, counts: Sequence[int] | NDArray[np.int64], *, missing: int = 0, whole: bool = True) -> None:
        """Take in the counts of other machines' items between ``edges``, as one whole segment.

        Counts of the same edges from several machines may be added up before. They are raw: noise is added here. Items
        of this estimator's own open segment are counted in with them. ``missing`` items lie in no bin. With
        ``whole=False`` the segment stays open until it has its length.
        """
        added = np.asarray(counts)
        with self._alone():
            self._settle()
            if added.shape != (self._planner.edges.size + 1,) or added.dtype.kind not in "iu":
                raise ItemError(f"counts must be {self._planner.edges.size + 1} integers: one per bin of the edges.")
            number = sum(added.tolist()) + missing
            if (added < 0).any() or missing < 0 or not 0 < number < MOST_ITEMS:
                raise ItemError("counts must be of at least one item and at most 2^53, and none below 0.")
            if missing and self._nan_policy == "raise":
                raise ItemError('The items have NaN or nulls; clean the data, or use nan_policy="omit".')
            counts = self._counts.copy()
            counts[:-1] += added.astype(np.int64)
            counts[-1] += missing
            if whole or self._filled + number >= self._planner.segment_length:
                self._close(counts)
            else:
                self._counts, self._filled = counts, self._filled + number

    def release(self, *, close: bool = False) -> SegmentRelease:
        """The estimates from all completed segments: public already, so it costs nothing to show them again.

        The open segment is closed early only if asked for, or if nothing else is there to show.
        """
        with self._alone():
            self._settle()
            if not self.items:
                raise ItemError("There is nothing to release: no item has come yet.")
            if self._filled and (close or not self._planner.items):
                self._close(self._counts)
            if self._last is None or self._last.items < self._planner.items:
                planner = copy.deepcopy(self._planner)  # it knows noisy counts only
                self._last = SegmentRelease(
                    values=planner.estimates,
                    quantiles=self._quantiles,
                    guarantee=self._guarantee,
                    items=planner.items,
                    max_items_per_person=self._max_items_per_person,
                    stable=planner.stable,
                    bounds=planner.intervals,
                )
            return self._last

    def _contents(self) -> Contents:
        parameters = {
            "quantiles": json_values.packed(self._quantiles),
            "guarantee": self._guarantee.to_record(),
            "max_items_per_person": self._max_items_per_person,
            "nan_policy": self._nan_policy,
            "hints": json_values.packed([None if hint is None else float(hint) for hint in self._hints]),
        }
        state = {
            "machine": self._planner.to_state(),
            "counts": self._counts.tolist(),
            "filled": self._filled,
            "pending": [json_values.of_item(item) for item in self._pending],
        }
        return Contents(type(self).__name__, parameters, state)

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        parameters, state = contents.parameters, contents.state
        hints = [None if hint is None else json_values.float_of(hint) for hint in parameters["hints"]]
        start, expected_items, *retired = hints
        if retired not in ([], [None]):
            raise ValueError("half_life, which it was made with, is retired")
        estimator = cls(
            json_values.floats_of(parameters["quantiles"]).tolist(),
            Guarantee.of_record(parameters["guarantee"]),
            max_items_per_person=parameters["max_items_per_person"],
            start=start or 0.0,
            expected_items=expected_items,  # type: ignore[arg-type]
            nan_policy=parameters["nan_policy"],
        )
        estimator._planner.restore(state["machine"])
        counts = json_values.list_of(state["counts"], estimator._planner.edges.size + 2)
        estimator._counts = np.array([json_values.integer_of(count) for count in counts], dtype=np.int64)
        estimator._filled = json_values.integer_of(state["filled"], 0, MOST_ITEMS)
        estimator._pending = [json_values.item_of(item) for item in json_values.list_of(state["pending"])]
        if sum(counts) != estimator._filled:
            raise ValueError("the counts are not those of the items")
        return estimator

    def _forget(self) -> None:
        self._counts, self._filled, self._pending = self._empty_counts(self._planner), 0, []

    def __repr__(self) -> str:
        shown = self.quantiles[0] if len(self.quantiles) == 1 else list(self.quantiles)
        return f"{type(self).__name__}({shown}, {self._guarantee}, items={self.items})"

    def _empty_counts(self, planner: SegmentPlanner) -> NDArray[np.int64]:
        """One count per bin, and one of missing items."""
        return np.zeros(planner.edges.size + 2, dtype=np.int64)

    def _close(self, counts: NDArray[np.int64]) -> None:
        """End the open segment: its counts get their noise and are forgotten.

        On a copy: whatever interrupts it leaves either everything as it was, and the noise unseen, or nothing raw.
        """
        planner = copy.deepcopy(self._planner)
        noise.load()  # first: a kill between the ledger's count and the release loses the items
        self._account.before_noise()
        _absorb(planner, counts, self._nan_policy)
        empty = self._empty_counts(planner)
        # No interrupt can come between these stores.
        self._planner, self._counts, self._filled = planner, empty, 0

    def _settle(self) -> None:
        if self._pending:
            self._take(chunks(self._pending, unsigned=True))

    def _take(self, batch: Iterator[Chunk]) -> None:
        """Count on copies and keep them only if the whole batch is accepted.

        Noise drawn for segments of a batch that is refused later is thrown away with them, unseen.
        """
        with in_lots():
            self._count_segments(batch)

    def _count_segments(self, batch: Iterator[Chunk]) -> None:
        planner, counts, filled = self._planner, self._counts.copy(), self._filled
        noted = False  # once: how many segments a refused batch would have closed depends on its items
        for chunk in batch:
            first = 0
            while first < chunk.values.size:
                last = min(chunk.values.size, first + planner.segment_length - filled)
                counts += counts_of(chunk, first, last, planner.edges)
                if counts[-1] and self._nan_policy == "raise":
                    raise ItemError('The batch has NaN or null items; clean the data, or use nan_policy="omit".')
                filled += last - first
                first = last
                if filled >= planner.segment_length:
                    if planner is self._planner:
                        planner = copy.deepcopy(planner)
                    if not noted:
                        noise.load()  # first: a kill between the ledger's count and the release loses the items
                        self._account.before_noise()
                        noted = True
                    _absorb(planner, counts, self._nan_policy)
                    counts, filled = self._empty_counts(planner), 0
        # No interrupt can come between these stores.
        self._planner, self._counts, self._filled, self._pending = planner, counts, filled, []


def _absorb(planner: SegmentPlanner, counts: NDArray[np.int64], nan_policy: NanPolicy) -> None:
    """Hand a segment over; where items may be missing, their number is one more private count."""
    planner.absorb(counts[:-1], missing=int(counts[-1]) if nan_policy == "omit" else None)
