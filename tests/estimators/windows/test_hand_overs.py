"""Hand-overs are taken in once, also by an estimator that goes on from a checkpoint of before."""

import time
from pathlib import Path
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.estimators.windows import hand_overs
from dpfrugal.estimators.windows.hand_overs import HandOvers

ONE = dpf.PureDP(epsilon=1.0)


def test_hand_overs__are_admitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_overs, "REMEMBERED", 2)
    taken = HandOvers()
    marks = [HandOvers.mark() for _ in range(3)]
    for mark in marks:
        taken.remember(taken.check(mark))
        for known in (taken, HandOvers.of_record(taken.record())):
            with pytest.raises(dpf.CheckpointError, match="before"):
                known.check(mark)
    assert len(taken.record()[0]) == 2


@pytest.mark.parametrize(
    "broken",
    [{}, {"hand_over": "x"}, {"hand_over": "x", "handed_over_at": 3}, {"hand_over": 3, "handed_over_at": "0x1"}],
)
def test_hand_overs__without_a_name_or_a_time_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(dpf.CheckpointError):
        HandOvers().check(broken)


def test_hand_overs__of_no_time_are_older_than_any() -> None:
    taken = HandOvers()
    taken.lose()
    for at in ("nan", "-inf", "0x0p+0"):
        with pytest.raises(dpf.CheckpointError, match="stale checkpoint"):
            taken.check({"hand_over": "x", "handed_over_at": at})


def test_hand_over__that_was_released_is_not_taken_in_again_after_a_crash(tmp_path: Path) -> None:
    """A checkpoint from before the merge does not know its name: whatever is older than the new start is refused."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=ONE)
    first, second = dpf.WindowQuantile(0.5, ONE, ledger=ledger, dataset="clicks"), dpf.WindowQuantile(0.5, ONE)
    second.update_many([7.0] * 500)
    handed = second.hand_over()
    first.save(tmp_path / "state")
    first.merge(handed)
    first.release()
    again = dpf.WindowQuantile.load(tmp_path / "state", ledger=ledger, forget_if_stale=True)
    again.save(tmp_path / "state")
    for estimator in (again, dpf.WindowQuantile.load(tmp_path / "state", ledger=ledger)):
        with pytest.raises(dpf.CheckpointError, match="stale checkpoint"):
            estimator.merge(handed)
        assert estimator.items_in_window == 0
    time.sleep(0.01)
    second.update_many([3.0] * 400)
    again.merge(second.hand_over())
    assert again.items_in_window == 400


def test_hand_over__that_was_not_released_is_taken_in_after_a_crash(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=ONE)
    first, second = dpf.WindowQuantile(0.5, ONE, ledger=ledger, dataset="clicks"), dpf.WindowQuantile(0.5, ONE)
    second.update_many([7.0] * 500)
    handed = second.hand_over()
    first.save(tmp_path / "state")
    first.merge(handed)
    again = dpf.WindowQuantile.load(tmp_path / "state", ledger=ledger)
    again.merge(handed)
    assert again.release().value == 7.0
    with pytest.raises(dpf.ReplayError):
        first.release()
