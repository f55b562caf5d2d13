"""Files that survive a crash: what was written, and the name it was given, are on disk before a function returns."""

import os
from collections.abc import Iterable


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
