"""``dpfrugal paper``: every table and figure of the paper again, with a report."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.paper.runner import Run, Watcher

MOST_JOBS = 256


def paper(
    quick: Annotated[bool, typer.Option("--quick", help="A hundredth of the paper's lengths: under a minute.")] = False,
    figure: Annotated[
        list[str] | None,
        typer.Option(help="Only this figure, as 1a, 4, accuracy or start; 1 for 1a to 1d. Repeat it for several."),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(help="The default stream length; the longest is ten times it.", show_default="10000000"),
    ] = None,
    repetitions: Annotated[int, typer.Option(help="How often each experiment is repeated.")] = 10,
    jobs: Annotated[int | None, typer.Option(help="Streams at a time.", show_default="one per core")] = None,
    output: Annotated[Path, typer.Option(help="Folder for the report and the results.")] = Path("paper"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is already there.")] = False,
) -> None:
    """Every table and figure of the paper, at its scale, with a report: report.html, and README.md with pictures.

    Results are kept row by row in OUTPUT/results. Ctrl-C at any time: the same command goes on from there. What is
    complete is not run again without --fresh.

    Items and coins are seeded, the noise is not: another run agrees in everything but the noise.

    Example: dpfrugal paper --quick --figure 1a --figure 4
    """
    if find_spec("matplotlib") is None:
        raise ParameterError("The report needs matplotlib: pip install 'dpfrugal[paper]'.")
    from dpfrugal.cli.notes import notes
    from dpfrugal.paper import results
    from dpfrugal.paper.report import HTML, MARKDOWN, write_report
    from dpfrugal.paper.resources import check_resources
    from dpfrugal.paper.runner import Run, files_of, identity, rows_in
    from dpfrugal.paper.settings import PAPER_ITEMS, QUICK_ITEMS, Scale, chosen_figures
    from dpfrugal.paper.summary import counted

    if quick and items is not None:
        raise ParameterError("Give either --quick or --items, not both.")
    figures = chosen_figures(figure or [])
    scale = Scale((QUICK_ITEMS if quick else PAPER_ITEMS) if items is None else items, repetitions)
    workers = (os.cpu_count() or 1) if jobs is None else jobs
    if not 1 <= workers <= MOST_JOBS:
        raise ParameterError(f"--jobs must be between 1 and {MOST_JOBS}; {jobs} is not.")
    folder = results.open_folder(output)
    check_resources(output, workers, rows_in(figures, scale), scale.items)
    discarded = [file for name in figures for file in files_of(name)] + ([] if figure else ["runs.csv"])
    results.claim_folder(folder, identity(scale), fresh=fresh, files=discarded)
    run = Run(folder, figures, scale, workers)
    if not run.rows_missing:
        notes.print(f"All {run.rows:,} rows are there; --fresh runs them again.")
    elif run.rows_missing < run.rows:
        notes.print(f"{run.rows - run.rows_missing:,} of {run.rows:,} rows are there; the rest follows.")
    begun = time.perf_counter()
    try:
        with watched(run) as watcher:
            run.go(watcher)
        shown = write_report(output, folder, scale)
    except KeyboardInterrupt:
        kept = run.rows - run.rows_missing
        notes.print(f"Stopped; {kept:,} of {run.rows:,} rows are in {folder}. The same command goes on from there.")
        raise
    show_split(folder)
    seconds = time.perf_counter() - begun
    notes.print(f"{counted(len(shown), 'figure')} in {seconds:.1f} s: {output / HTML} and {output / MARKDOWN}")


@contextmanager
def watched(run: "Run") -> "Iterator[Watcher]":
    """Two bars with the time left, for the whole and for the current figure; a line per complete figure."""
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from dpfrugal.cli.notes import notes
    from dpfrugal.paper.runner import Watcher

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        whole = bar.add_task("the whole", total=run.work or None)
        current = bar.add_task("figure", total=None, visible=False)

        def begin(figure: str, work: int) -> None:
            title = f"figure {figure}" if figure[0].isdigit() else figure
            bar.reset(current, description=title, total=work, visible=True)

        def worked(amount: int) -> None:
            bar.advance(whole, amount)
            bar.advance(current, amount)

        def done(figure: str, rows: int, seconds: float) -> None:
            title = f"figure {figure}" if figure[0].isdigit() else figure
            notes.print(f"{title:<10} {rows:>4} rows {seconds:>7.1f} s")

        yield Watcher(begin, worked, done)


def show_split(folder: Path) -> None:
    """Where the processor time of all these results went."""
    from dpfrugal.cli.notes import notes
    from dpfrugal.paper.report_preface import PART_NAMES, split
    from dpfrugal.paper.resources import peak_memory_mib

    items, seconds = split(folder)
    parts = ", ".join(f"{PART_NAMES[part]} {spent:.1f} s" for part, spent in seconds.items())
    notes.print(f"{items:,} items; processor time: {parts}. At most {peak_memory_mib():,} MiB resident.")
