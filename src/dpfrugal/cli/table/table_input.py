"""What a table is read from: files, folders, patterns; or standard input, whose rows are held or sampled."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dpfrugal.cli.table.table_options import Format, TableOptions, bytes_of
from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.inputs.file_sets import FileSet

STDIN: Final = ("-", "/dev/stdin")
# What a sampled row takes: itself and its priority, twice while the sample shrinks.
BYTES_PER_SAMPLED_ROW: Final = 32


@dataclass(frozen=True)
class Numbers:
    """What the column is read from: a set of files, or the held rows of standard input, of ``of`` rows."""

    data: Any
    files: "FileSet | None" = None
    of: int | None = None

    @property
    def more(self) -> dict[str, Any]:
        """For JSON: of how many rows the release has a sample."""
        return {} if self.of is None else {"sample_of_rows": self.of}

    def explain(self) -> None:
        """Say that a sample was taken."""
        if self.of is not None:
            from dpfrugal.cli.terminal.stderr_notes import notes

            notes.print(
                f"Standard input has {self.of:,} rows, more than --memory holds: this is a uniform random sample of "
                f"{len(self.data):,} of them."
            )


def numbers_of(
    files: list[str], column: str | None, file_format: Format | None, table: TableOptions, *, omit_bad: bool
) -> Numbers:
    """The files, or numbers on standard input, one per line."""
    bare = column is None and file_format is None and not table.header
    if not (bare and any(name in STDIN for name in files)):
        found = file_set(files, file_format, bytes_of(table.memory), table.header)
        return Numbers(found, found)
    if len(files) > 1:
        raise ParameterError("Standard input is read by itself; name either it or files.")
    if table.person is not None:
        raise ParameterError("--person is for tables with columns; name --column too.")
    from dpfrugal.cli.terminal.progress import progress
    from dpfrugal.estimators.table.rows.sample import held_sample
    from dpfrugal.inputs.number_lines import numbers

    seen = 0

    def rows() -> Iterator[Any]:
        import numpy as np

        nonlocal seen
        stream = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        for batch, size in numbers(stream, omit_bad=omit_bad):
            seen += len(batch)
            made(size, len(batch))
            if seen > most:
                _refuse_sample(table)
            yield np.array(batch, dtype=np.float64)

    most = max(1, bytes_of(table.memory) // BYTES_PER_SAMPLED_ROW)
    with progress("standard input", None, "bytes") as made:
        held = held_sample(rows(), most)
    return Numbers(held, of=seen if seen > most else None)


def _refuse_sample(table: TableOptions) -> None:
    """Where a sample of rows would not do: more rows came than --memory holds."""
    if table.neighbours == "add-remove":
        # A row more pushes another one out of a sample: one is added and one removed.
        raise ParameterError(
            "--neighbours add-remove needs all rows, and standard input has more than --memory holds; raise it, or "
            "write the rows to a file."
        )
    if table.intervals and table.interval_of == "table":
        raise ParameterError(
            "--interval-of table needs all rows, and standard input has more than --memory holds; raise it, or write "
            "the rows to a file."
        )


def file_set(files: list[str], file_format: Format | None, most_bytes: int, header: bool | None = None) -> "FileSet":
    """The named files, folders and patterns; standard input is one that is held."""
    from dpfrugal.inputs.file_sets import FileSet

    found = FileSet.of(["/dev/stdin" if name == "-" else name for name in files], most_bytes)
    found.file_format, found.header = file_format, header
    return found


def one_path(file: str) -> Path:
    """The only file that a name stands for, for what reads one file."""
    from dpfrugal.inputs.file_sets import paths_of

    path, *more = paths_of(file)
    if more:
        raise ParameterError(f"{file}: these are {1 + len(more)} files; without --algorithm they are read as one.")
    return path


@contextmanager
def reading(files: "FileSet | None") -> Iterator[None]:
    """A progress bar while files are read, if there are any."""
    from dpfrugal.cli.terminal.progress import progress

    if files is None:
        yield
        return
    with progress(files.name, files.size, "bytes") as made:
        files.progress = made
        yield
