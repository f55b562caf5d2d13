"""Files that survive a crash: what was written, and the name it was given, are on disk before a function returns.

Only regular files are read: a pipe would wait for a writer for ever, and a device never ends.
"""

import os
import stat
from collections.abc import Iterable
from typing import BinaryIO, Final

KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NoFile(Exception):  # noqa: N818 - its message says what there is instead
    """What was named is no regular file."""


def kind_of(path: str | os.PathLike[str]) -> str:
    """What there is instead of a regular file; empty where there is one, or nothing."""
    try:
        return KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "")
    except OSError:
        return ""


def opened_to_read(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, open; ``NoFile`` for anything else, without waiting for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = KINDS.get(stat.S_IFMT(os.fstat(descriptor).st_mode))
    if kind is not None:
        os.close(descriptor)
        raise NoFile(kind)
    return os.fdopen(descriptor, "rb")


def write_new(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Write a new file that only its owner may read; one that exists already is never replaced."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Put the names of a folder's files on disk: a file that was created or moved there stays after a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
