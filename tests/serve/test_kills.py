"""A few of the kills of ``make test-serve``, and that its checks find what they look for."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpfrugal as dpf
from reliability.serve_kills import EPSILON, SETTINGS, Kills
from tests.support.repository import ROOT
from tests.support.serving import NOON, environment, served


def test_kills__nothing_is_released_twice_lost_or_overspent() -> None:
    command = [sys.executable, "-m", "reliability.serve_kills", "--kills", "3"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "none twice" in done.stdout


def released(folder: Path, value: int, ledger: bool = True) -> Kills:
    """A folder with the release of one window whose items were all of this value."""
    work = Kills(folder)
    text = SETTINGS if ledger else SETTINGS.replace("ledger: budget.db\n", "")
    with served(folder, text) as one:
        if ledger:
            one.reserve()
        one.send(*[{"value": value}] * 1000)
        one.to(NOON + 1)
    if not ledger:
        dpf.Ledger(folder / "budget.db", total=dpf.PureDP(epsilon=EPSILON))
    return work


OWN = int(NOON) % 100_000


def test_kills__a_right_release_passes(tmp_path: Path) -> None:
    work = released(tmp_path, OWN)
    work.check()
    assert work.released == 1


def test_kills__items_of_another_second_are_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="another's items"):
        released(tmp_path, OWN - 3000).check()


def test_kills__a_release_that_is_lost_or_changed_is_found(tmp_path: Path) -> None:
    work = released(tmp_path, OWN)
    work.seen["2027-01-15T12:00:09Z"] = {}
    with pytest.raises(AssertionError, match="is lost"):
        work.check()


def test_kills__a_release_that_is_not_paid_for_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not paid for"):
        released(tmp_path, OWN, ledger=False).check()
