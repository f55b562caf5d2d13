"""What both estimators of windows share: each item is in one window, and a window ends once, after the ledger knows."""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.budget.spending import Account
from tests.support.bits import replace_bits

ONE = dpf.PureDP(epsilon=1.0)


def one(**options: Any) -> Any:
    return dpf.WindowQuantile([0.5, 0.9], ONE, **options)


def keyed(**options: Any) -> Any:
    return dpf.KeyedWindowQuantile([0.5, 0.9], ONE, keys=["a", "b"], **options)


BOTH = pytest.mark.parametrize("make", [one, keyed])


def take(estimator: Any, number: int, first: int = 0) -> None:
    items = np.arange(first, first + number, dtype=np.float64)
    if isinstance(estimator, dpf.KeyedWindowQuantile):
        estimator.update_many((["a", "b", "c"] * (number // 3 + 1))[:number], items)
    else:
        estimator.update_many(items)


def shown(estimator: Any, seed: int = 5) -> Any:
    """All that a release shows, with bits that another call repeats."""
    with pytest.MonkeyPatch.context() as patch:
        replace_bits(patch, seed)
        release = estimator.release()
    return release.to_pylist() if hasattr(release, "to_pylist") else release.to_dict()


class Model(NamedTuple):
    """What is known of one estimator without looking into it."""

    before: int = 0
    in_window: int = 0
    windows: int = 0

    def ended(self, *, released: bool) -> "Model":
        return Model(self.before + self.in_window, 0, self.windows + released)


STEPS = st.lists(
    st.tuples(st.sampled_from(["take", "take", "release", "discard", "hand over", "save"]), st.integers(0, 40)),
    max_size=14,
)


@BOTH
@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_windows__count_every_item_once(make: Any, steps: list[tuple[str, int]]) -> None:
    """Whatever happens in whatever order: taken in, released, discarded, handed over, saved and loaded."""
    estimator, model = make(), Model()
    for step, number in steps:
        if step == "take":
            take(estimator, number)
            model = model._replace(in_window=model.in_window + number)
        elif step == "release":
            estimator.release()
            model = model.ended(released=True)
        elif step == "discard":
            estimator.discard()
            model = model.ended(released=False)
        elif step == "hand over":
            other = make()
            take(other, number)
            estimator.merge(other.hand_over())
            assert (other.items, other.items_in_window, other.windows_released) == (number, 0, 0)
            model = model._replace(in_window=model.in_window + number)
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "state.private"
                estimator.save(path)
                estimator = type(estimator).load(path, accept_replay_risk=True)
        assert estimator.items == model.before + model.in_window
        assert estimator.items_in_window == model.in_window
        assert estimator.windows_released == model.windows


@BOTH
@settings(max_examples=25, deadline=None)
@given(earlier=st.lists(st.integers(1, 60), max_size=3), number=st.integers(0, 60), released=st.booleans())
def test_windows__that_have_ended_leave_nothing_behind(
    make: Any, earlier: list[int], number: int, released: bool
) -> None:
    """A window's release is that of an estimator which never saw the windows before it."""
    estimator, fresh = make(), make()
    for window, size in enumerate(earlier):
        take(estimator, size, first=10**6 * (window + 1))
        estimator.release() if released else estimator.discard()
    for each in (estimator, fresh):
        take(each, number)
    mine, new = (shown(each) for each in (estimator, fresh))
    if isinstance(mine, dict):
        assert mine.pop("window", None) != new.pop("window", None) or not (released and earlier)
    assert mine == new


@BOTH
def test_window__is_counted_in_the_ledger_before_its_items_are_forgotten(make: Any, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=2.5))
    estimator = make(ledger=ledger, dataset="clicks", windows=1)
    for _ in range(2):
        take(estimator, 30)
        estimator.release()
    take(estimator, 30)
    with pytest.raises(dpf.BudgetExceeded):
        estimator.release()
    assert (estimator.items_in_window, estimator.windows_released) == (30, 2), "the refused window is still there"
    assert len(ledger.dataset("clicks").spends) == 2


@BOTH
def test_window__after_a_crash_between_the_ledger_and_the_noise_is_not_released_again(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=ONE)
    estimator = make(ledger=ledger, dataset="clicks")
    take(estimator, 30)
    estimator.save(tmp_path / "state.private")
    counted = Account.before_noise

    def crash(account: Account) -> None:
        counted(account)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Account, "before_noise", crash)
        with pytest.raises(KeyboardInterrupt):
            estimator.release()
    with pytest.raises(dpf.ReplayError, match="stale"):
        type(estimator).load(tmp_path / "state.private", ledger=ledger)
    again = type(estimator).load(tmp_path / "state.private", ledger=ledger, forget_if_stale=True)
    assert again.items_in_window == 0, "what may have been released is forgotten"


@BOTH
def test_merge__that_is_refused_changes_neither(make: Any) -> None:
    """The one that would be taken in keeps its window, the other one has none of it."""
    mine, of_times = make(), make()
    take(mine, 10)
    names = (["a"] * 10,) if make is keyed else ()
    of_times.update_many(*names, np.arange(10).astype("datetime64[s]"))
    with pytest.raises(dpf.DPFrugalError):
        mine.merge(of_times)
    assert (mine.items_in_window, of_times.items_in_window) == (10, 10)
    other = make(neighbours="add-remove")
    with pytest.raises(dpf.ParameterError, match="same parameters; neighbours"):
        mine.merge(other)
    wrong = keyed() if make is one else one()
    with pytest.raises(dpf.ParameterError, match="other must be a"):
        mine.merge(wrong)
    assert mine.items_in_window == 10


@BOTH
def test_private_number_of_items__is_shown_nowhere(make: Any) -> None:
    texts = set()
    for number in (0, 7, 50):
        estimator = make(neighbours="add-remove")
        take(estimator, number)
        assert estimator.items is estimator.items_in_window is None
        texts.add(repr(estimator))
    assert len(texts) == 1
