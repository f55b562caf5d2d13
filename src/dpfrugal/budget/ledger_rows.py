"""The rows of a ledger: datasets, totals, spends and generations, with a seal that is written and checked with each.

A dataset has a row with its promise, the number of its spends and the last link of their chain, and a row of *totals*:
the same number and link, and how often each kind of spend was made. To decide about a spend these two rows are read,
however long the history is. ``ledger_history`` reads and verifies the history itself.
"""

import json
import sqlite3
import unicodedata
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from dpfrugal import parameters
from dpfrugal.budget.claims import Claim, Tally
from dpfrugal.budget.ledger_schema import seal_of
from dpfrugal.budget.person_moves import exposure_of, of_exposure
from dpfrugal.budget.promises import Dataset, Spend, time_of
from dpfrugal.errors import LedgerError, ParameterError
from dpfrugal.privacy.guarantees import Guarantee

REPLACE = "replace"


class Damaged(Exception):  # noqa: N818 - caught where the file's name is known
    """A row does not match its seal."""


def has_totals(connection: sqlite3.Connection) -> bool:
    """Whether the file keeps running totals; an older one does not before its first write."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'totals'").fetchone()[0])


def names(connection: sqlite3.Connection) -> list[str]:
    """The name of every dataset, in order; the totals must have the same."""
    found = [name for (name,) in connection.execute("SELECT dataset FROM datasets ORDER BY dataset")]
    if has_totals(connection):
        counted = [name for (name,) in connection.execute("SELECT dataset FROM totals ORDER BY dataset")]
        if counted != found:
            raise Damaged
    return found


def stored_name(connection: sqlite3.Connection, name: str) -> str:
    """The name under which a dataset is stored: older ledgers may have accents that are letters of their own."""
    if connection.execute("SELECT 1 FROM datasets WHERE dataset = ?", (name,)).fetchone() is None:
        for (stored,) in connection.execute("SELECT dataset FROM datasets"):
            if unicodedata.normalize("NFC", stored) == name:
                return str(stored)
    return name


def find_promise(connection: sqlite3.Connection, name: str) -> tuple[Dataset, int] | None:
    """A dataset's promise and how many spends it has; its tally is not known yet. None if it was never opened."""
    row = connection.execute(
        "SELECT dataset, record, spends, head, seal FROM datasets WHERE dataset = ?", (name,)
    ).fetchone()
    if row is None:
        return None
    if row[4] != seal_of("dataset", *row[:4]):
        raise Damaged
    promised = json.loads(row[1])
    promise = Dataset(
        name=row[0],
        total=Guarantee.of_record(promised["total"]),
        max_items_per_person=promised["max_items_per_person"],
        adaptive=promised["adaptive"],
        neighbours=neighbours_of(promised),
        opened=time_of(promised["opened"] / 1e6),
        head=row[3],
    )
    return promise, row[2]


def is_counted(connection: sqlite3.Connection, name: str) -> bool:
    """Whether totals are kept of a dataset."""
    return connection.execute("SELECT 1 FROM totals WHERE dataset = ?", (name,)).fetchone() is not None


def find_totals(connection: sqlite3.Connection, dataset: Dataset, spends: int) -> tuple[Dataset, Tally] | None:
    """The dataset with the time of its last spend, and what its spends come to; None where no totals are kept."""
    if not has_totals(connection):
        return None
    row = connection.execute(
        "SELECT dataset, spends, head, kinds, newest, latest, seal FROM totals WHERE dataset = ?", (dataset.name,)
    ).fetchone()
    if row is None or row[6] != seal_of("totals", *row[:6]) or (row[1], row[2]) != (spends, dataset.head):
        raise Damaged
    kinds = tuple((_claim_of(kind), int(times)) for kind, times in json.loads(row[3]))
    tally = Tally(kinds, kinds[row[4]][0] if row[4] >= 0 else None)
    if tally.size != spends:
        raise Damaged
    return replace(dataset, latest=None if row[5] is None else time_of(row[5] / 1e6)), tally


def write_dataset(connection: sqlite3.Connection, dataset: Dataset) -> None:
    """Open a dataset, or change its promise."""
    record = json.dumps(
        {
            "total": dataset.total.to_record(),
            "max_items_per_person": dataset.max_items_per_person,
            "adaptive": dataset.adaptive,
            "opened": _microseconds(dataset.opened),
        }
        | _of_neighbours(dataset.neighbours)
    )
    link = dataset.head or seal_of("chain", dataset.name)
    _write_head(connection, dataset.name, record, dataset.tally.size, link)
    write_totals(connection, dataset.name, link, dataset.tally, dataset.latest)


def write_totals(connection: sqlite3.Connection, name: str, link: str, tally: Tally, latest: datetime | None) -> None:
    """What the spends up to this link come to."""
    kinds = json.dumps([[_of_claim(claim), times] for claim, times in tally])
    newest = next((place for place, (claim, _) in enumerate(tally) if claim == tally.newest), -1)
    row = (name, tally.size, link, kinds, newest, None if latest is None else _microseconds(latest))
    connection.execute("INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, seal_of("totals", *row)))


def add_spend(connection: sqlite3.Connection, dataset: Dataset, spend: Spend, lineage: str, holder: str) -> None:
    """Append a spend to a dataset that is there, and record its first generation."""
    record = json.dumps(
        {
            "when": _microseconds(spend.when),
            "by": spend.by,
            "guarantee": spend.guarantee.to_record(),
            "rho": spend.rho,
            "exposure": of_exposure(spend.exposure),
            "rule": spend.rule,
            "max_items_per_person": spend.max_items_per_person,
            "asked": spend.asked,
        }
        | _of_neighbours(spend.neighbours),
        ensure_ascii=False,
    )
    (promised, count, head) = connection.execute(
        "SELECT record, spends, head FROM datasets WHERE dataset = ?", (dataset.name,)
    ).fetchone()
    link = seal_of(head, dataset.name, lineage, record)
    connection.execute(
        "INSERT INTO spends (dataset, lineage, record, seal) VALUES (?, ?, ?, ?)",
        (dataset.name, lineage, record, link),
    )
    _write_head(connection, dataset.name, promised, count + 1, link)
    write_totals(connection, dataset.name, link, dataset.tally.plus(spend.claim), spend.when)
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


def keep(connection: sqlite3.Connection, name: str, release: str) -> None:
    """Keep a release of a dataset as text."""
    connection.execute(
        "INSERT INTO kept (dataset, release, seal) VALUES (?, ?, ?)", (name, release, seal_of("kept", name, release))
    )


def kept(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """The releases that were kept, each with its dataset."""
    if not has_totals(connection):
        return []
    found = connection.execute("SELECT dataset, release, seal FROM kept ORDER BY id").fetchall()
    if any(seal != seal_of("kept", name, release) for name, release, seal in found):
        raise Damaged
    return [(name, release) for name, release, _ in found]


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


def spend_of_record(dataset: str, record: dict[str, Any], generation: int) -> Spend:
    """A spend as it is stored."""
    claim = claim_of_record(record)
    return Spend(
        dataset=dataset,
        guarantee=claim.guarantee,
        when=time_of(record["when"] / 1e6),
        by=record["by"],
        rule=record["rule"],
        max_items_per_person=record["max_items_per_person"],
        generation=generation,
        neighbours=neighbours_of(record),
        rho=claim.rho,
        exposure=claim.exposure,
        asked=record.get("asked", {}),
    )


def claim_of_record(record: dict[str, Any]) -> Claim:
    """The claim of a stored spend."""
    return _claim_of(json.dumps([record.get(part) for part in ("guarantee", "rho", "exposure")]))


def _of_claim(claim: Claim) -> str:
    return json.dumps([claim.guarantee.to_record(), claim.rho, of_exposure(claim.exposure)])


@lru_cache(maxsize=4096)
def _claim_of(text: str) -> Claim:
    try:
        guarantee, rho, exposure = json.loads(text)
        claim = Claim(Guarantee.of_record(guarantee), rho, exposure_of(exposure))
        accords = claim.exposure is None or claim.exposure.accords(claim.guarantee, rho)
    except (ArithmeticError, ValueError, TypeError, LookupError):
        raise Damaged from None
    if not accords:
        raise Damaged
    return claim


def neighbours_of(record: dict[str, Any]) -> parameters.Neighbours:
    """Older ledgers name none: all that they hold is for replaced items."""
    try:
        return parameters.neighbours(record.get("neighbours", REPLACE))
    except ParameterError:
        raise Damaged from None


def _of_neighbours(neighbours: parameters.Neighbours) -> dict[str, str]:
    return {} if neighbours == REPLACE else {"neighbours": neighbours}


def _microseconds(when: datetime) -> int:
    return round(when.timestamp() * 1e6)
