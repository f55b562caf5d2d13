"""What a person sees on standard error: notes and progress. Standard output carries numbers only."""

import math
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

from dpfrugal.errors import DPFrugalError
from dpfrugal.estimators.releases import SHOWN_BETA, Release, SegmentRelease, WalkRelease

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.budget.spending import Account

# A walk that has come more than this part of the way that its slowest drift allows may not have arrived.
UNHURRIED = 0.2
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
    claim = f"{release.guarantee} per {release.unit} (replace-one), {counted(release.items, 'item')}"
    if isinstance(release, SegmentRelease):
        for q, (low, high) in zip(release.quantiles, release.intervals(), strict=True):
            notes.print(f"q={q:g}: the true quantile lies in \\[{low:.9g}, {high:.9g}] ({1 - SHOWN_BETA:.0%})")
        notes.print(claim)
    elif isinstance(release, WalkRelease):
        alpha = release.alpha(SHOWN_BETA, exact=True)
        notes.print(f"± {alpha:.4g} by this release's noise ({1 - SHOWN_BETA:.0%}), {claim}")
    for doubt in doubts(release, start):
        notes.print(f"[yellow]note:[/] {doubt}")


def doubts(release: Release, start: float) -> list[str]:
    """Why the numbers may mislead. From public values only: what was released, the start, the number of items."""
    if isinstance(release, SegmentRelease):
        said = [] if release.stable else ["segments of the stream disagree: it is sorted, or drifts. Shuffle the rows."]
        pairs = zip(release.quantiles, release.intervals(), strict=True)
        if unknown := [f"{q:g}" for q, ends in pairs if all(map(math.isinf, ends))]:
            said.append(
                f"so few items under this guarantee say nothing yet about q={', '.join(unknown)}: a number that is "
                "shown is a guess. More items, or a weaker guarantee."
            )
        return said
    if not isinstance(release, WalkRelease):
        return []
    if release.alpha(SHOWN_BETA) * release.grid.scale > release.items / 10:
        return ["the noise is as large as the walk can have come: more items, or a weaker guarantee."]
    for q, value in zip(release.quantiles, release.values, strict=True):
        steps = abs(value - start) * release.grid.scale
        if steps > release.items * min(q, 1 - q) * UNHURRIED:
            return [
                f"q={q:g}: the walk has come {steps:,.0f} steps of {release.grid.step:g} in {release.items:,} items, "
                f"and near its quantile it moves less than {min(q, 1 - q):.2g} steps per item: it may not have "
                "arrived. Use a nearer --start or fewer --decimals."
            ]
    return []


def row(release: Release, items: int, values: list[str]) -> str:
    """A release for a person who watches: items, each value with its interval or ±, and whether segments disagree."""
    cells = [f"{items:>13,}"]
    if isinstance(release, SegmentRelease):
        for value, (low, high) in zip(values, release.intervals(), strict=True):
            cells.append(f"{value:>14} {f'[{low:.6g}, {high:.6g}]':<26}")
        cells += [] if release.stable else ["not stable"]
    elif isinstance(release, WalkRelease):
        alpha = f"± {release.alpha(SHOWN_BETA, exact=True):.4g}"
        cells += [f"{value:>14} {alpha:<12}" for value in values]
    return "  ".join(cells).rstrip()


def header(release: Release) -> str:
    """What stands above the rows."""
    width, said = (26, f"[{1 - SHOWN_BETA:.0%}]") if isinstance(release, SegmentRelease) else (12, "noise, 95%")
    return "  ".join([f"{'items':>13}", *(f"{f'q={q:g}':>14} {said:<{width}}" for q in release.quantiles)]).rstrip()


@contextmanager
def charged(account: "Account") -> Iterator[None]:
    """Whatever ends a command after its spend says so: an error in its own message, all else here."""
    try:
        with account.owning_up():
            yield
    except DPFrugalError:
        raise
    except BaseException as error:
        for note in getattr(error, "__notes__", ()):
            notes.print(note, markup=False)
        raise


def explain_ledger(ledger: "Ledger | None", dataset: str | None) -> None:
    """What is left of a dataset's total, where there is a ledger."""
    if ledger is None or dataset is None:
        return
    standing = ledger.dataset(dataset)
    notes.print(f"{dataset}: {standing.left or 'nothing'} is left of {standing.total}", markup=False)
