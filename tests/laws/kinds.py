"""The estimators that obey the laws: how each is made and fed, and how a test, and only a test, looks at raw state.

A new estimator is one more entry of ``KINDS``. Where it is fed, released or looked at in a way of its own, its entry is
of a subclass of ``Kind`` that says so.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dpfrugal as dpf
from dpfrugal.estimators.table.base.kinds import FLOATS
from dpfrugal.estimators.windows.window_kinds import recorded_kind

ONE = dpf.PureDP(epsilon=1.0)


@dataclass(frozen=True)
class Kind:
    """An estimator of items one after the other, on a grid, whose coins may be seeded."""

    cls: type[Any]
    quantiles: tuple[float, ...] = (0.25, 0.9)
    guarantee: dpf.Guarantee | None = ONE
    options: dict[str, Any] = field(default_factory=dict)  # what it is always made with, unless a test says otherwise
    most_bytes: int = 1 << 10  # of a checkpoint, however many items have come
    lowest_output: int = 0  # of noise that a test replaces by fixed outputs

    takes_single_items = True
    tosses_coins = True  # and is on a grid
    needs_items = False  # a release before the first item is refused
    repeats_releases = True  # asked again before an item has come; a window without items is another release

    @property
    def private(self) -> bool:
        """Whether it has a guarantee."""
        return self.guarantee is not None

    def make(self, guarantee: dpf.Guarantee | None = None, **options: Any) -> Any:
        """A new one."""
        promised = (guarantee or self.guarantee,) if self.private else ()
        return self.cls(list(self.quantiles), *promised, **{"coin_seed": 11, "decimals": 1, **self.options, **options})

    def feed(self, estimator: Any, items: Any, first: int = 0, count: int | None = None) -> None:
        """One batch: the items from position ``first`` of a stream; ``count`` is their number where they have none."""
        estimator.update_many(items)

    def fed(self, *batches: Any, **options: Any) -> Any:
        """A new one that has taken in some batches, one after the other."""
        estimator, first = self.make(**options), 0
        for batch in batches:
            self.feed(estimator, batch, first)
            first += len(batch)
        return estimator

    def raw(self, estimator: Any, *, settle: bool = True) -> Any:
        """All raw state; with ``settle`` the items that wait for a batch are taken in before."""
        if settle:
            self.feed(estimator, [])
        contents = estimator._contents()
        arrays = {name: array.tolist() for name, array in contents.arrays.items()}
        return estimator.items, contents.state, arrays

    def points(self, estimator: Any) -> list[int]:
        """The raw estimates on the grid."""
        return list(self.raw(estimator)[1]["estimates"])

    def release(self, estimator: Any) -> Any:
        """A release of every item that has come."""
        return estimator.release()

    def seen(self, estimator: Any) -> str:
        """Everything that can be seen of an estimator, with a release, to the last digit."""
        return repr((self.release(estimator).to_dict(), estimator.items, estimator.quantiles, repr(estimator)))

    def load(self, path: Any, **options: Any) -> Any:
        """The one that a checkpoint was taken of."""
        return self.cls.load(path, **(options or {"accept_replay_risk": True}))


@dataclass(frozen=True)
class NotPrivate(Kind):
    """Shows its estimates."""

    guarantee: dpf.Guarantee | None = None

    def seen(self, estimator: Any) -> str:
        return repr((estimator.estimates, estimator.items, repr(estimator)))

    def load(self, path: Any, **options: Any) -> Any:
        return self.cls.load(path)


@dataclass(frozen=True)
class Segments(Kind):
    """Counts between edges: no grid, no coins; a release closes the open segment."""

    most_bytes: int = 1 << 14

    tosses_coins = False
    needs_items = True

    def make(self, guarantee: dpf.Guarantee | None = None, **options: Any) -> Any:
        return self.cls(list(self.quantiles), guarantee or self.guarantee, **{**self.options, **options})

    def release(self, estimator: Any) -> Any:
        return estimator.release(close=True)

    def seen(self, estimator: Any) -> str:
        release = self.release(estimator)
        public = estimator.edges.tolist(), estimator.segment_length, estimator.items, repr(estimator)
        return repr((release.to_dict(), release.intervals(0.5), public))


NAMES = ("/home", "/search", "/pay")
PATTERN = ("/home", "/pay", "/home", "/else", "/search", "/home", "/pay")  # "/else" is declared nowhere


@dataclass(frozen=True)
class Keyed(Kind):
    """Rows of a key and a value, in batches only; the key of a row follows from its position."""

    options: dict[str, Any] = field(default_factory=lambda: {"keys": list(NAMES)})
    most_bytes: int = 1 << 12

    takes_single_items = False

    def feed(self, estimator: Any, items: Any, first: int = 0, count: int | None = None) -> None:
        if count is None:
            try:
                count = len(items)
            except TypeError:
                count = 1
        keys = itertools.islice(itertools.cycle(PATTERN), first % len(PATTERN), None)
        estimator.update_many(list(itertools.islice(keys, count)), items)

    def raw(self, estimator: Any, *, settle: bool = True) -> Any:
        items, state, arrays = super().raw(estimator, settle=settle)
        for name in ("estimates", "anchors", "steps", "counts", "public"):  # without the room for keys yet to come
            if name in arrays:
                arrays[name] = arrays[name][: estimator._index.size]
        return items, state, arrays

    def points(self, estimator: Any) -> list[int]:
        return list(itertools.chain.from_iterable(self.raw(estimator)[2]["estimates"]))

    def seen(self, estimator: Any) -> str:
        table = self.release(estimator)
        keys = estimator.keys.to_pylist()
        return repr((table.to_pylist(), table.schema.metadata, keys, estimator.items, repr(estimator)))


def without_chance(raw: Any) -> Any:
    """The raw state of windows without priorities, which are random, and numbers whatever their type."""
    items, state, arrays = raw
    kind = recorded_kind(state.pop("kind")) or FLOATS
    del state["limit"]
    codes = np.array(arrays.pop("codes"), dtype=np.int64)
    values = kind.array(codes, np.zeros(codes.size, dtype=np.bool_)).to_numpy(zero_copy_only=False)
    # All that is far out is alike to the other estimators.
    arrays["values"] = np.clip(values, -1e300, 1e300).tolist()
    return items, state, {name: arrays[name] for name in sorted(arrays) if name != "priorities"}


@dataclass(frozen=True)
class Windows(Kind):
    """Items of the open window: no grid, no coins; a release ends the window."""

    options: dict[str, Any] = field(default_factory=lambda: {"hold": 30_000})
    most_bytes: int = 1 << 19

    tosses_coins = False
    repeats_releases = False

    def make(self, guarantee: dpf.Guarantee | None = None, **options: Any) -> Any:
        return self.cls(list(self.quantiles), guarantee or self.guarantee, **{**self.options, **options})

    def raw(self, estimator: Any, *, settle: bool = True) -> Any:
        return without_chance(super().raw(estimator, settle=settle))


@dataclass(frozen=True)
class KeyedWindows(Keyed):
    """The same of rows with keys."""

    options: dict[str, Any] = field(default_factory=lambda: {"keys": list(NAMES), "hold_in_all": 30_000})
    most_bytes: int = 1 << 19

    tosses_coins = False
    repeats_releases = False

    def make(self, guarantee: dpf.Guarantee | None = None, **options: Any) -> Any:
        return self.cls(list(self.quantiles), guarantee or self.guarantee, **{**self.options, **options})

    def raw(self, estimator: Any, *, settle: bool = True) -> Any:
        return without_chance(super().raw(estimator, settle=settle))


DISCOVERY = dpf.ApproxDP(epsilon=1.0, delta=1e-6)
KINDS: dict[str, Kind] = {
    "Frugal1U": NotPrivate(dpf.Frugal1U),
    "DPFrugal1U": Kind(dpf.DPFrugal1U),
    "DPFrugal1U, ρ": Kind(dpf.DPFrugal1U, (0.9, 0.1, 0.5), dpf.ZCDP(rho=0.5), {"max_items_per_person": 3}),
    "PrivateQuantile": Segments(dpf.PrivateQuantile),
    "PrivateQuantile, hints": Segments(dpf.PrivateQuantile, (0.9,), options={"start": 3.0, "expected_items": 10**5}),
    "PrivateQuantile, ρ": Segments(dpf.PrivateQuantile, (0.5, 0.99), dpf.ZCDP(rho=0.5), {"max_items_per_person": 3}),
    "KeyedDPFrugal1U": Keyed(dpf.KeyedDPFrugal1U),
    "KeyedDPFrugal1U, threads": Keyed(
        dpf.KeyedDPFrugal1U, options={"keys": list(NAMES), "threads": 2, "adaptive_steps": False}
    ),
    "KeyedDPFrugal1U, discovered keys": Keyed(
        dpf.KeyedDPFrugal1U, options={"discover_keys": DISCOVERY}, most_bytes=1 << 15, lowest_output=1000
    ),
    "WindowQuantile": Windows(dpf.WindowQuantile),
    "KeyedWindowQuantile": KeyedWindows(dpf.KeyedWindowQuantile),
    "KeyedWindowQuantile, discovered keys": KeyedWindows(
        dpf.KeyedWindowQuantile, options={"discover_keys": DISCOVERY, "hold_in_all": 30_000}
    ),
}
PRIVATE = {name: kind for name, kind in KINDS.items() if kind.private}
REPEATING = {name: kind for name, kind in PRIVATE.items() if kind.repeats_releases}
SINGLE = {name: kind for name, kind in KINDS.items() if kind.takes_single_items}
WITH_COINS = {name: kind for name, kind in KINDS.items() if kind.tosses_coins}
