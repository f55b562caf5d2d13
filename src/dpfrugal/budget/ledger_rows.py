"""The rows of a ledger: datasets, spends and generations, with a seal that is written and checked with each row."""

import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time as clock
from typing import Any

from dpfrugal import parameters
from dpfrugal.budget import composition
from dpfrugal.budget.composition import Claim, Spent
from dpfrugal.budget.ledger_file import seal_of
from dpfrugal.budget.person_moves import Exposure, exposure_of, of_exposure
from dpfrugal.errors import LedgerError, ParameterError
from dpfrugal.parameters import positive
from dpfrugal.privacy.guarantees import Guarantee, PureDP, checked_guarantee


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One guarantee that was spent: when, by what, and the composition rule by which it fits the total."""

    dataset: str
    guarantee: Guarantee
    when: datetime
    by: str
    rule: str
    max_items_per_person: int
    generation: int  # how often noise was drawn for it
    rho: float | None = None
    exposure: Exposure | None = None  # that of an estimator; a spend by hand has none

    @property
    def claim(self) -> Claim:
        """The spend, for composition."""
        return Claim(self.guarantee, self.rho, self.exposure)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The promise for a dataset, and its spends."""

    name: str
    total: Guarantee
    max_items_per_person: int
    adaptive: bool
    opened: datetime
    spends: tuple[Spend, ...] = ()

    @property
    def claims(self) -> list[Claim]:
        """The spends, for composition."""
        return [spend.claim for spend in self.spends]

    @property
    def left(self) -> Guarantee | None:
        """The largest guarantee that still fits: of the total's kind, or a pure ε where the total is (ε, δ)."""
        like = PureDP(epsilon=1.0) if self.total.composition_rule is None else self.total
        return composition.left(self.total, self.claims, like, adaptive=self.adaptive)

    def spent(self, delta: float) -> Spent:
        """All spends together as (ε, δ)."""
        return composition.total_spent(self.claims, delta)

    @property
    def used(self) -> float:
        """How much of the total is spent, in the total's size: its ρ, or its ε."""
        return composition.used(self.total, self.claims, adaptive=self.adaptive)

    @property
    def share(self) -> float:
        """The part of the total that is spent, between 0 and 1."""
        return self.used / self.total.size

    @property
    def promise(self) -> str:
        """The total and whom it protects, in words."""
        unit = "item" if self.max_items_per_person == 1 else f"person of ≤ {self.max_items_per_person} items"
        return f"{self.total} per {unit}{', adaptive' if self.adaptive else ''}"


def spend_of(
    dataset: str,
    guarantee: Guarantee,
    by: str,
    rho: float | None,
    max_items_per_person: int,
    exposure: Exposure | None = None,
) -> Spend:
    """A spend that is about to be made, with its arguments checked; its time and rule are set when it is made."""
    if exposure is not None and not exposure.accords(guarantee, rho):
        raise ParameterError(f"exposure must be no smaller than {guarantee}: it states more noise than that needs.")
    return Spend(
        dataset=parameters.name("dataset", dataset),
        guarantee=checked_guarantee(guarantee),
        when=now(()),
        by=parameters.name("by", by),
        rule="",
        max_items_per_person=parameters.max_items_per_person(max_items_per_person),
        generation=0,
        rho=None if rho is None else positive("rho", rho),
        exposure=exposure,
    )


class Damaged(Exception):  # noqa: N818 - caught where the file's name is known
    """A row does not match its seal."""


def find_dataset(connection: sqlite3.Connection, name: str) -> Dataset | None:
    """A dataset with all its spends, every seal checked; None if it was never opened."""
    row = connection.execute(
        "SELECT dataset, record, spends, head, seal FROM datasets WHERE dataset = ?", (name,)
    ).fetchone()
    if row is None:
        return None
    if row[4] != seal_of("dataset", *row[:4]):
        raise Damaged
    promised = json.loads(row[1])
    spends, link = [], seal_of("chain", name)
    rows = connection.execute(
        "SELECT lineage, record, seal FROM spends WHERE dataset = ? ORDER BY id", (name,)
    ).fetchall()
    for lineage, record, seal in rows:
        link = seal_of(link, name, lineage, record)
        generation, _ = find_generation(connection, lineage) or (None, None)
        if seal != link or generation is None:
            raise Damaged
        spends.append(_spend(name, json.loads(record), generation))
    if len(rows) != row[2] or link != row[3]:
        raise Damaged
    return Dataset(
        name=name,
        total=Guarantee.of_record(promised["total"]),
        max_items_per_person=promised["max_items_per_person"],
        adaptive=promised["adaptive"],
        opened=_time(promised["opened"]),
        spends=tuple(spends),
    )


def write_dataset(connection: sqlite3.Connection, dataset: Dataset) -> None:
    """Open a dataset, or change its promise."""
    record = json.dumps(
        {
            "total": dataset.total.to_record(),
            "max_items_per_person": dataset.max_items_per_person,
            "adaptive": dataset.adaptive,
            "opened": _microseconds(dataset.opened),
        }
    )
    head = connection.execute("SELECT head FROM datasets WHERE dataset = ?", (dataset.name,)).fetchone()
    link = head[0] if head else seal_of("chain", dataset.name)
    _write_head(connection, dataset.name, record, len(dataset.spends), link)


def add_spend(connection: sqlite3.Connection, spend: Spend, lineage: str, holder: str) -> None:
    """Append a spend, and record its first generation."""
    record = json.dumps(
        {
            "when": _microseconds(spend.when),
            "by": spend.by,
            "guarantee": spend.guarantee.to_record(),
            "rho": spend.rho,
            "exposure": of_exposure(spend.exposure),
            "rule": spend.rule,
            "max_items_per_person": spend.max_items_per_person,
        },
        ensure_ascii=False,
    )
    (promised, count, head) = connection.execute(
        "SELECT record, spends, head FROM datasets WHERE dataset = ?", (spend.dataset,)
    ).fetchone()
    link = seal_of(head, spend.dataset, lineage, record)
    connection.execute(
        "INSERT INTO spends (dataset, lineage, record, seal) VALUES (?, ?, ?, ?)",
        (spend.dataset, lineage, record, link),
    )
    _write_head(connection, spend.dataset, promised, count + 1, link)
    write_generation(connection, lineage, spend.generation, holder)


def find_generation(connection: sqlite3.Connection, lineage: str) -> tuple[int, str] | None:
    """A lineage's generation and the holder who drew noise last; None if it never did."""
    row = connection.execute(
        "SELECT lineage, generation, holder, seal FROM generations WHERE lineage = ?", (lineage,)
    ).fetchone()
    if row is None:
        return None
    if row[3] != seal_of("generation", *row[:3]):
        raise Damaged
    return row[1], row[2]


def write_generation(connection: sqlite3.Connection, lineage: str, generation: int, holder: str) -> None:
    """Record that noise is about to be drawn."""
    connection.execute(
        "INSERT OR REPLACE INTO generations VALUES (?, ?, ?, ?)",
        (lineage, generation, holder, seal_of("generation", lineage, generation, holder)),
    )


def now(after: tuple[Spend, ...], opened: datetime | None = None) -> datetime:
    """The time, or that of the last entry if the clock was set back."""
    times = [spend.when for spend in after[-1:]] + ([opened] if opened else [])
    return max([datetime.fromtimestamp(clock(), UTC), *times])


def unopened(name: str) -> LedgerError:
    """The error for a dataset that is not in the ledger."""
    return LedgerError(
        f"The dataset {name!r} is not in this ledger; add it with a total first (dpfrugal ledger add, or Ledger.open)."
    )


def _write_head(connection: sqlite3.Connection, name: str, record: str, count: int, head: str) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO datasets VALUES (?, ?, ?, ?, ?)",
        (name, record, count, head, seal_of("dataset", name, record, count, head)),
    )


def _spend(dataset: str, record: dict[str, Any], generation: int) -> Spend:
    try:
        guarantee, exposure = Guarantee.of_record(record["guarantee"]), exposure_of(record["exposure"])
        accords = exposure is None or exposure.accords(guarantee, record["rho"])
    except (ArithmeticError, ValueError, TypeError, LookupError):
        raise Damaged from None
    if not accords:
        raise Damaged
    return Spend(
        dataset=dataset,
        guarantee=guarantee,
        when=_time(record["when"]),
        by=record["by"],
        rule=record["rule"],
        max_items_per_person=record["max_items_per_person"],
        generation=generation,
        rho=record["rho"],
        exposure=exposure,
    )


def _microseconds(when: datetime) -> int:
    return round(when.timestamp() * 1e6)


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)
