"""Files and streams that a command writes: found usable before a guarantee is spent, and never half written.

A file is written as a draft beside it and renamed: a full disk or a kill leaves the old file. What was released and
paid for and cannot be written is kept: in the ledger, where there is one, else it goes to standard error.
"""

import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger


def usable_output() -> None:
    """Refuse, before anything is spent, a standard output that nobody reads or that is on a full disk."""
    try:
        descriptor = sys.stdout.fileno()
        status = os.fstat(descriptor)
    except (OSError, ValueError):  # a stream of this process
        return
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(events & select.POLLERR for _, events in poll.poll(0)):
            raise BrokenPipeError
    if stat.S_ISREG(status.st_mode):
        disk = os.fstatvfs(descriptor)
        if disk.f_blocks and not disk.f_bavail:
            raise ParameterError("The disk of standard output is full: nothing was read or spent.")


@contextmanager
def draft(output: Path) -> Iterator[Path]:
    """A path to write to, which becomes ``output`` when all of it is on disk; what is no regular file is itself."""
    target = output.resolve()
    if target.exists() and not target.is_file():
        yield target
        return
    made = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        yield made
        with made.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            made.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(made, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(output)) from None
    finally:
        with suppress(OSError):
            made.unlink()


@contextmanager
def flushed() -> Iterator[None]:
    """Print in here; it is written when this ends."""
    yield
    sys.stdout.flush()


@contextmanager
def kept_if_unwritten(
    lines: Callable[[], Sequence[str]], ledger: "Ledger | None", dataset: str | None
) -> Iterator[None]:
    """Write a release in here; if that fails, it is kept, and the error says where."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        if ledger is not None and dataset is not None:
            ledger.keep(dataset, "\n".join(lines()))
            said = f"The release is kept: dpfrugal ledger kept {ledger.path} {dataset!r} prints it."
            from dpfrugal.cli.terminal.stderr_notes import notes

            with suppress(OSError):
                notes.print(said)
        else:
            with suppress(OSError):
                sys.stderr.write("".join(f"{line}\n" for line in lines()))
                sys.stderr.flush()
        raise
