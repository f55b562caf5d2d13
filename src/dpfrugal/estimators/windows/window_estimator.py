"""What ``WindowQuantile`` and ``KeyedWindowQuantile`` share: one window after the other, each released once.

A window is the items since the last release. Its end forgets them, so each item is in one window, and the guarantee of
an item is the one promised however many windows are released (docs/proofs.md, Theorem 20). The ledger counts every
window before anything is drawn for it: after a crash no window is released twice.

Two replicas' windows make one (``merge``). What is handed over is raw private state, and is taken in once.
"""

from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import CheckpointError, ItemError, ParameterError, ParameterTypeError
from dpfrugal.estimators.base import PrivateEstimator
from dpfrugal.estimators.keyed.state_record import arrow_keys, learn, saved_keys
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.windows.hand_overs import HandOvers
from dpfrugal.estimators.windows.held_items import HeldItems
from dpfrugal.estimators.windows.window_items import Batch
from dpfrugal.estimators.windows.window_kinds import common, recoded, record_of_kind, recorded_kind
from dpfrugal.estimators.windows.window_plan import WindowPlan
from dpfrugal.kernels.threads import available
from dpfrugal.keys.person_limits import People
from dpfrugal.parameters import NanPolicy
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.storage import json_values
from dpfrugal.storage.checkpoint_file import Contents, of_bytes, to_bytes

WHOSE: Final = "person must be given with every batch, or with none."


class WindowEstimator(PrivateEstimator):
    """Items of the open window, and what ends it; a subclass adds batches and releases."""

    def __init__(
        self, asked: WindowPlan, max_items_per_person: int, ledger: Ledger | None, dataset: str | None, cost: Guarantee
    ) -> None:
        self._asked, self._planned, self._guarantee = asked, asked.plan, asked.guarantee
        self._max_items_per_person = max_items_per_person
        self._kind: Kind | None = None
        self._threads = available()
        self._items_before = self._released = 0
        self._hand_overs = HandOvers()
        self._with_persons: bool | None = None
        self._begin()
        super().__init__(
            Account.opened(
                *(ledger, dataset, cost),
                by=type(self).__name__,
                max_items_per_person=max_items_per_person,
                neighbours=asked.neighbours,
                asked={"quantiles": list(asked.quantiles), "windows": asked.windows},
            )
        )

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The quantiles that are estimated, in the caller's order."""
        return self._asked.quantiles

    @property
    def windows_released(self) -> int:
        """How many windows have ended with a release."""
        return self._released

    @property
    def items(self) -> int | None:
        """How many items have been taken in since the beginning; None where their number is private."""
        return None if self._asked.neighbours == "add-remove" else self._items_before + self._number()

    @property
    def items_in_window(self) -> int | None:
        """How many items the open window has had, omitted ones included; None where their number is private."""
        return None if self._asked.neighbours == "add-remove" else self._number()

    @property
    def nan_policy(self) -> NanPolicy:
        """What becomes of items that are NaN or null."""
        return self._asked.nan_policy

    def discard(self) -> None:
        """Forget the items of the open window without a release."""
        with self._alone():
            self._items_before += self._number()
            self._begin()

    def hand_over(self) -> bytes:
        """The open window, for ``merge`` of another one: **raw private state**. This one forgets it."""
        return to_bytes(self._given_up())

    def merge(self, other: Self | bytes) -> None:
        """Take in the open window of another one, or what its ``hand_over`` gave; the other one has forgotten it.

        Both must have the same parameters. What is held is what one would hold had all items come to it, for the same
        priorities. The same hand-over is taken in once: a repeated one is refused.
        """
        if isinstance(other, WindowEstimator):
            if other is self:
                raise ParameterError("other must be another estimator; this one cannot merge with itself.")
            self._check_same(type(other).__name__, other.parameters())
            common(self._kind, other._kind)  # what is refused here stays where it is
            self._check_persons(other._with_persons)
            contents = other._given_up()
        elif isinstance(other, bytes | bytearray | memoryview):
            contents = of_bytes(bytes(other), type(self).__name__, "other")
        else:
            raise ParameterTypeError(f"other must be a {type(self).__name__} or bytes, not {type(other).__name__}.")
        self._check_same(contents.kind, contents.parameters)
        with self._alone():
            name = self._hand_overs.check(contents.state)
            self._settle()
            try:
                self._take_over(contents)
            except (LookupError, TypeError, ValueError, AttributeError):
                raise CheckpointError("other holds no window that could be taken in.") from None
            self._hand_overs.remember(name)

    def _check_same(self, kind: str, others: dict[str, Any]) -> None:
        mine = self.parameters()
        if kind != type(self).__name__:
            raise ParameterError(f"other must be a {type(self).__name__}, not a {kind}.")
        if different := [name for name in mine if mine[name] != others.get(name)]:
            raise ParameterError(f"other must have the same parameters; {', '.join(different)} differ.")

    def _check_persons(self, given: bool | None) -> None:
        if None not in (given, self._with_persons) and given is not self._with_persons:
            raise ItemError(WHOSE)

    def _given_up(self) -> Contents:
        with self._alone():
            self._settle()
            contents = self._contents()
            self._account.before_noise()  # a checkpoint from before it is stale: its items are elsewhere now
            self._items_before += self._number()
            self._begin()
        contents.state.update(HandOvers.mark())
        return contents

    def _take_over(self, contents: Contents) -> None:
        """Add the window of another one, whose parameters are the same."""
        number, kind, held = self._window_of(contents)
        both = common(self._kind, kind)
        self._become(both)
        if kind is not None and both is not None:
            held.recode("codes", recoded(held.column("codes"), kind, both))
        self._adopt(contents, held)
        self._held.merge(held)
        self._window_items += number

    def _adopt(self, contents: Contents, held: HeldItems) -> None:
        """Give the items of another window the codes that their persons have here."""
        if contents.state["persons"] is None:
            return
        self._check_persons(contents.state["persons"])
        people = arrow_keys(contents.arrays["people"]) if contents.state["persons"] else None
        if people is not None and held.column("who").max(initial=-1) >= len(people):
            raise ValueError("not the persons of these items")
        self._with(people is not None)
        if people is not None and len(people):
            held.relabel("who", self._people.codes(people))

    def _end_window(self) -> tuple[int, int]:
        """Count the window in the ledger, then forget its items; its number, and how many items it had."""
        windows = self._asked.windows
        if windows is not None and self._account.generation and not self._account.generation % windows:
            self._account.spend_again()
        self._account.before_noise()
        number = self._number()
        self._items_before += number
        self._released += 1
        self._begin()
        return self._released, number

    def _begin(self) -> None:
        """An empty window."""
        self._held = self._empty()
        self._people = People(self._threads)
        self._window_items = 0

    def _empty(self) -> HeldItems:
        raise NotImplementedError

    def _number(self) -> int:
        """How many items the open window has had."""
        return self._window_items

    def _settle(self) -> None:
        """Take in what waits."""

    def parameters(self) -> dict[str, Any]:
        """Internal: the parameters as a checkpoint records them, all public; equal ones make equal estimators."""
        with self._alone():
            return self._parameters()

    def _parameters(self) -> dict[str, Any]:
        return self._asked.record()

    def _become(self, kind: Kind | None) -> None:
        """Answers are of this type from now on."""
        if kind is not self._kind and self._kind is not None and kind is not None:
            self._held.recode("codes", recoded(self._held.column("codes"), self._kind, kind))
        self._kind = kind

    def _take(self, batch: Batch, who: Any = None, groups: Any = None) -> None:
        """Hold a batch that was accepted; rows of no group are not held."""
        if not batch.codes.size:
            return
        kind = self._asked.kind_with(batch, self._kind)
        codes = batch.codes if kind is None else batch.of_kind(kind)
        self._become(kind)
        parts: dict[str, Any] = {"codes": codes, "priorities": self._held.priorities(codes.size)}
        parts |= {name: part for name, part in (("groups", groups), ("who", who)) if part is not None}
        kept = batch.present
        if groups is not None and (groups < 0).any():
            kept = groups >= 0 if kept is None else kept & (groups >= 0)
        if kept is not None:
            parts = {name: part[kept] for name, part in parts.items()}
        self._held.add(**parts)
        self._window_items += codes.size
        self._prune_people()

    def _persons(self, person: Any, items: int) -> Any:
        """The codes of a batch's persons, None where there are none; whether there are any, the first batch says."""
        if not items and person is None:
            return np.empty(0, dtype=np.int32) if self._with_persons else None
        self._check_persons(person is not None)
        if person is None:
            self._with(False)
            return None
        known = self._people.index.size
        who = self._people.codes(person)
        if who.size != items:
            self._people.index.forget(known)
            raise ItemError(f"person must have one id for each item; there are {who.size:,} ids and {items:,} items.")
        self._with(True)
        return who

    def _with(self, persons: bool) -> None:
        """Items come with persons from now on, or without; none has come before."""
        if self._with_persons is None:
            self._with_persons = persons
            if persons:
                self._held = self._empty()

    def _prune_people(self) -> None:
        """Forget persons of whom nothing is held, where they are most."""
        index = self._people.index
        if not self._with_persons or index.size <= 4 * max(self._held.size, 1 << 16) or index.kind == "objects":
            return
        self._people, codes = self._people.only(np.unique(self._held.column("who")))
        self._held.relabel("who", codes)

    def _window_contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state of the open window, and its arrays."""
        limit, limits = self._held.limits
        state = {
            "window_items": self._window_items,
            "items_before": self._items_before,
            "released": self._released,
            "kind": record_of_kind(self._kind),
            "persons": self._with_persons,
            "limit": limit,
            "hand_overs": self._hand_overs.record(),
        }
        arrays = self._held.arrays() | {"limits": limits}
        if self._with_persons:
            arrays["people"] = saved_keys(self._people.index)
        return state, arrays

    def _window_of(self, contents: Contents) -> tuple[int, Kind | None, HeldItems]:
        """The number of items, their type and the items of a window that was stored."""
        state, arrays = contents.state, contents.arrays
        kind = recorded_kind(state["kind"])
        if state["persons"] is not None and not isinstance(state["persons"], bool):
            raise ValueError("not a window")
        before, self._with_persons = self._with_persons, state["persons"]
        try:
            held = self._empty()
        finally:
            self._with_persons = before
        held.replace(arrays, json_values.integer_of(state["limit"], 0, 1 << 32), arrays["limits"])
        return json_values.integer_of(state["window_items"]), kind, held

    def _restore(self, contents: Contents) -> None:
        """Continue from a checkpoint's state."""
        state = contents.state
        self._window_items, self._kind, self._held = self._window_of(contents)
        self._with_persons = state["persons"]
        self._items_before = json_values.integer_of(state["items_before"])
        self._released = json_values.integer_of(state["released"])
        self._hand_overs = HandOvers.of_record(state["hand_overs"])
        if "people" in contents.arrays:
            learn(self._people.index, arrow_keys(contents.arrays["people"]))
            if self._held.column("who").max(initial=-1) >= self._people.index.size:
                raise ValueError("not the persons of these items")

    def _forget(self) -> None:
        """Begin an empty window. What was taken in after the checkpoint is not known by name any more, but by age."""
        self._hand_overs.lose()
        self._begin()

    def __repr__(self) -> str:
        shown = self.quantiles[0] if len(self.quantiles) == 1 else list(self.quantiles)
        items = "" if self.items is None else f", items={self.items}"
        return f"{type(self).__name__}({shown}, {self._guarantee}, windows={self._released}{items})"
