"""What a person sees on standard error: notes and progress. Standard output carries numbers only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from rich.console import Console
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

from dpfrugal.release import SHOWN_BETA, Release, SegmentRelease, WalkRelease

if TYPE_CHECKING:
    from dpfrugal.ledger import Ledger

notes = Console(stderr=True, highlight=False, soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """1 key, 2 keys."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class ItemRate(ProgressColumn):
    """Items per second so far."""

    def render(self, task: Task) -> Text:
        """Millions per second, or a blank before the first items."""
        seconds = task.finished_time or task.elapsed
        items = task.fields.get("items", 0)
        return Text(f"{items / seconds / 1e6:.1f} M items/s" if seconds and items else "")


class Millions(ProgressColumn):
    """Rows done and in all, in millions."""

    def render(self, task: Task) -> Text:
        """Short enough for 80 columns."""
        total = "" if task.total is None else f"/{task.total / 1e6:.1f}"
        return Text(f"{task.completed / 1e6:.1f}{total} M")


@contextmanager
def progress(title: str, total: int | None, unit: Literal["rows", "bytes"]) -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and time left, if standard error is a terminal; call it with (progress, items)."""
    amount = DownloadColumn() if unit == "bytes" else Millions()
    columns = (
        TextColumn("{task.description}"),
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

        yield made


@contextmanager
def noise_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar for a release of many values, if standard error is a terminal; call it with (done, all)."""
    columns = (TextColumn("noise"), BarColumn(), Millions(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def stages(title: str) -> Iterator[Callable[[str, float], None]]:
    """A bar for work in stages, if standard error is a terminal; call it with the stage and how much of it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda stage, share: bar.update(task, description=f"{title}: {stage}", completed=share)


def explain(release: Release, start: float) -> None:
    """What the numbers mean, and a warning where they may mislead. From public values only."""
    if isinstance(release, SegmentRelease):
        explain_segments(release)
    elif isinstance(release, WalkRelease):
        explain_walk(release, start)


def explain_segments(release: SegmentRelease) -> None:
    """Intervals, and whether segments agree."""
    for q, (low, high) in zip(release.quantiles, release.intervals(), strict=True):
        notes.print(f"q={q:g}: the true quantile lies in \\[{low:.9g}, {high:.9g}] ({1 - SHOWN_BETA:.0%})")
    notes.print(f"{release.guarantee} per {release.unit} (replace-one), {counted(release.items, 'item')}")
    if not release.stable:
        notes.print("[yellow]note:[/] segments of the stream disagree: it is sorted, or drifts. Shuffle the rows.")


def explain_walk(release: WalkRelease, start: float) -> None:
    """α, and whether the walk can have arrived."""
    notes.print(
        f"± {release.alpha(SHOWN_BETA, exact=True):.4g} by this release's noise ({1 - SHOWN_BETA:.0%}), "
        f"{release.guarantee} per {release.unit} "
        f"(replace-one), {counted(release.items, 'item')}"
    )
    steps = max(abs(value - start) * release.grid.scale for value in release.values)
    if release.alpha(SHOWN_BETA) * release.grid.scale > release.items / 10:
        notes.print(
            "[yellow]note:[/] the noise is as large as the walk can have come: more items, or a weaker guarantee."
        )
    elif steps > release.items / 10:
        notes.print(
            f"[yellow]note:[/] the walk moves at most one step of {release.grid.step:g} per item and has come "
            f"{steps:,.0f} steps in {release.items:,} items: it may not have arrived. "
            "Use a nearer --start or fewer --decimals."
        )


def explain_ledger(ledger: "Ledger", dataset: str) -> None:
    """What is left of a dataset's total."""
    standing = ledger.dataset(dataset)
    notes.print(f"{dataset}: {standing.left or 'nothing'} is left of {standing.total}", markup=False)
