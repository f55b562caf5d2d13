"""DP-Frugal-1U: Frugal-1U whose releases are differentially private (the paper's -L, -G and -ρ).

A replaced item moves an estimate by at most 2 grid steps, for every coin sequence and however long the stream
goes on (docs/proofs.md, Theorems 1 and 2). A release adds discrete noise for that sensitivity **on the grid**
and re-anchors the walk on the released value, so each item influences one release only and the whole
transcript keeps the one guarantee (Theorem 4).

Worked number: ``decimals=3``, ε = 1: noise of scale 2 grid steps, so |noise| < 0.006 in the data's units with
probability 95%, at every release.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.person_moves import Exposure, exposed
from dpfrugal.budget.spending import Account
from dpfrugal.estimators import base
from dpfrugal.estimators.base import PrivateEstimator
from dpfrugal.estimators.grid import LARGEST_ESTIMATE
from dpfrugal.estimators.releases import WalkRelease, in_quantile_order
from dpfrugal.estimators.walk.frugal import MOST_PENDING, Frugal1U, admitted, points_of
from dpfrugal.parameters import NanPolicy
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity, checked_guarantee
from dpfrugal.storage import json_values
from dpfrugal.storage.checkpoint_file import Contents


def sensitivity_of(quantiles: int, max_items_per_person: int) -> Sensitivity:
    """How far the items of one person can move all estimates of all releases together (Theorems 2 and 4)."""
    steps = 2 * max_items_per_person
    once = quantiles == 1 and max_items_per_person == 1  # several items may lie in several releases
    return Sensitivity(l1=steps * quantiles, l2_squared=steps**2 * quantiles, one_number=once)


def walk_exposure(guarantee: Guarantee, quantiles: int, max_items_per_person: int) -> Exposure | None:
    """What one person can move: each item every estimate of its release by 2, whichever releases they lie in."""
    sensitivity = sensitivity_of(quantiles, max_items_per_person)
    moves = ((items, sensitivity, 2 * items, quantiles) for items in range(1, max_items_per_person + 1))
    return exposed(guarantee, max_items_per_person, moves)


class DPFrugal1U(PrivateEstimator):
    """Private quantiles of a stream, one integer each; releases as often as asked under one guarantee.

    The guarantee (Theorem 4) is for neighbours that differ by one replaced item, or by the at most
    ``max_items_per_person`` items of one person. The number of items and the release times are public.
    The start is a public constant: never derive it from the items. Several quantiles share the budget: the
    guarantee covers all of them together. With a ``ledger`` it is spent on ``dataset``, once, before the first release.

    ``update``, ``update_many`` and ``release`` may be called from several threads.

    >>> from dpfrugal import PureDP
    >>> p = DPFrugal1U(0.5, PureDP(epsilon=1.0), decimals=2, start=20.0)
    >>> p.update_many([20.5] * 10_000)
    >>> r = p.release()
    >>> abs(r.value - 20.5) < 0.5, round(r.alpha(beta=0.05), 4), r.items
    (True, 0.0599, 10000)
    >>> p.release() is r
    True
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        guarantee: Guarantee,
        *,
        decimals: int = 0,
        start: float = 0.0,
        max_items_per_person: int = 1,
        nan_policy: NanPolicy = "raise",
        coin_seed: int | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._guarantee = checked_guarantee(guarantee)
        self._max_items_per_person = parameters.max_items_per_person(max_items_per_person)
        self._walk = Frugal1U(quantile, decimals=decimals, start=start, nan_policy=nan_policy, coin_seed=coin_seed)
        self._sensitivity = sensitivity_of(len(self.quantiles), self._max_items_per_person)
        guarantee.noise_scale(self._sensitivity)  # what cannot be calibrated is refused here, not at the release
        super().__init__(
            Account.opened(
                *(ledger, dataset, guarantee, self._sensitivity),
                by=type(self).__name__,
                max_items_per_person=self._max_items_per_person,
                exposure=walk_exposure(guarantee, len(self.quantiles), self._max_items_per_person),
                asked={"quantiles": list(self.quantiles)},
            )
        )
        self._last: WalkRelease | None = None
        self._anchor = self._walk._estimates, 0  # the last public values, and the number of items then

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are estimated, in the caller's order."""
        return self._walk.quantiles

    @property
    def items(self) -> int:
        """How many items have been taken in, omitted ones included."""
        return self._walk.items

    def update(self, item: float) -> None:
        """Take in one item."""
        if self._owner is not None or self._forks != base.forks:
            self._refuse_copies_and_loops()
        walk = self._walk
        if (kind := type(item)) is not int and (kind is not float or item != item):
            item = admitted(item, walk._nan_policy)
        with self._lock:
            walk._pending.append(item)
            if len(walk._pending) >= MOST_PENDING:
                walk._settled()

    def update_many(self, items: Iterable[float] | Any) -> None:
        """Take in a batch: all of it, or, where any of it is refused, nothing."""
        with self._alone():
            self._walk.update_many(items)

    def release(self) -> WalkRelease:
        """A private value for every quantile; the same one again where no item has come since the last."""
        with self._alone():
            if self._last is None or self._last.items < self._walk.items:
                self._last = self._fresh_release()
            return self._last

    def _fresh_release(self) -> WalkRelease:
        walk = self._walk
        raw = [int(point) for point in walk._settled()]
        noise.load()  # first: a kill between the ledger's count and the release loses the items
        self._account.before_noise()
        noisy = [_on_grid(point) for point in noise.add_noise(raw, self._guarantee, self._sensitivity)]
        self._re_anchor(in_quantile_order(np.array(noisy, dtype=np.int64), self.quantiles))
        return self._released()

    def _re_anchor(self, points: NDArray[np.int64]) -> None:
        """Continue the walk from released points: Theorem 4 rests on this."""
        self._walk._estimates = points
        self._anchor = points, self._walk.items

    def _released(self) -> WalkRelease:
        """The release at the anchor, all of it public."""
        points, items = self._anchor
        grid = self._walk._path.grid
        return WalkRelease(
            values=tuple(grid.value(point) for point in points.tolist()),
            quantiles=self.quantiles,
            guarantee=self._guarantee,
            items=items,
            grid=grid,
            sensitivity=self._sensitivity,
            max_items_per_person=self._max_items_per_person,
        )

    def _contents(self) -> Contents:
        walk, (points, items) = self._walk._contents(), self._anchor
        more = {
            "guarantee": self._guarantee.to_record(),
            "max_items_per_person": self._max_items_per_person,
        }
        public = {"anchor": points.tolist(), "anchored_at": items, "released": self._last is not None}
        return Contents(type(self).__name__, walk.parameters | more, walk.state | public)

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        parameters, state, walk = contents.parameters, contents.state, Frugal1U._of_contents(contents)
        estimator = cls(
            walk.quantiles,
            Guarantee.of_record(parameters["guarantee"]),
            max_items_per_person=parameters["max_items_per_person"],
        )
        estimator._walk = walk
        estimator._anchor = (
            points_of(state["anchor"], len(walk.quantiles)),
            json_values.integer_of(state["anchored_at"], 0, walk.items),
        )
        if state["released"] is True:
            estimator._last = estimator._released()
        return estimator

    def _forget(self) -> None:
        points, items = self._anchor
        self._walk._estimates, self._walk._position, self._walk._pending = points, items, []

    def __repr__(self) -> str:
        shown = self.quantiles[0] if len(self.quantiles) == 1 else list(self.quantiles)
        return f"{type(self).__name__}({shown}, {self._guarantee}, items={self.items})"


def _on_grid(point: int) -> int:
    """Noise may carry an estimate off the grid's end; it is put back on it (post-processing)."""
    return min(max(point, -LARGEST_ESTIMATE), LARGEST_ESTIMATE)
