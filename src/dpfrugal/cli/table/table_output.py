"""How a table with a row per key and quantile is written: to a terminal, a pipe or a file."""

import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from dpfrugal.cli.terminal.output_files import draft
from dpfrugal.errors import ParameterError
from dpfrugal.outside_text import as_text, csv_line, in_csv, in_json, in_line

if TYPE_CHECKING:
    from rich.table import Table


class Output(StrEnum):
    """The forms in which a table can be written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


SUFFIXES: Final = {
    ".csv": Output.CSV,
    ".jsonl": Output.JSONL,
    ".ndjson": Output.JSONL,
    ".parquet": Output.PARQUET,
    ".txt": Output.TABLE,
}
MOST_SHOWN: Final = 1000  # keys on a terminal


def form_of(output: Path | None, to: Output | None, *, as_json: bool) -> Output:
    """How to write, decided before anything is read: what was released cannot be released again."""
    if as_json:
        named = to or (None if output is None else SUFFIXES.get(output.suffix.lower()))
        if named not in (None, Output.JSONL):
            raise ParameterError(f"--json writes JSON Lines, not {named}; leave it out, or the other.")
        to = Output.JSONL
    if output is None:
        if to is Output.PARQUET:
            raise ParameterError("--to parquet needs --output FILE.")
        return to or (Output.TABLE if sys.stdout.isatty() else Output.CSV)
    writable("--output", output)
    if to is None and output.suffix.lower() not in SUFFIXES:
        unknown = f"the extension {output.suffix} is unknown" if output.suffix else "it has no extension"
        raise ParameterError(f"--output {output}: {unknown}; choose --to csv, jsonl, parquet or table.")
    return to or SUFFIXES[output.suffix.lower()]


def writable(option: str, output: Path) -> None:
    """Refuse a file that could not be written."""
    if output.is_dir():
        raise ParameterError(f"{option} {output}: this is a folder; name a file in it.")
    if not output.parent.is_dir():
        raise ParameterError(f"{option} {output}: there is no such folder to write a file in.")
    # A file is replaced by a new one, which its folder must take; anything else, such as a pipe, is written to.
    regular = output.is_file() or not output.exists()
    if not os.access(output.resolve().parent if regular else output, os.W_OK) or (
        output.exists() and not os.access(output, os.W_OK)
    ):
        raise ParameterError(f"{option} {output}: it may not be written.")


def write(
    release: Any,
    form: Output,
    output: Path | None,
    cells: Callable[[dict[str, Any]], list[str]],
    shown: "Callable[[], Table]",
) -> None:
    """The table to a file, or to standard output; ``shown`` is what a terminal shows of it."""
    if form is Output.PARQUET and output is not None:
        import pyarrow.parquet as pq

        with draft(output) as made:
            pq.write_table(release, made)
    elif output is not None:
        with draft(output) as made, made.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines_of(release, form, cells))
    elif form is Output.TABLE and sys.stdout.isatty():
        from dpfrugal.cli.terminal.stderr_notes import plain_console

        console = plain_console()
        console.print(shown())
        if len(release) > MOST_SHOWN * len(release["quantile"].unique()):
            console.print(f"… the first {MOST_SHOWN:,} keys; --output FILE has them all")
    else:
        for line in lines_of(release, form, cells):
            typer.echo(line)


def lines_of(release: Any, form: Output, cells: Callable[[dict[str, Any]], list[str]]) -> Iterator[str]:
    """The rows as CSV, as JSON Lines, or as columns of text."""
    rows = (row for batch in release.to_batches(10_000) for row in batch.to_pylist())
    if form is Output.JSONL:
        for row in rows:
            finite = {name: None if value in (math.inf, -math.inf) else value for name, value in row.items()}
            yield in_json(finite, default=as_text)
        return
    for row in itertools.chain([release.column_names], map(cells, rows)):
        yield csv_line(list(map(in_csv, row))) if form is Output.CSV else "\t".join(map(in_line, row))
