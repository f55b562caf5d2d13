"""``KeyedWindowQuantile``: quantiles of each key of a stream, period by period, each window as ``quantiles_by`` has it.

>>> import dpfrugal as dpf
>>> k = KeyedWindowQuantile(0.9, dpf.PureDP(epsilon=1.0), keys=["/home", "/pay", "/help"])
>>> k.update_many(["/home", "/pay"] * 5_000, [10.0, 20.0] * 5_000)
>>> k.release().select(["key", "value", "upper"]).to_pylist()[:2]
[{'key': '/home', 'value': 10.0, 'upper': 10.0}, {'key': '/pay', 'value': 20.0, 'upper': 20.0}]
"""

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.errors import CheckpointError, ItemError, ParameterError
from dpfrugal.estimators.keyed.coded_rows import UNEVEN, KeyLookup, sized
from dpfrugal.estimators.keyed.release_table import total_cost
from dpfrugal.estimators.keyed.state_record import arrow_keys
from dpfrugal.estimators.table.base.kinds import FLOATS
from dpfrugal.estimators.table.choices.group_answers import FEW_GROUPS, Progress, answer_groups
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.group_table import group_table
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows
from dpfrugal.estimators.windows.held_items import HeldItems
from dpfrugal.estimators.windows.rehearsal import rehearse
from dpfrugal.estimators.windows.window_estimator import WindowEstimator
from dpfrugal.estimators.windows.window_items import Batch, batch_of
from dpfrugal.estimators.windows.window_keys import WindowKeys, check_groups
from dpfrugal.estimators.windows.window_options import MOST_HELD, recorded_options
from dpfrugal.estimators.windows.window_plan import WindowPlan
from dpfrugal.estimators.windows.window_release import unit_of
from dpfrugal.keys.discovery import KeyDiscovery, declared_or_discovered
from dpfrugal.keys.index import MOST_KEYS
from dpfrugal.parameters import NanPolicy, Neighbours, NullKeys
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee
from dpfrugal.storage.checkpoint_file import Contents

HELD_IN_ALL: Final = 1 << 24


class KeyedWindowQuantile(WindowEstimator):
    """Private quantiles for each key and window of a stream: of the rows since the last release, under one guarantee.

    The guarantee (Theorem 20) is for neighbours of which one row changes its value *and* its key or, with
    ``neighbours="add-remove"``, is there or not; however many windows are released. Of a person it covers at most
    ``max_items_per_person`` rows per window (with ``max_keys_per_person`` in each of so many keys), which ``person``,
    ids given with the rows, enforces; with ``windows=24`` a person in 24 windows together, and a ledger is charged
    again after every 24.

    ``keys`` declares the keys, and every release has a row for each. Or ``discover_keys`` says what finding them may
    cost, on top of the guarantee: a key that was found is in every later release. Rows of other keys are dropped, or
    are one more group, the last one, that is shown as ``other``.

    At most ``hold_in_all`` rows are held, beyond that a uniform sample of so many (None: all). With ``hold`` at most so
    many of each key: large keys then leave room for small ones, but the answers of all keys become less exact, by up to
    a factor of two for a median and by 1% for a p99; it cannot be used with ``person``. The other options are those of
    ``quantiles_by``.

    >>> import dpfrugal as dpf
    >>> keyed = dpf.KeyedWindowQuantile(0.5, dpf.PureDP(epsilon=1.0), keys=["/home", "/pay"])
    >>> keyed.update_many(["/home", "/pay"] * 1_000, [12, 40] * 1_000)
    >>> keyed.release().select(["key", "value"]).to_pylist()
    [{'key': '/home', 'value': 12.0}, {'key': '/pay', 'value': 40.0}]
    """

    def __init__(
        self,
        quantile: float | Sequence[float],
        guarantee: Guarantee,
        *,
        keys: Any = None,
        discover_keys: ApproxDP | None = None,
        other: Any = None,
        hold: int | None = None,
        hold_in_all: int | None = HELD_IN_ALL,
        neighbours: Neighbours = "replace",
        intervals: bool = True,
        confidence: float = 0.95,
        interval_of: IntervalOf = "population",
        counts: bool = True,
        low: float | None = None,
        high: float | None = None,
        decimals: int | None = None,
        max_items_per_person: int = 1,
        max_keys_per_person: int | None = None,
        windows: int | None = None,
        nan_policy: NanPolicy = "raise",
        null_keys: NullKeys = "raise",
        max_keys: int = MOST_KEYS,
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._max_items_per_person = parameters.max_items_per_person(max_items_per_person)
        self._max_keys_per_person = parameters.max_keys_per_person(max_keys_per_person)
        self._null_keys = parameters.null_keys(null_keys)
        if hold_in_all is not None:
            parameters.integer("hold_in_all", hold_in_all, 1, MOST_HELD)
        self._per_key = hold is not None
        per_person = self._max_items_per_person * (self._max_keys_per_person or 1)
        asked = WindowPlan.of(
            quantile, guarantee, rows_per_person=per_person, hold=hold_in_all if hold is None else hold,
            sampled="table" if hold is None else "groups", neighbours=neighbours, intervals=intervals,
            confidence=confidence, interval_of=interval_of, windows=windows, nan_policy=nan_policy,
            hints=(low, high, decimals), grouped=True, counts=counts,
        )  # fmt: skip
        discovery = None
        declared_or_discovered(keys, discover_keys)
        if discover_keys is not None:
            discovery = KeyDiscovery(discover_keys, per_person * (asked.windows or 1))
        self._keys = WindowKeys(keys, discovery, other, max_keys)
        cost = guarantee if ledger is None else total_cost(guarantee, discover_keys)
        super().__init__(asked, self._max_items_per_person, ledger, dataset, cost)

    @property
    def discover_keys(self) -> ApproxDP | None:
        """What discovering keys costs besides; None where they were declared."""
        return None if self._keys.discovery is None else self._keys.discovery.cost

    @property
    def keys(self) -> Any:
        """The keys that are public, as a pyarrow.Array: those declared, or those discovered so far."""
        return self._keys.public

    @property
    def max_items_per_person(self) -> int:
        """How many rows of one person in a window the guarantee covers: in all or, with the next one, in each key."""
        return self._max_items_per_person

    @property
    def max_keys_per_person(self) -> int | None:
        """In how many keys of one person in a window; None where rows are limited in all."""
        return self._max_keys_per_person

    @property
    def null_keys(self) -> NullKeys:
        """What becomes of rows whose key is null."""
        return self._null_keys

    def update_many(self, keys: Any, values: Any, person: Any = None) -> None:
        """Take in a batch of rows: all of it, or, where any of it is refused, nothing. ``person`` has each row's id."""
        if person is not None and self._per_key:
            raise ParameterError("hold, of each key, cannot be used with person; use hold_in_all.")
        with self._alone():
            known, accepted = self._keys.index.size, False
            try:
                lookup, values = KeyLookup(self._keys.index, keys, self._null_keys, self._threads), sized(values)
                lookup.check_length(values)
                groups = self._keys.groups_of(lookup)
                batch = batch_of(values, self._asked.nan_policy)
                self._asked.kind_with(batch, self._kind)  # refuses another type before anything is taken in
                if batch.codes.size != groups.size:
                    raise ItemError(UNEVEN)
                self._keys.check_other()
                who = self._persons(person, batch.codes.size)
                accepted = True
            finally:
                if not accepted and self._keys.discovery is not None:
                    self._keys.index.forget(known)
            self._take(batch, who, groups)

    def release(self, progress: Progress | None = None) -> Any:
        """A pyarrow.Table of the rows since the last release, which are forgotten; the next window begins.

        Its columns are key, quantile, value, lower and upper, rows (a noisy number of those held) and reason, as those
        of ``quantiles_by``. It has a row for every public key and quantile, whether or not the key has had rows.
        ``progress`` is called with how many of how many steps are done.
        """
        with self._alone():
            kind, keys, index = self._kind or FLOATS, self._keys, self._keys.index
            rows = self._rows()
            grouped = None if keys.discovery is not None else keys.declared(rows)
            bounds, quantiles = self._asked.base(kind), self._asked.quantiles
            rehearse(self._planned, FEW_GROUPS if grouped is None else len(grouped.sizes))
            window, number = self._end_window()
            with self._account.owning_up():
                grouped = keys.discovered(rows, index) if grouped is None else grouped
                public = GroupedRows(kind, grouped.key_columns, number, grouped.starts, grouped.sorted_codes)
                found = answer_groups(public, self._planned, bounds, progress)
                table = group_table(
                    public, self._planned, found, quantiles, self.discover_keys, self._max_items_per_person,
                    self._max_keys_per_person,
                )  # fmt: skip
            claim = dict(table.schema.metadata)
            unit = unit_of(
                *(self._max_items_per_person, self._max_keys_per_person, self._planned.asked.windows),
                has_persons=bool(self._with_persons),
            )
            return table.replace_schema_metadata(claim | {b"unit": unit.encode(), b"window": str(window).encode()})

    def _rows(self) -> KeyedRows:
        """The rows that count, with the codes of their keys; of each person at most so many, chosen by priority."""
        arrays = self._held.arrays()
        rows = KeyedRows("raise", self._threads)
        priorities = arrays["priorities"].astype(np.uint64) if self._with_persons else None
        groups = arrays["groups"].copy() if self._with_persons else arrays["groups"]
        rows.add_coded(self._kind or FLOATS, arrays["codes"], groups, arrays.get("who"), priorities)
        if self._with_persons:
            rows.keep_chosen(self._max_items_per_person, self._max_keys_per_person)
        return rows

    def _begin(self) -> None:
        super()._begin()
        self._keys.begin()

    def _take(self, batch: Batch, who: Any = None, groups: Any = None) -> None:
        super()._take(batch, who, groups)
        if not self._per_key:
            self._keys.prune(self._held)

    def _empty(self) -> HeldItems:
        if not self._with_persons:
            return HeldItems(self._asked.hold, ("groups",), per_group=self._per_key)
        return HeldItems(self._asked.hold, ("groups", "who"), per_person=self._planned.asked.rows_per_person)

    def _adopt(self, contents: Contents, held: HeldItems) -> None:
        self._keys.adopt(contents.arrays["keys"], held)
        super()._adopt(contents, held)

    def _parameters(self) -> dict[str, Any]:
        asked = super()._parameters()
        hold = asked["hold"]
        return (
            asked
            | self._keys.parameters()
            | {
                "hold": hold if self._per_key else None,
                "hold_in_all": None if self._per_key else hold,
                "counts": self._planned.asked.counts,
                "max_items_per_person": self._max_items_per_person,
                "max_keys_per_person": self._max_keys_per_person,
                "null_keys": self._null_keys,
            }
        )

    def _contents(self) -> Contents:
        if not isinstance(self._keys.other, str | int | None):
            raise CheckpointError("A window whose other is neither text nor an integer cannot be saved or handed over.")
        state, arrays = self._window_contents()
        arrays["keys"], state["public"] = self._keys.saved()
        return Contents(type(self).__name__, self._parameters(), state, arrays=arrays)

    @classmethod
    def _of_contents(cls, contents: Contents) -> Self:
        given, keys = contents.parameters, arrow_keys(contents.arrays["keys"])
        discovery = given["discover_keys"] and ApproxDP.of_record(given["discover_keys"])
        own = ("other", "hold", "hold_in_all", "counts", "max_keys_per_person", "null_keys", "max_keys")
        estimator = cls(
            **recorded_options(given),
            keys=None if discovery else keys,
            discover_keys=discovery,
            **{name: given[name] for name in own},
        )
        estimator._keys.restore(keys, contents.state["public"])
        estimator._restore(contents)
        check_groups(estimator._held, estimator._keys.groups)
        return estimator
