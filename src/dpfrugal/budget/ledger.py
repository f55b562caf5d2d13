"""The ledger: the total promised for each dataset and the spends on it, across processes and years.

A spend is on disk before its noise is drawn: a crash in between wastes budget and never overspends it (docs/proofs.md,
Theorem 12). An estimator spends once, before its first noise, for its whole transcript. Worked number: with a total of
ε = 3, three estimators at ε = 1 may release as often as they like; a fourth raises ``BudgetExceeded``.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dpfrugal import parameters
from dpfrugal.budget import composition
from dpfrugal.budget import ledger_history as history
from dpfrugal.budget import ledger_rows as rows
from dpfrugal.budget.composition import Spent
from dpfrugal.budget.ledger_file import LedgerFile
from dpfrugal.budget.ledger_history import Verified
from dpfrugal.budget.ledger_rows import Damaged
from dpfrugal.budget.promises import Dataset, Spend, now, spend_of
from dpfrugal.errors import BudgetExceeded, LedgerError, ParameterError, ReplayError
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee

STALE = (
    "This checkpoint is stale: noise was drawn since it was saved, so its items may have been released. "
    "Load it with forget_if_stale=True to continue without them."
)
T = TypeVar("T")


class Ledger:
    """A privacy budget that outlives processes: an SQLite file with a total and a list of spends per dataset.

    ``total`` is promised for every dataset that this object is the first to name; without it, a dataset must have been
    opened before. The total is for neighbours that differ by one replaced item or, with ``neighbours="add-remove"``, by
    one item more; or by the at most ``max_items_per_person`` items of one person. A spend must be under the same
    neighbours, and protect at least as many items. Neither guarantees nor
    estimators (their class, number of quantiles and bounds per person, and how many there are) may be chosen by looking
    at earlier releases, unless the dataset is opened with ``adaptive=True``: spends under a total in (ε, δ) are then
    composed by summing ε and δ only.

    Safe for threads, forks and many processes at once.

    >>> import tempfile
    >>> from dpfrugal import PureDP
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"{folder}/budget.db", total=PureDP(epsilon=3.0))
    ...     _ = ledger.spend("clicks", PureDP(epsilon=1.0), by="the monthly report")
    ...     print(ledger.left("clicks"), "|", ledger.total_spent("clicks", delta=1e-6))
    ε=2 | ε=1, δ=1e-06
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        total: Guarantee | None = None,
        max_items_per_person: int = 1,
        adaptive: bool = False,
        neighbours: Neighbours = "replace",
    ) -> None:
        self._total = None if total is None else checked_guarantee(total)
        self._max_items_per_person = parameters.max_items_per_person(max_items_per_person)
        self._adaptive = bool(adaptive)
        self._neighbours = parameters.neighbours(neighbours)
        self._file = LedgerFile(path, create=total is not None, fill=history.fill_totals)
        self._read(lambda connection: history.check_when_opened(connection, self._file.check_structure))

    @property
    def name(self) -> str:
        """A random name that identifies this ledger, wherever its file is."""
        return self._file.name

    @property
    def path(self) -> Path:
        """The path of its file."""
        return self._file.path

    def __repr__(self) -> str:
        return f"Ledger({str(self._file.path)!r})"

    def open(
        self,
        dataset: str,
        total: Guarantee,
        *,
        max_items_per_person: int = 1,
        adaptive: bool = False,
        neighbours: Neighbours = "replace",
    ) -> Dataset:
        """Promise a total for a dataset. If it was opened before, the promise must be the same."""
        wanted = Dataset(
            name=parameters.name("dataset", dataset),
            total=checked_guarantee(total),
            max_items_per_person=parameters.max_items_per_person(max_items_per_person),
            adaptive=bool(adaptive),
            neighbours=parameters.neighbours(neighbours),
            opened=now(),
        )

        def work(connection: sqlite3.Connection) -> Dataset:
            known = self._as_promised(connection, wanted)
            if known is None:
                rows.write_dataset(connection, wanted)
            return known or wanted

        return self._write(work)

    def change_total(self, dataset: str, total: Guarantee) -> Dataset:
        """Promise another total, larger or smaller, but never smaller than what is spent."""
        name, total = parameters.name("dataset", dataset), checked_guarantee(total)

        def work(connection: sqlite3.Connection) -> Dataset:
            if (found := self._find(connection, name)) is None:
                raise LedgerError(
                    f"There is no dataset {name!r} to change; leave out --change (or call open) to add it."
                )
            changed = replace(found, total=total)
            if composition.fits(total, changed.tally, adaptive=changed.adaptive) is None:
                raise LedgerError(f"The total {total} is smaller than what is spent on {name!r}; nothing was changed.")
            rows.write_dataset(connection, changed)
            return changed

        return self._write(work)

    def dataset(self, dataset: str) -> Dataset:
        """A dataset's promise and its spends."""
        name = parameters.name("dataset", dataset)
        return self._read(lambda connection: self._known(connection, name))

    def datasets(self) -> tuple[Dataset, ...]:
        """Every dataset, by name."""
        return self._read(lambda connection: tuple(self._known(connection, name) for name in rows.names(connection)))

    def verify(self) -> Verified:
        """Read the whole history and check every row against its seal, its neighbours and the totals.

        Others may spend meanwhile; spends that they make are not read.
        """
        return self._undamaged(lambda: history.verify(self._read, self._file.check_structure))

    def left(self, dataset: str) -> Guarantee | None:
        """The largest guarantee that still fits; None where none does."""
        return self.dataset(dataset).left

    def total_spent(self, dataset: str, delta: float) -> Spent:
        """All that is spent on a dataset as (ε, δ), and the rule that gave it."""
        return self.dataset(dataset).spent(delta)

    def spend(
        self,
        dataset: str,
        guarantee: Guarantee,
        *,
        by: str = "by hand",
        rho: float | None = None,
        max_items_per_person: int = 1,
        neighbours: Neighbours = "replace",
        asked: Mapping[str, Any] | None = None,
    ) -> Spend:
        """Record a guarantee that is about to be used; it is on disk when this returns.

        ``rho`` says that the same transcript is also ρ-zCDP, which lets it compose more tightly; ``asked`` are public
        facts for its history.
        """
        spend = spend_of(dataset, guarantee, by, rho, max_items_per_person, neighbours=neighbours, asked=asked)
        return self._write(lambda connection: self._add(connection, spend, os.urandom(16).hex(), ""))

    def keep(self, dataset: str, release: str) -> None:
        """Keep the text of a release that was paid for and could not be written where it was asked for."""
        name = parameters.name("dataset", dataset)
        self._write(lambda connection: rows.keep(connection, rows.stored_name(connection, name), release))

    def kept(self, dataset: str | None = None) -> tuple[str, ...]:
        """The releases that were kept, of one dataset or of all, the oldest first. They are public."""
        name = None if dataset is None else parameters.name("dataset", dataset)
        return tuple(text for each, text in self._read(rows.kept) if name in (None, each))

    def check(self, spend: Spend) -> None:
        """Raise the error that spending it would raise now; spend nothing."""
        self._read(lambda connection: self._fitting(self._promised(connection, spend.dataset), spend))

    def advance(self, spend: Spend, lineage: str, holder: str) -> int:
        """Record that the estimator of this ``lineage`` is about to draw noise, durably, and return its generation.

        The first time, ``spend`` is spent. Afterwards ``spend.generation``, the one that the estimator knows, must be
        the last one, or the last noise must have been drawn by the same ``holder``.
        """

        def work(connection: sqlite3.Connection) -> int:
            known = rows.find_generation(connection, lineage)
            if known is None and not spend.generation:
                return self._add(connection, replace(spend, generation=1), lineage, holder).generation
            self._known(connection, spend.dataset)
            generation, last_holder = known or (0, "")
            if generation < spend.generation:
                raise LedgerError("This ledger is older than the checkpoint: it was restored, or is another one.")
            if last_holder != holder and generation != spend.generation:
                raise ReplayError(STALE)
            rows.write_generation(connection, lineage, generation + 1, holder)
            return generation + 1

        return self._write(work)

    def settle(self, spend: Spend, lineage: str, holder: str, settled: str) -> None:
        """Pass the last generation on from ``holder`` to ``settled``: a mark that it was shown, or another holder."""

        def work(connection: sqlite3.Connection) -> None:
            if rows.find_generation(connection, lineage) != (spend.generation, holder):
                raise ReplayError("Another driver has continued this stream, so nothing is shown here.")
            rows.write_generation(connection, lineage, spend.generation, settled)

        self._write(work)

    def last_noise(self, lineage: str) -> tuple[int, str]:
        """A lineage's generation (how often it has drawn noise) and the holder who drew last."""
        return self._read(lambda connection: rows.find_generation(connection, lineage) or (0, ""))

    def generation(self, lineage: str) -> int:
        """How often a lineage has drawn noise."""
        return self.last_noise(lineage)[0]

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return self._undamaged(lambda: self._file.read(work))

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return self._undamaged(lambda: self._file.write(work))

    def _undamaged(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Damaged:
            raise self._file.damaged() from None

    def _find(self, connection: sqlite3.Connection, name: str) -> Dataset | None:
        return history.find_dataset(connection, name, self._read)

    def _known(self, connection: sqlite3.Connection, name: str) -> Dataset:
        if (found := self._find(connection, name)) is None:
            raise rows.unopened(name)
        return found

    def _promised(self, connection: sqlite3.Connection, name: str) -> Dataset:
        """The dataset, with this object's promise if it was not opened before."""
        if self._total is None:
            return self._known(connection, name)
        wanted = Dataset(
            name=name,
            total=self._total,
            max_items_per_person=self._max_items_per_person,
            adaptive=self._adaptive,
            neighbours=self._neighbours,
            opened=now(),
        )
        return self._as_promised(connection, wanted) or wanted

    def _as_promised(self, connection: sqlite3.Connection, wanted: Dataset) -> Dataset | None:
        """The dataset, if it was opened with the promise that is wanted; None if it was not opened."""
        found = self._find(connection, wanted.name)
        if found is not None and found.promised != wanted.promised:
            advice = "use --change (change_total) to change it"
            if found.neighbours != wanted.neighbours:
                advice = "its neighbours stay: open another dataset"
            raise LedgerError(
                f"The dataset {wanted.name!r} already has the total {found.promise}, not {wanted.promise}; {advice}, "
                "or Ledger(path) without a total to keep it."
            )
        return found

    def _add(self, connection: sqlite3.Connection, spend: Spend, lineage: str, holder: str) -> Spend:
        dataset = self._promised(connection, spend.dataset)
        if not dataset.head:
            rows.write_dataset(connection, dataset)
        spend = self._fitting(dataset, replace(spend, dataset=dataset.name))
        rows.add_spend(connection, dataset, spend, lineage, holder)
        return spend

    def _fitting(self, dataset: Dataset, spend: Spend) -> Spend:
        """The spend with its time and its composition rule, if the total covers it."""
        if spend.neighbours != dataset.neighbours:
            raise ParameterError(
                f"The dataset {dataset.name!r} promises {dataset.promise}; a spend per {spend.unit} does not add up "
                f'with that: open another dataset with neighbours="{spend.neighbours}", and spend on it.'
            )
        if spend.max_items_per_person < dataset.max_items_per_person:
            raise ParameterError(
                f"The dataset {dataset.name!r} promises {dataset.promise}; max_items_per_person="
                f"{spend.max_items_per_person} protects less."
            )
        rule = composition.fits(dataset.total, dataset.tally.plus(spend.claim), adaptive=dataset.adaptive)
        if rule is None:
            left = composition.left(dataset.total, dataset.tally, spend.guarantee, adaptive=dataset.adaptive)
            raise BudgetExceeded(_too_little(dataset, spend, left), left)
        return replace(spend, rule=rule, when=now(dataset.latest or dataset.opened))


def _too_little(dataset: Dataset, spend: Spend, left: Guarantee | None) -> str:
    """Why the total does not cover the spend; ``left`` is the largest one of the spend's kind that it covers."""
    total, asked = dataset.total, spend.guarantee
    if total.composition_rule is not None and total.taken_by(asked, spend.claim.zcdp_rho) is None:
        kinds = f"a {type(total).__name__} total cannot cover a {type(asked).__name__} spend"
        return f"The dataset {dataset.name!r} has a total of {total}; {kinds} ({asked} was asked for)."
    rest = left or dataset.left or "nothing"
    return f"The dataset {dataset.name!r} has a total of {total}, of which {rest} is left; {asked} was asked for."
