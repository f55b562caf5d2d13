"""The checkpoint of ``watch``: saved before a release is seen, not twice shown as new, and never another query's."""

import time
from pathlib import Path
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.cli.streams.watch_checkpoint import INTERVAL, SPARING, CheckpointFile, WatchCheckpoint, WindowCheckpoint
from dpfrugal.errors import CheckpointError, ParameterError

ONE = dpf.PureDP(epsilon=1.0)


def windows(ledger: dpf.Ledger | None = None, dataset: str | None = None, **options: Any) -> dpf.WindowQuantile:
    return dpf.WindowQuantile(0.5, ONE, ledger=ledger, dataset=dataset, **options)


def walk(ledger: dpf.Ledger | None = None, dataset: str | None = None) -> dpf.DPFrugal1U:
    return dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset=dataset)


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    return dpf.Ledger(tmp_path / "budget.db", total=ONE)


def test_checkpoint__without_a_file_does_nothing(tmp_path: Path) -> None:
    checkpoint = WindowCheckpoint(None, None)
    estimator = checkpoint.estimator(windows, None)
    with checkpoint.locked():
        estimator.update_many([1.0] * 10)
        checkpoint.keep(estimator)
        checkpoint.save(estimator, ["a line"])
    assert list(tmp_path.iterdir()) == []


def test_checkpoint__needs_a_ledger_or_an_accepted_risk(tmp_path: Path, ledger: dpf.Ledger) -> None:
    CheckpointFile.check(None, None, accept_replay_risk=False)
    CheckpointFile.check(tmp_path / "c", ledger, accept_replay_risk=False)
    CheckpointFile.check(tmp_path / "c", None, accept_replay_risk=True)
    with pytest.raises(ParameterError, match="--accept-replay-risk"):
        CheckpointFile.check(tmp_path / "c", None, accept_replay_risk=False)


def test_checkpoint__goes_on_where_it_was_saved(tmp_path: Path, ledger: dpf.Ledger) -> None:
    first = WindowCheckpoint(tmp_path / "c", ledger)
    estimator = first.estimator(windows, "clicks")
    estimator.update_many([1.0] * 20)
    first.items, first.end = 20, 1234.5
    first.save(estimator, ["the window's line"])
    again = WindowCheckpoint(tmp_path / "c", ledger)
    found = again.estimator(windows, "clicks")
    assert (found.items, again.items, again.end, again.restored) == (20, 20, 1234.5, True)
    assert again.unprinted == ["the window's line"], "it may not have been printed"
    again.save(found)
    third = WindowCheckpoint(tmp_path / "c", ledger)
    third.estimator(windows, "clicks")
    assert third.unprinted == []


def test_checkpoint__of_a_window_that_was_released_since_drops_its_items(
    tmp_path: Path, ledger: dpf.Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kill between the ledger's record and the save: nobody may see those items again."""
    checkpoint = WindowCheckpoint(tmp_path / "c", ledger)
    estimator = checkpoint.estimator(windows, "clicks")
    estimator.update_many([1.0] * 20)
    checkpoint.items = 20
    checkpoint.save(estimator)
    estimator.release()  # and the process is killed
    again = WindowCheckpoint(tmp_path / "c", ledger)
    found = again.estimator(windows, "clicks")
    assert (found.items_in_window, again.items) == (0, 0)
    assert "20 items in it are dropped, so that none is released twice" in capsys.readouterr().err


def test_checkpoint__of_a_release_that_was_not_printed_gives_the_same_one(tmp_path: Path, ledger: dpf.Ledger) -> None:
    checkpoint = WatchCheckpoint(tmp_path / "c", ledger)
    estimator = checkpoint.estimator(walk, "clicks")
    estimator.update_many([1.0] * 20)
    value = estimator.release().value
    checkpoint.save(estimator, released=True, printed=False)
    again = WatchCheckpoint(tmp_path / "c", ledger)
    found = again.estimator(walk, "clicks")
    assert again.unprinted
    assert (again.shown_items, again.went_on_at, found.release().value) == (20, 20, value)
    again.save(found, released=True)
    third = WatchCheckpoint(tmp_path / "c", ledger)
    third.estimator(walk, "clicks")
    assert not third.unprinted


@pytest.mark.parametrize("change", [{"quantile": 0.9}, {"hold": 5}, {"dataset": "visits"}], ids=str)
def test_checkpoint__of_other_options_is_refused(tmp_path: Path, ledger: dpf.Ledger, change: dict[str, Any]) -> None:
    WindowCheckpoint(tmp_path / "c", ledger).estimator(windows, "clicks")
    dataset = change.pop("dataset", "clicks")
    options = {"quantile": 0.5} | change

    def other(ledger: dpf.Ledger | None, dataset: str | None) -> dpf.WindowQuantile:
        return dpf.WindowQuantile(guarantee=ONE, ledger=ledger, dataset=dataset, **options)

    with pytest.raises(CheckpointError, match="made with other options"):
        WindowCheckpoint(tmp_path / "c", ledger).estimator(other, dataset)


def test_checkpoint__of_another_program_is_refused(tmp_path: Path) -> None:
    """One that Python's ``save`` wrote has no notes of a watch."""
    windows().save(tmp_path / "c")
    with pytest.raises(CheckpointError, match="not a checkpoint of dpfrugal watch"):
        WindowCheckpoint(tmp_path / "c", None).estimator(windows, None)


def test_checkpoint__is_locked_while_it_is_used(tmp_path: Path) -> None:
    with WindowCheckpoint(tmp_path / "c", None).locked():  # noqa: SIM117 - the second one is refused
        with pytest.raises(CheckpointError, match="Another process"):
            with WindowCheckpoint(tmp_path / "c", None).locked():
                pass
    with WindowCheckpoint(tmp_path / "c", None).locked():
        pass


def test_keep__saves_at_once_after_noise_and_else_no_oftener_than_saving_pays(
    tmp_path: Path, ledger: dpf.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"at": 100.0}
    monkeypatch.setattr(time, "monotonic", lambda: now["at"])
    checkpoint = WindowCheckpoint(tmp_path / "c", ledger)
    estimator = checkpoint.estimator(windows, "clicks")

    def saved_by_keep(**options: bool) -> bool:
        before = (tmp_path / "c").stat().st_ino
        checkpoint.keep(estimator, **options)
        return (tmp_path / "c").stat().st_ino != before

    estimator.update_many([1.0])
    assert not saved_by_keep(), "a second has not passed"
    now["at"] += INTERVAL * 1.01
    assert saved_by_keep()
    now["at"] += INTERVAL * 50
    assert not saved_by_keep(arrived=False), "nothing has come since"
    estimator.update_many([1.0])
    assert saved_by_keep()
    estimator.release()
    assert saved_by_keep(arrived=False), "noise was drawn: the state without the items is saved at once"
    checkpoint._took = 1.0  # saving is slow
    estimator.update_many([1.0])
    now["at"] += SPARING * 0.9
    assert not saved_by_keep()
    now["at"] += SPARING * 0.2
    assert saved_by_keep(arrived=False), "what came while it was too early is saved when it is time"
