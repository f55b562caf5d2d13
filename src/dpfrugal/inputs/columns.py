"""A column of numbers that is read in batches, and the refusal of a file that has none.

A missing column or a damaged file is reported in one sentence. pyarrow's own messages quote the data that they could
not read, so they never become part of an error, not even as its context.
"""

from collections.abc import Callable, Iterator
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
