"""Columns of numbers, and how a file that cannot give one is refused.

A missing column and a damaged file are reported in one sentence, a text line that is no number by its line number.
pyarrow's own messages quote what they could not read, so they never travel with an error, not even as its context.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from dpfrugal.errors import TableError

MOST_NAMES = 20


@dataclass(frozen=True)
class Column:
    """A column of numbers: its size in some unit of progress (0: unknown), and its batches with their progress."""

    name: str
    total: int
    unit: Literal["rows", "bytes"]
    batches: Iterator[tuple[Any, int]]


def attempt(action: Callable[[], Any], failure: TableError, unreadable: tuple[type[Exception], ...] = ()) -> Any:
    """What ``action`` gives, or ``failure``: raised outside the handler, so that no message travels with it."""
    try:
        return action()
    except (pa.ArrowException, OSError, *unreadable):
        pass
    raise failure


def chosen(path: Path, names: list[str], column: str | None) -> str:
    """The column to read; names of columns are public, so they may be listed."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    shown += f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    if column is None:
        if len(names) == 1:
            return names[0]
        raise TableError(f"{path}: choose a column with --column; there are {shown}.")
    if column not in names:
        raise TableError(f"{path}: there is no column {column!r}; there are {shown}.")
    if names.count(column) > 1:
        raise TableError(f"{path}: there are {names.count(column)} columns {column!r}; rename all but one.")
    return column


def damaged(path: Path, kind: str) -> TableError:
    """The sentence for a file that is not what it seems."""
    return TableError(f"{path}: this is no readable {kind} file; it may be truncated or damaged.")


def regrouped(batches: Iterator[tuple[Any, int]], rows: int, ends: Sequence[int] = ()) -> Iterator[tuple[Any, int]]:
    """The same rows, in tables that end after every so many rows, and at each of the ends.

    A reader cuts by bytes, so where its batches end depends on what all rows hold.
    """

    def end_after(done: int) -> int:
        return min([(done // rows + 1) * rows, *(end for end in ends if end > done)])

    waiting: list[Any] = []
    done, held, made = 0, 0, 0
    for batch, advance in batches:
        first, made = 0, made + advance
        while done + held + len(batch) - first >= (end := end_after(done)):
            last = first + end - done - held
            yield pa.Table.from_batches([*waiting, batch.slice(first, last - first)]), made
            waiting, done, held, made, first = [], end, 0, 0, last
        waiting.append(batch.slice(first))
        held += len(batch) - first
    if held:
        yield pa.Table.from_batches(waiting), made


def read_ahead(
    batches: Iterator[tuple[Any, int]], most_waiting: int = 64, *, endless: bool = False
) -> Iterator[tuple[Any, int]]:
    """The same batches, read by a thread of their own while earlier ones are being processed.

    Who stops early waits until the thread has stopped reading, unless what is read may be ``endless`` and silent.
    """
    waiting: queue.Queue[tuple[Any, int] | BaseException | None] = queue.Queue(most_waiting)
    abandoned = threading.Event()

    def hand_over(batch: tuple[Any, int] | BaseException | None) -> None:
        while not abandoned.is_set():
            with suppress(queue.Full):
                waiting.put(batch, timeout=0.1)
                break

    def read() -> None:
        try:
            for batch in batches:
                hand_over(batch)
                if abandoned.is_set():
                    return
        except BaseException as error:  # whatever ends the reading must end the caller's loop
            hand_over(error)
        else:
            hand_over(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (batch := waiting.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        abandoned.set()
        if not endless:
            reader.join()
