"""``dpfrugal paper``: reproduces every table and figure of the paper, with a report."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import integer

if TYPE_CHECKING:
    from dpfrugal.paper.runner import Run, Watcher

MOST_JOBS = 256


def paper(
    quick: Annotated[
        bool, typer.Option("--quick", help="Streams of a hundredth of the paper's lengths; takes under a minute.")
    ] = False,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this figure: 1a, 4, accuracy, start …; 1 means 1a to 1d. Repeat the option for several."
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            help="The default stream length; the longest stream is ten times as long.", show_default="10000000"
        ),
    ] = None,
    repetitions: Annotated[int, typer.Option(help="How often each experiment is repeated.")] = 10,
    jobs: Annotated[
        int | None, typer.Option(help="How many streams run at the same time.", show_default="one per core")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for the report and the results.")] = Path("paper"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard earlier results of these figures and run them again.")
    ] = False,
) -> None:
    """Reproduce every table and figure of the paper, and write a report (report.html, and README.md with pictures).

    Results are kept row by row in OUTPUT/results. After Ctrl-C the same command continues from there.

    Items and coins are seeded, noise is not: two runs differ in the noise only.

    Example: dpfrugal paper --quick --figure 1a --figure 4
    """
    if find_spec("matplotlib") is None:
        raise ParameterError("The report needs matplotlib: pip install 'dpfrugal[paper]'.")
    from dpfrugal.cli.terminal.stderr_notes import notes
    from dpfrugal.paper import results
    from dpfrugal.paper.report import HTML, MARKDOWN, write_report
    from dpfrugal.paper.resources import check_resources
    from dpfrugal.paper.runner import Run, files_of, identity, rows_in
    from dpfrugal.paper.settings import PAPER_ITEMS, QUICK_ITEMS, Scale, chosen_figures
    from dpfrugal.paper.summary import counted
    from dpfrugal.storage.locks import folder_lock

    if quick and items is not None:
        raise ParameterError("Give either --quick or --items, not both.")
    figures = chosen_figures(figure or [])
    scale = Scale((QUICK_ITEMS if quick else PAPER_ITEMS) if items is None else items, repetitions)
    workers = (os.cpu_count() or 1) if jobs is None else jobs
    integer("--jobs", workers, 1, MOST_JOBS)
    folder = results.open_folder(output)
    with folder_lock(folder):
        check_resources(output, workers, rows_in(figures, scale), scale.items)
        discarded = [file for name in figures for file in files_of(name)] + ([] if figure else ["runs.csv"])
        results.claim_folder(folder, identity(scale), fresh=fresh, files=discarded)
        run = Run(folder, figures, scale, workers)
        if not run.rows_missing:
            notes.print(f"All {run.rows:,} rows exist; --fresh runs them again.")
        elif run.rows_missing < run.rows:
            notes.print(f"{run.rows - run.rows_missing:,} of {run.rows:,} rows exist; the others follow.")
        begun = time.perf_counter()
        try:
            with watched(run) as watcher:
                run.go(watcher)
            shown = write_report(output, folder, scale)
        except KeyboardInterrupt:
            kept = run.rows - run.rows_missing
            notes.print(
                f"Stopped; {kept:,} of {run.rows:,} rows are in {folder}. The same command continues from there."
            )
            raise
        show_split(folder)
        seconds = time.perf_counter() - begun
        notes.print(f"{counted(len(shown), 'figure')} in {seconds:.1f} s: {output / HTML} and {output / MARKDOWN}")


@contextmanager
def watched(run: "Run") -> "Iterator[Watcher]":
    """Two bars with the time left, for all figures and for the current one; a line per complete figure."""
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from dpfrugal.cli.terminal.stderr_notes import notes
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
        whole = bar.add_task("all figures", total=run.work or None)
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
    """Say what the processor time of all results was spent on."""
    from dpfrugal.cli.terminal.stderr_notes import notes
    from dpfrugal.paper.report_preface import PART_NAMES, split
    from dpfrugal.paper.resources import peak_memory_mib

    items, seconds = split(folder)
    parts = ", ".join(f"{PART_NAMES[part]} {spent:.1f} s" for part, spent in seconds.items())
    notes.print(f"{items:,} items; processor time: {parts}. At most {peak_memory_mib():,} MiB resident.")
