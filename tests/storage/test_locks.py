"""Locks: one holder at a time, whatever the path, and free again when a process dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpfrugal.errors import CheckpointError
from dpfrugal.storage.locks import Busy, checkpoint_lock, locked

HOLD = """
import sys
from dpfrugal.storage.locks import checkpoint_lock
with checkpoint_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_locked__excludes_other_open_files_of_the_inode(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"")
    (tmp_path / "other").hardlink_to(tmp_path / "one")
    one, other = (os.open(tmp_path / name, os.O_RDONLY) for name in ("one", "other"))
    with locked(one, 0.0), pytest.raises(Busy), locked(other, 0.02):
        pass
    with locked(one, 0.0, shared=True), locked(other, 0.0, shared=True):
        pass
    with locked(other, 0.0), pytest.raises(Busy), locked(one, 0.0, shared=True):
        pass
    os.close(one)
    os.close(other)


def test_locked__is_free_again_although_a_forked_process_holds_the_file(tmp_path: Path) -> None:
    one = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with locked(one, 0.0):
        copy = os.dup(one)  # as a fork makes
    os.close(one)
    other = os.open(tmp_path / "file", os.O_RDWR)
    with locked(other, 0.0):
        pass
    os.close(copy)
    os.close(other)


def test_checkpoint_lock__is_of_one_process_until_it_ends_or_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for end in (lambda holder: holder.stdin.close(), lambda holder: os.kill(holder.pid, signal.SIGKILL)):
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            said = r"^Another process uses the checkpoint .*state: end that one first"
            with pytest.raises(CheckpointError, match=said), checkpoint_lock(path):
                pytest.fail("two processes held it")
            end(holder)
        with checkpoint_lock(path):
            pass
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_lock__is_one_for_a_file_and_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "state")
    held, again = checkpoint_lock(tmp_path / "state"), checkpoint_lock(tmp_path / "link")
    with held, pytest.raises(CheckpointError, match="Another process"), again:
        pytest.fail("held twice")


def test_checkpoint_lock__that_cannot_be_made_is_reported_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="could not be locked"), checkpoint_lock(tmp_path / "none" / "state"):
        pass
