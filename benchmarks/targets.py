"""What this library sets out to reach, as ratios inside one run, and whether the run reached it.

Shuffled arrays decide. Sorted ones are shown beside them: there the estimate travels along with the items, so every
item is near it and wide data is walked like narrow data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.contenders import BATCH, MEDIAN, SEGMENTS, SEVERAL_NAME, SUM, SUM_OF_FLOATS
from benchmarks.peers import DIFFPRIVLIB, KLL, OPENDP, OPENDP_COARSE, OPENDP_LISTED, PYDP

if TYPE_CHECKING:
    from benchmarks.compare import Row

WIDE, NARROW = ("D1×1000", "D6"), ("D5",)
EVERYWHERE = ("D5", "D5×1000", "D1×1000", "D6")
# contender, against, datasets, at least
TARGETS: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    (BATCH, SUM, WIDE, 0.40),
    (BATCH, SUM, NARROW, 0.17),
    (BATCH, KLL, EVERYWHERE, 12),
    (BATCH, f"{KLL} int32", EVERYWHERE, 12),
    (BATCH, PYDP, EVERYWHERE, 50),
    (BATCH, OPENDP, EVERYWHERE, 200),
    (BATCH, OPENDP_LISTED, EVERYWHERE, 200),
    (BATCH, OPENDP_COARSE, EVERYWHERE, 200),
    (BATCH, DIFFPRIVLIB, EVERYWHERE, 500),
    (SEVERAL_NAME, MEDIAN, EVERYWHERE, 0.4),
    (SEVERAL_NAME, BATCH, EVERYWHERE, 0.4),
    (SEGMENTS, SUM_OF_FLOATS, EVERYWHERE, 0.4),
)


@dataclass(frozen=True)
class Target:
    """One ratio that was asked for, and the one that was measured (None: the peer could not be run, or failed)."""

    contender: str
    against: str
    dataset: str
    at_least: float
    shuffled: float | None
    ordered: float | None

    @property
    def passes(self) -> bool | None:
        """Whether the shuffled array reached it."""
        return None if self.shuffled is None else self.shuffled >= self.at_least


def reached(rows: "list[Row]") -> list[Target]:
    """Every target on every dataset it speaks of."""
    return list(_reached({(row.dataset, row.order, row.contender): row for row in rows if not row.failure}))


def _reached(rows: "dict[tuple[str, str, str], Row]") -> Iterator[Target]:
    for contender, against, datasets, at_least in TARGETS:
        for name in datasets:
            ratios = []
            for order in ("shuffled", "sorted"):
                mine, theirs = rows.get((name, order, contender)), rows.get((name, order, against))
                ratios.append(mine.ratio(theirs) if mine and theirs else None)
            yield Target(contender, against, name, at_least, *ratios)


def verdict(target: Target) -> str:
    """PASS, miss, or that it could not be measured."""
    return {True: "PASS", False: "miss", None: "not run"}[target.passes]


def figure(ratio: float | None) -> str:
    """Three digits, or nothing."""
    return "" if ratio is None else f"{ratio:.3g}"


def show(console: Console, found: list[Target]) -> None:
    """The targets as a table."""
    table = Table("ratio of", "to", "dataset", "at least", "shuffled", "", "sorted", title="Targets")
    for target in found:
        colour = {"PASS": "green", "miss": "red"}.get(verdict(target), "yellow")
        table.add_row(
            target.contender,
            target.against,
            target.dataset,
            f"{target.at_least:g}",
            figure(target.shuffled),
            f"[{colour}]{verdict(target)}[/]",
            figure(target.ordered),
        )
    console.print(table)
