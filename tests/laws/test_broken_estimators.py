"""The laws can fail: each is broken by an estimator with one mistake. Those of the audit are among them."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.audit.broken import CountsTwice, EdgesFromRawCounts, SkipsMissing, WithoutReAnchoring
from dpfrugal.storage.checkpoint_file import Contents
from tests.laws import laws
from tests.laws.kinds import KINDS, Keyed, Kind, Segments
from tests.support.noise_tape import no_noise, replace_noise

STREAM = np.random.default_rng(3).normal(20, 8, 700)


class SortsBatches(dpf.DPFrugal1U):
    """The order of a batch is lost."""

    def update_many(self, items: Any) -> None:
        super().update_many(np.sort(np.asarray(items, dtype=np.float64)))


class RestartsCoins(dpf.DPFrugal1U):
    """Every batch meets the first coins."""

    def update_many(self, items: Any) -> None:
        position, self._walk._position = self.items, 0
        super().update_many(items)
        self._walk._position += position


class RestartsKeyedCoins(dpf.KeyedDPFrugal1U):
    """The same, for rows with keys."""

    def update_many(self, keys: Any, values: Any, person: Any = None) -> None:
        position = self.items
        self._state.clock[0] = 0
        super().update_many(keys, values, person)
        self._state.clock[0] += position


class DropsOpenSegments(dpf.PrivateQuantile):
    """What is left of a batch after its last whole segment is not counted."""

    def update_many(self, items: Any) -> None:
        super().update_many(items)
        self._counts, self._filled = np.zeros_like(self._counts), 0


class TakesPartOfABatch(dpf.DPFrugal1U):
    """Items up to the bad one are taken in."""

    def update_many(self, items: Any) -> None:
        for item in items:
            self.update(item)


class ShowsItems(dpf.PrivateQuantile):
    """The message of a refusal shows the batch."""

    def update_many(self, items: Any) -> None:
        try:
            super().update_many(items)
        except dpf.ItemError as refusal:
            raise dpf.ItemError(f"{refusal} It was {items}.") from None


class Rounds(dpf.DPFrugal1U):
    """Small types are rounded."""

    def update_many(self, items: Any) -> None:
        super().update_many(np.asarray(items, dtype=np.float64) + isinstance(items, list))


class ForgetsItsPlace(dpf.DPFrugal1U):
    """A checkpoint begins with the first coin again."""

    def _contents(self) -> Contents:
        contents = super()._contents()
        return replace(contents, state=contents.state | {"position": 0, "anchored_at": 0})


class ForgetsItsRelease(dpf.DPFrugal1U):
    """A checkpoint does not hold the last release."""

    def _contents(self) -> Contents:
        contents = super()._contents()
        return replace(contents, state=contents.state | {"released": False})


class KeepsItems(dpf.Frugal1U):
    """State grows with the stream."""

    def update_many(self, items: Any) -> None:
        super().update_many(items)
        self._kept = [*getattr(self, "_kept", []), *items]

    def _contents(self) -> Contents:
        contents = super()._contents()
        return replace(contents, state=contents.state | {"kept": [float(item) for item in getattr(self, "_kept", [])]})


class ShowsState(dpf.KeyedDPFrugal1U):
    """Its text shows the estimates."""

    def __repr__(self) -> str:
        return f"{self._state.estimates.tolist()}"


class HasARawAttribute(dpf.DPFrugal1U):
    """A public attribute is raw."""

    @property
    def estimate(self) -> float:
        return self._walk.estimates[0]


class CanBeCopied(dpf.DPFrugal1U):
    """Nothing hinders a copy."""

    def __copy__(self) -> Any:
        return object.__new__(type(self))

    def __deepcopy__(self, memo: Any) -> Any:
        return object.__new__(type(self))

    def __reduce__(self) -> Any:
        return (str, ("copy",))

    __reduce_ex__ = None  # type: ignore[assignment]


class Unguarded(dpf.PrivateQuantile):
    """Neither forks nor calls from within are noticed, and threads do not take turns."""

    @contextmanager
    def _alone(self) -> Iterator[None]:
        yield

    def _refuse_copies_and_loops(self) -> None:
        return


class AlwaysFresh(dpf.DPFrugal1U):
    """Every call draws noise for what was released before."""

    def release(self) -> dpf.WalkRelease:
        return self._fresh_release()


class ForgetsTheSeed(dpf.DPFrugal1U):
    """Coins cannot be reproduced."""

    def __init__(self, *arguments: Any, coin_seed: int | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)


class KeepsStaleItems(dpf.DPFrugal1U):
    """A stale checkpoint goes on with the items that it holds."""

    def _forget(self) -> None:
        return


class NeverStale(dpf.DPFrugal1U):
    """It takes noise without asking the ledger."""

    def release(self) -> dpf.WalkRelease:
        self._account = copy.copy(self._account)
        self._account.before_noise = lambda: None  # type: ignore[method-assign]
        return super().release()


UNGUARDED: dict[str, Kind] = {"Unguarded": Segments(Unguarded)}
Law = Callable[[Path], None]
MISTAKES: dict[str, Law] = {
    "sorts batches": lambda _: laws.same_state_as_one_batch(Kind(SortsBatches), STREAM),
    "restarts coins": lambda _: laws.cuts_leave_no_trace(Kind(RestartsCoins), STREAM, [300]),
    "restarts coins of keys": lambda _: laws.cuts_leave_no_trace(Keyed(RestartsKeyedCoins), STREAM, [300]),
    "drops open segments": lambda _: laws.cuts_leave_no_trace(Segments(DropsOpenSegments), STREAM, [300]),
    "takes part of a batch": lambda _: laws.refused_batch_changes_nothing(
        Kind(TakesPartOfABatch), lambda: [1.0, math.nan]
    ),
    "shows items": lambda _: laws.refused_batch_changes_nothing(Segments(ShowsItems), lambda: [4242.0, math.nan]),
    "rounds": lambda _: laws.containers_leave_no_trace(Kind(Rounds), lambda: np.arange(300.0), list(range(300))),
    "drops what is missing": lambda _: laws.omitting_is_not_dropping(Kind(SkipsMissing, options={"start": 20.0})),
    "drops what is missing by position": lambda _: laws.missing_items_keep_their_positions(
        Kind(SkipsMissing), [math.nan, 1.0] * 300, [math.nan, 1.0] * 300
    ),
    "its text shows state": lambda _: laws.text_and_attributes_show_no_raw_state(Keyed(ShowsState)),
    "an attribute shows state": lambda _: laws.text_and_attributes_show_no_raw_state(Kind(HasARawAttribute)),
    "is copied": lambda _: laws.no_copy_is_made(Kind(CanBeCopied), copy.copy),
    "is copied deeply": lambda _: laws.no_copy_is_made(Kind(CanBeCopied), copy.deepcopy),
    "is called from within": lambda _: laws.no_call_from_within(Segments(Unguarded), "update_many"),
    "is used after a fork": lambda folder: laws.no_use_after_a_fork(
        "Unguarded", "from Python", folder / "state", "tests.laws.test_broken_estimators", "UNGUARDED"
    ),
    "forgets its seed": lambda _: laws.seeds_fix_the_coins(Kind(ForgetsTheSeed)),
    "does not re-anchor": lambda _: laws.nothing_is_released_twice(Kind(WithoutReAnchoring, (0.25,))),
    "counts twice": lambda _: laws.nothing_is_released_twice(one_quantile_of(CountsTwice)),
    "moves edges by raw counts": lambda _: laws.nothing_is_released_twice(one_quantile_of(EdgesFromRawCounts)),
    "draws noise again": lambda _: laws.release_is_repeated(Kind(AlwaysFresh)),
    "forgets its place": lambda folder: laws.checkpoint_goes_on_exactly(
        Kind(ForgetsItsPlace), np.tile(STREAM, 10), 2_000, 10, folder / "state"
    ),
    "forgets its release": lambda folder: laws.release_is_restored(Kind(ForgetsItsRelease), folder / "state"),
    "keeps stale items": lambda folder: laws.stale_checkpoint_forgets_its_items(Kind(KeepsStaleItems), folder),
    "is never stale": lambda folder: laws.one_of_all_copies_goes_on(Kind(NeverStale), folder),
    "keeps all items": lambda folder: laws.memory_is_bounded(replace(KINDS["Frugal1U"], cls=KeepsItems), folder / "s"),
}


def one_quantile_of(cls: type[Any]) -> Kind:
    """The audit's estimators are made with one quantile, which is not in a list."""

    def make(quantiles: list[float], guarantee: dpf.Guarantee, **options: Any) -> Any:
        return cls(quantiles[0], guarantee, **options)

    return Segments(make, (0.5,))  # type: ignore[arg-type]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_laws__are_broken_by_an_estimator_that(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_noise(monkeypatch, no_noise)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        MISTAKES[mistake](tmp_path)
