"""``dpfrugal describe``: five private quantiles of every numeric column of a table, under one guarantee."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfrugal.cli import options as o
from dpfrugal.cli.table import table_options as t
from dpfrugal.cli.terminal.output_files import kept_if_unwritten
from dpfrugal.outside_text import in_json, in_line
from dpfrugal.parameters import NanPolicy

if TYPE_CHECKING:
    from rich.table import Table

    from dpfrugal.estimators.table.describe import Description

PICTURES = (".png", ".svg", ".pdf")


def describe(
    files: t.Files,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="A column to describe; repeat the option for several. Default: all whose type is numeric or a time; "
            "of a CSV file all columns have their part, and those with too few numbers are left out.",
        ),
    ] = None,
    file_format: t.FileFormat = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the private distributions to this file: .png, .svg or .pdf.")
    ] = None,
    as_json: o.Json = False,
    max_items_per_person: o.MaxItems = 1,
    person: t.Person = None,
    neighbours: t.WhoseNeighbours = "replace",
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals/--no-intervals",
            help="An interval for each value, which costs half of the guarantee.",
            rich_help_panel=o.TABLE,
        ),
    ] = False,
    confidence: t.Confidence = 0.95,
    interval_of: t.IntervalsOf = "population",
    nan_policy: Annotated[
        NanPolicy,
        typer.Option(
            help="NaN and null rows of a column: refuse the table, or leave them out of that column's quantiles.",
            rich_help_panel=o.TABLE,
        ),
    ] = "raise",
    memory: t.Memory = t.DEFAULT_MEMORY,
    header: t.Header = None,
    ledger_file: o.LedgerFile = None,
    dataset: o.Dataset = None,
) -> None:
    """Five private quantiles (5%, 25%, 50%, 75%, 95%) of every numeric column, under one guarantee.

    Each column gets an equal part of the guarantee. Dates and times count as numeric, except in CSV files.

    CSV files state no types: without --column, a tenth of each part is spent on how many cells of a column are numbers,
    and a column with too few is left out. Naming the columns is more accurate.

    A pipe gets a line per column and quantile, with tabs between: column, q, value and, with --intervals, the ends of
    the interval.

    A value is blank where the rows are too few for it; standard error says how many are needed.

    Example: dpfrugal describe requests.parquet --epsilon 1 --picture requests.png

    Example: dpfrugal describe requests.csv --column ms --column bytes --epsilon 1
    """
    from dpfrugal.cli.table.quantile_table import record, rows_of, spent
    from dpfrugal.cli.table.table_input import file_set, reading
    from dpfrugal.cli.terminal.stderr_notes import explain_ledger, notes, plain_console
    from dpfrugal.estimators.table.describe import describe as described

    guarantee, ledger = o.guarantee_from(epsilon, delta, rho), o.ledger_from(ledger_file, dataset)
    if picture is not None:
        picture_file(picture)
    limit = t.bytes_of(memory)
    found = file_set(files, file_format, limit, header)
    with reading(found):
        description = described(
            found,
            guarantee,
            columns=columns or None,
            neighbours=neighbours,
            intervals=intervals,
            confidence=confidence,
            interval_of=interval_of,
            nan_policy=nan_policy,
            person=person,
            max_items_per_person=max_items_per_person,
            memory=limit,
            ledger=ledger,
            dataset=dataset,
        )
    with spent(ledger, dataset, guarantee):

        def whole() -> str:
            releases = {name: record(release) for name, release in description.columns.items()}
            return in_json(description.to_dict() | {"columns": releases})

        with kept_if_unwritten(lambda: [whole()], ledger, dataset):
            if as_json:
                typer.echo(whole())
            elif sys.stdout.isatty():
                plain_console().print(shown(description))
            else:
                for name, release in description.columns.items():
                    for row in rows_of(release):
                        typer.echo("\t".join([in_line(name), *row]))
        explain(description)
        if picture is not None and description.columns:
            import matplotlib as mpl

            mpl.use("Agg")
            description.plot(found.name).savefig(picture, dpi=130)
            notes.print(f"Picture: {picture}")
        explain_ledger(ledger, dataset)


def picture_file(picture: Path) -> None:
    """Refuse, before anything is spent, a picture that could not be drawn."""
    from importlib.util import find_spec

    from dpfrugal.cli.table.table_output import writable
    from dpfrugal.errors import ParameterError

    if picture.suffix.lower() not in PICTURES:
        raise ParameterError(f"--picture must name a .png, .svg or .pdf file; {picture} does not.")
    writable("--picture", picture)
    if find_spec("matplotlib") is None:
        raise ParameterError("--picture needs matplotlib: pip install 'dpfrugal[plot]'.")


def shown(description: "Description") -> "Table":
    """For a terminal: a line per column, a second one for intervals where there are any."""
    from rich.table import Table

    releases = list(description.columns.values())
    table = Table("column", show_lines=any(release.lower is not None for release in releases))
    for q in releases[0].quantiles if releases else ():
        table.add_column(f"{100 * q:g}%", justify="right", overflow="fold")
    for name, release in description.columns.items():
        table.add_row(in_line(name), *_cells(release))
    return table


def _cells(release: Any) -> Iterator[str]:
    from dpfrugal.cli.table.quantile_table import known, texts

    for _, *found in known(release):
        value, low, high = texts(*found)
        yield (value.replace("T", " ") or "too few rows") + (f"\n{low} to {high}".replace("T", " ") if low else "")


def explain(description: "Description") -> None:
    """The claim, its split, and why values are missing. From public values only."""
    from dpfrugal.cli.terminal.stderr_notes import note, notes

    first = next(iter(description.columns.values()), None)
    if first is None:
        notes.print(description.split)
    else:
        changed = "replaced" if first.neighbours == "replace" else "added or removed"
        rows = "the number of rows is private" if first.items is None else f"{first.items:,} rows"
        notes.print(f"{description.split}; per {first.unit} {changed}; {rows}")
    if description.left_out and first is None:
        note("no column has numbers enough; is the first line a header?")
    elif description.left_out:
        note(f"left out, as too few of their cells are numbers: {', '.join(description.left_out)}")
    if first is None:
        return
    if first.confidence is not None:
        notes.print(f"{100 * first.confidence:g}% intervals for the quantiles of the {first.interval_of}")
    for name, release in description.columns.items():
        for reason in filter(None, release.reasons):
            note(f"{in_line(name)}: {reason}; no number is shown.")
