"""Notes for a person, on standard error, and the rows that ``watch`` shows on a terminal. All from public values."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from dpfrugal.errors import DPFrugalError
from dpfrugal.estimators.releases import SHOWN_BETA, Release, SegmentRelease, WalkRelease
from dpfrugal.outside_text import in_line
from dpfrugal.privacy.guarantees import Sensitivity

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.budget.spending import Account

# Close to its quantile a walk moves on average by less than min(q, 1-q) steps per item. One that has moved farther than
# this share of that speed times the items may not have converged.
CONVERGED_SHARE = 0.2
# Items beyond a quantile, in standard deviations of the noise on one count, below which noise alone hides the quantile:
# the search counts several times. With more, a weaker guarantee would not help.
FEW_NOISES = 50


def plain_console() -> Console:
    """Standard output, which prints text as it is: names, keys and paths may hold what rich would take for markup."""
    return Console(highlight=False, markup=False, emoji=False)


class Notes(Console):
    """Standard error: what is printed are lines of this program with text from outside in them."""

    def print(self, *parts: Any, **options: Any) -> None:
        """The same with nothing in a string that a terminal would obey."""
        super().print(
            *("\n".join(map(in_line, part.split("\n"))) if isinstance(part, str) else part for part in parts), **options
        )


notes = Notes(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def note(said: str) -> None:
    """A doubt or a surprise, in words."""
    notes.print(Text.assemble(("note:", "yellow"), f" {in_line(said)}"))


def counted(number: int, noun: str) -> str:
    """1 key, 2 keys."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def explain(release: Release, start: float) -> None:
    """Say what the numbers mean, and warn where they may mislead."""
    claim = f"{release.guarantee} per {release.unit} (replace-one), {counted(release.items, 'item')}"
    if isinstance(release, SegmentRelease):
        for q, (low, high) in zip(release.quantiles, release.intervals(), strict=True):
            notes.print(
                f"q={q:g}: {1 - SHOWN_BETA:.0%} confidence interval for the quantile of the distribution: "
                f"[{low:.9g}, {high:.9g}]"
            )
        notes.print(claim)
    elif isinstance(release, WalkRelease):
        alpha = release.alpha(SHOWN_BETA, exact=True)
        notes.print(f"± {alpha:.4g} by the noise of this release ({1 - SHOWN_BETA:.0%}), {claim}")
    for doubt in doubts(release, start):
        note(doubt)


def doubts(release: Release, start: float) -> list[str]:
    """Why the numbers may mislead, judged by what was released, the start and the number of items."""
    if isinstance(release, SegmentRelease):
        if not release.stable:
            return ["segments of the stream disagree: it is sorted or drifts. Shuffle the rows."]
        pairs = zip(release.quantiles, release.intervals(), strict=True)
        if unknown := [q for q, ends in pairs if all(map(math.isinf, ends))]:
            shown = ", ".join(f"{q:g}" for q in unknown)
            noise = release.guarantee.noise_deviation(Sensitivity.of(2))
            if release.items * min(min(q, 1 - q) for q in unknown) < FEW_NOISES * noise:
                return [f"there are too few items for q={shown}: use more items, or a weaker guarantee."]
            return [
                f"q={shown} was not found in one scan: private-quantile is for long, steady streams. For rows that can "
                "be held or read again, use dpfrugal quantile without --algorithm, which takes any order."
            ]
        return []
    if not isinstance(release, WalkRelease):
        return []
    if release.alpha(SHOWN_BETA) * release.grid.scale > release.items / 10:
        return ["the noise is as large as the distance that the walk can cover: use more items or a weaker guarantee."]
    for q, value in zip(release.quantiles, release.values, strict=True):
        steps = abs(value - start) * release.grid.scale
        if steps > release.items * min(q, 1 - q) * CONVERGED_SHARE:
            return [
                f"q={q:g}: the walk moved {steps:,.0f} steps of {release.grid.step:g} in {release.items:,} items, and "
                f"close to the quantile it moves on average by less than {min(q, 1 - q):.2g} steps per item: it may "
                "not have converged. Use a nearer --start or fewer --decimals."
            ]
    return []


def row(release: Release, items: int, values: list[str]) -> str:
    """A release on a terminal: the items, each value with its interval or ±, and whether segments disagree."""
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
    """The line above the rows."""
    width, said = (26, f"[{1 - SHOWN_BETA:.0%}]") if isinstance(release, SegmentRelease) else (12, "noise, 95%")
    return "  ".join([f"{'items':>13}", *(f"{f'q={q:g}':>14} {said:<{width}}" for q in release.quantiles)]).rstrip()


@contextmanager
def charged(account: "Account") -> Iterator[None]:
    """Run a command whose guarantee may already be spent: whatever ends it early says what was spent.

    An error of this package carries that in its own message; after any other exception it is printed here.
    """
    try:
        with account.owning_up():
            yield
    except DPFrugalError:
        raise
    except BaseException as error:
        for said in getattr(error, "__notes__", ()):
            notes.print(said)
        raise


def explain_ledger(ledger: "Ledger | None", dataset: str | None) -> None:
    """Say what is left of the dataset's total, if there is a ledger."""
    if ledger is None or dataset is None:
        return
    standing = ledger.dataset(dataset)
    notes.print(f"{dataset}: {standing.left or 'nothing'} is left of {standing.total}")
