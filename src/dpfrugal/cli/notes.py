"""What a person sees on standard error: notes and progress. Standard output carries numbers only."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

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
