"""Files that survive a crash."""

import os
from pathlib import Path

import pytest

from dpfrugal.storage.durable import sync_folder, write_new


def test_write_new__writes_what_only_its_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "state"
    mask = os.umask(0)
    try:
        write_new(path, [b"one ", b"", b"two"])
    finally:
        os.umask(mask)
    assert path.read_bytes() == b"one two"
    assert path.stat().st_mode & 0o777 == 0o600


def test_write_new__replaces_nothing_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "state", [b"new"])
    assert (tmp_path / "state").read_bytes() == b"old"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"exists|symbolic"):
        write_new(tmp_path / "link", [b"new"])
    assert not (tmp_path / "elsewhere").exists()


def test_write_new__has_it_on_disk_when_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = [], os.fsync

    def recorded(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    write_new(tmp_path / "state", [b"x" * 1000, b"y" * 1000])
    assert synced == [2000]
    sync_folder(tmp_path)
    assert len(synced) == 2
