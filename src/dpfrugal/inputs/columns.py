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
from dpfrugal.outside_text import listed


@dataclass(frozen=True)
class Column:
    """A column of numbers, read in batches.

    ``total`` is its size in ``unit`` (0: unknown), and each batch comes with the units read for it.
    """

    name: str
    total: int
    unit: Literal["rows", "bytes"]
    batches: Iterator[tuple[Any, int]]


def attempt(action: Callable[[], Any], failure: TableError, unreadable: tuple[type[Exception], ...] = ()) -> Any:
    """The result of ``action``, or ``failure``: raised outside the handler, so that it carries no other message."""
    try:
        return action()
    except (pa.ArrowException, OSError, *unreadable):
        pass
    raise failure


def chosen(path: Path, names: list[str], column: str | None) -> str:
    """The name of the column to read. Column names are public, so an error may list them."""
    shown = listed(names)
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
    """The error for a file that is not of its kind."""
    return TableError(f"{path}: this is not a readable {kind} file; it may be truncated or damaged.")
