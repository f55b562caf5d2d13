"""One ledger under several paths: a mounted file, a hard link, another file in its place; and disks that fail."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpfrugal as dpf
from reliability import io_faults
from tests.support.command_line import COMMAND
from tests.support.mounts import mounted

ONE = dpf.PureDP(epsilon=1.0)
TOTAL = dpf.PureDP(epsilon=20.0)
# Four processes that spend one each time; each says how many spends were confirmed to it.
SPEND = """
import os, sys
import dpfrugal as dpf
ledger = dpf.Ledger(sys.argv[1])
children = []
for _ in range(4):
    reader, writer = os.pipe()
    if not os.fork():
        confirmed = 0
        for _ in range(7):
            try:
                ledger.spend("clicks", dpf.PureDP(epsilon=1.0))
                confirmed += 1
            except dpf.BudgetExceeded:
                break
        os.write(writer, b"%d" % confirmed)
        os._exit(0)
    children.append(reader)
    os.close(writer)
print(sum(int(os.read(reader, 9)) for reader in children))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "one").mkdir()
    ledger = dpf.Ledger(tmp_path / "one" / "budget.db", total=TOTAL)
    ledger.open("clicks", TOTAL)
    return ledger.path


def test_ledger__that_is_mounted_as_a_single_file_is_never_overspent(path: Path, tmp_path: Path) -> None:
    """Eight processes, four of them under each path, as two containers are that were given the file."""
    second = tmp_path / "two" / "budget.db"
    second.parent.mkdir()
    second.touch()
    script = [sys.executable, "-c", SPEND]
    with (
        mounted(path, second, [*script, str(second)], stdout=subprocess.PIPE, text=True) as there,
        subprocess.Popen([*script, str(path)], stdout=subprocess.PIPE, text=True) as here,
    ):
        confirmed = int(there.communicate()[0]) + int(here.communicate()[0])
    ledger = dpf.Ledger(path)
    assert confirmed == len(ledger.dataset("clicks").spends) == 20
    assert ledger.left("clicks") is None
    assert ledger.verify().spends == 20
    assert [each.name for each in second.parent.iterdir()] == ["budget.db"]  # no log is left that nobody else sees


def test_ledger__with_a_hard_link_is_refused_under_both_names(path: Path, tmp_path: Path) -> None:
    opened = dpf.Ledger(path)
    link = tmp_path / "link.db"
    link.hardlink_to(path)
    for use in (
        lambda: dpf.Ledger(path),
        lambda: dpf.Ledger(link),
        lambda: dpf.Ledger(link, total=TOTAL),
        lambda: opened.spend("clicks", ONE),
        lambda: opened.left("clicks"),
    ):
        with pytest.raises(dpf.LedgerError, match=r"has 2 names \(hard links\); a ledger may have one only"):
            use()
    link.unlink()
    opened.spend("clicks", ONE)
    assert dpf.Ledger(path).left("clicks") == dpf.PureDP(epsilon=19.0)


def test_ledger__notices_a_file_that_is_not_the_one_that_was_opened(path: Path, tmp_path: Path) -> None:
    ledger = dpf.Ledger(path)
    shutil.copy(path, tmp_path / "older.db")
    ledger.spend("clicks", ONE)
    shutil.copy(path, tmp_path / "newer.db")
    os.replace(tmp_path / "older.db", path)
    with pytest.raises(dpf.LedgerError, match="is not the file that was opened"):
        ledger.spend("clicks", ONE)
    ledger = dpf.Ledger(path)
    ledger.spend("clicks", ONE)
    ledger.spend("clicks", ONE)
    path.write_bytes((tmp_path / "newer.db").read_bytes())  # the same file with an older content
    with pytest.raises(dpf.LedgerError, match="fewer spends than before: an older copy"):
        ledger.left("clicks")


def test_ledger__put_at_the_path_of_another_is_refused_by_its_identity(path: Path, tmp_path: Path) -> None:
    ledger = dpf.Ledger(path)
    other = dpf.Ledger(tmp_path / "other.db", total=TOTAL)
    other.spend("clicks", ONE)
    path.write_bytes(other.path.read_bytes())
    for use in (lambda: ledger.spend("clicks", ONE), lambda: ledger.left("clicks")):
        with pytest.raises(dpf.LedgerError, match="is another ledger than the one that was opened"):
            use()


INTERRUPT = """
import os, sys
import dpfrugal as dpf
from dpfrugal.budget.ledger_file import LedgerFile
ledger = dpf.Ledger(sys.argv[1])
made = LedgerFile._connected
class Connection:
    def __init__(self, real): self.real = real
    def execute(self, statement, *given):
        if "wal_autocheckpoint" in statement: statement = "PRAGMA wal_autocheckpoint = 0"
        if "wal_checkpoint" in statement: os._exit(9)
        return self.real.execute(statement, *given)
from contextlib import contextmanager
@contextmanager
def connected(self, mode):
    with made(self, mode) as connection: yield Connection(connection)
LedgerFile._connected = connected
ledger.spend("clicks", dpf.PureDP(epsilon=2.5))
"""


def interrupted(path: Path) -> tuple[Path, Path]:
    """A process died after its spend was in the log and before it was in the file: the log is left."""
    done = subprocess.run([sys.executable, "-c", INTERRUPT, str(path)], check=False)
    assert done.returncode == 9
    log, index = (path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm"))
    assert log.stat().st_size > 0
    return log, index


def test_ledger__recovers_what_a_killed_process_has_left_in_the_log(path: Path) -> None:
    log, _ = interrupted(path)
    assert dpf.Ledger(path).left("clicks") == dpf.PureDP(epsilon=17.5)
    assert not log.exists()


def test_ledger__drops_the_log_of_a_killed_process_after_another_path_has_spent(path: Path, tmp_path: Path) -> None:
    """It was never confirmed. Taken in later, it would undo what was confirmed under the other path."""
    log, index = interrupted(path)
    aside = [each.rename(tmp_path / each.name) for each in (log, index)]  # who comes by another path sees no log
    dpf.Ledger(path).spend("clicks", ONE)
    for each, place in zip(aside, (log, index), strict=True):
        each.rename(place)
    ledger = dpf.Ledger(path)
    assert ledger.left("clicks") == dpf.PureDP(epsilon=19.0)
    assert not log.exists()
    assert ledger.verify().spends == 1


def test_ledger__is_shown_where_nothing_can_be_written(path: Path, tmp_path: Path) -> None:
    """On a disk that is mounted read-only, with what was spent; spending is refused."""
    dpf.Ledger(path).spend("clicks", ONE)
    there = tmp_path / "read only"
    there.mkdir()
    command = [*COMMAND, "ledger", "show", str(there / path.name), "--json"]
    with mounted(path.parent, there, command, read_only=True, stdout=subprocess.PIPE, text=True) as shown:
        (standing,) = json.loads(shown.communicate()[0])["datasets"]
    assert standing["left"] == {"PureDP": {"epsilon": 19.0}}
    spend = [*COMMAND, "ledger", "add", str(there / path.name), "clicks", "--epsilon", "1", "--spent-by", "me"]
    with mounted(path.parent, there, spend, read_only=True, stderr=subprocess.PIPE, text=True) as refusal:
        assert "cannot be used: it cannot be written" in refusal.communicate()[1]
    assert refusal.returncode == 2


@pytest.mark.skipif(io_faults.library() is None, reason="NOT TESTED: a disk that fails. There is no C compiler here.")
def test_ledger__on_a_disk_that_fails_to_read_is_not_called_damaged(path: Path, tmp_path: Path) -> None:
    """Advice to restore a backup would lose what was spent since."""
    dpf.Ledger(path).spend("clicks", ONE)
    failed = 0
    for at in (1, 6, 12):
        note = tmp_path / f"failed {at}"
        faults = io_faults.environment("read", "one/budget.db", at, errno.EIO, stays=True, note=note)
        done = subprocess.run(
            [*COMMAND, "ledger", "show", str(path)], env=faults, capture_output=True, text=True, check=False
        )
        if note.exists():
            failed += 1
            assert done.returncode == 2, done
            assert "the disk fails" in done.stderr
            assert "damaged" not in done.stderr
            assert "backup" not in done.stderr
    assert failed == 3


def test_ledger__that_is_a_pipe_or_a_device_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(dpf.LedgerError, match=f"is {kind}, not a ledger"):
            dpf.Ledger(path, total=TOTAL)
