"""Locks on files among processes: held by one at a time, and free again when its process ends, however it ends.

The lock is on the file itself (its inode), whatever path it has: a second path to the same file, through a bind mount
or a link, meets the same lock. Threads of one process exclude each other as processes do.
"""

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dpfrugal.errors import CheckpointError, ParameterError

LONGEST_PAUSE: Final = 0.005


class Busy(Exception):  # noqa: N818 - caught where the file's name is known
    """Others keep the lock."""


@contextmanager
def locked(descriptor: int, patience: float, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of an open file; ``Busy`` if others keep it for more than ``patience`` seconds."""
    wanted = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    deadline, pause = time.monotonic() + patience, 0.0002
    while True:
        try:
            fcntl.flock(descriptor, wanted)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Busy from None
        time.sleep(pause * (0.5 + random.random()))  # noqa: S311 - so that those who wait do not wake together
        pause = min(2 * pause, LONGEST_PAUSE)
    try:
        yield
    finally:
        # Said aloud: a process that was forked meanwhile holds the same open file, and closing would not release it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def folder_lock(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only process that writes to a folder; ``ParameterError`` while another one is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with locked(descriptor, 0.0):
            yield
    except Busy:
        raise ParameterError(
            f"Another process writes to the folder {Path(folder)}: wait for it, or name another one."
        ) from None
    finally:
        os.close(descriptor)


@contextmanager
def checkpoint_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only process that continues from a checkpoint and writes it; ``CheckpointError`` while another one is.

    The lock is an empty file beside it, ``.NAME.lock``, as the checkpoint itself is replaced whenever it is saved. It
    is removed at the end; one that a killed process has left behind locks nobody out.
    """
    target = Path(path).resolve()
    beside = target.with_name(f".{target.name}.lock")
    descriptor = _own_lock(beside, target)
    try:
        yield
    finally:
        with suppress(OSError):
            beside.unlink()  # while it is still held: whoever opened it meanwhile sees that it is gone
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _own_lock(beside: Path, target: Path) -> int:
    """The open and locked file ``beside`` a checkpoint."""
    while True:
        try:
            descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise CheckpointError(f"The checkpoint {target} could not be locked: {error.strerror}.") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(beside), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise CheckpointError(
                f"Another process uses the checkpoint {target}: end that one first, or name another file."
            ) from None
        except FileNotFoundError:
            pass
        os.close(descriptor)  # its last user removed it in between: make a new one
