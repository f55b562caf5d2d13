"""Progress bars on standard error, where that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from dpfrugal.cli.terminal.stderr_notes import notes


class ItemRate(ProgressColumn):
    """A column: items per second so far."""

    def render(self, task: Task) -> Text:
        """Millions per second; blank before the first items."""
        seconds = task.finished_time or task.elapsed
        items = task.fields.get("items", 0)
        return Text(f"{items / seconds / 1e6:.1f} M items/s" if seconds and items else "")


class Millions(ProgressColumn):
    """A column: rows done and rows in all, in millions."""

    def render(self, task: Task) -> Text:
        """Two numbers with a slash between them, which fit into 80 columns."""
        total = "" if task.total is None else f"/{task.total / 1e6:.1f}"
        return Text(f"{task.completed / 1e6:.1f}{total} M")


@contextmanager
def progress(title: str, total: int | None, unit: Literal["rows", "bytes"]) -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and time left; call what it yields with (progress, items).

    What is read again, as column after column of a file of text, makes the total grow by as much.
    """
    amount = DownloadColumn() if unit == "bytes" else Millions()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        amount,
        ItemRate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=total or None, items=0)
        seen = 0

        def made(advance: int, items: int) -> None:
            nonlocal seen
            seen += items
            bar.update(task, advance=advance, items=seen)
            reached, whole = bar.tasks[task].completed, bar.tasks[task].total
            if total and whole is not None and reached > whole:
                bar.update(task, total=-(-reached // total) * total)

        yield made


@contextmanager
def noise_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar for the noise of a release of many values; call what it yields with (done, all)."""
    columns = (TextColumn("noise"), BarColumn(), Millions(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def stages(title: str) -> Iterator[Callable[[str, float], None]]:
    """A bar for work in stages; call what it yields with the stage and the share of it that is done."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda stage, share: bar.update(task, description=f"{title}: {stage}", completed=share)
