"""The rows of a ledger: datasets, spends and generations, with a seal that is written and checked with each row."""

import json
import sqlite3
from datetime import UTC, datetime
from typing import Any

from dpfrugal import parameters
from dpfrugal.budget.ledger_file import VERSION_WITH_NEIGHBOURS, seal_of
from dpfrugal.budget.person_moves import exposure_of, of_exposure
from dpfrugal.budget.promises import Dataset, Spend
from dpfrugal.errors import LedgerError, ParameterError
from dpfrugal.privacy.guarantees import Guarantee

REPLACE = "replace"


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
    neighbours = _neighbours(promised)
    if len(rows) != row[2] or link != row[3] or any(spend.neighbours != neighbours for spend in spends):
        raise Damaged
    return Dataset(
        name=name,
        total=Guarantee.of_record(promised["total"]),
        max_items_per_person=promised["max_items_per_person"],
        adaptive=promised["adaptive"],
        neighbours=neighbours,
        opened=_time(promised["opened"]),
        spends=tuple(spends),
    )


def write_dataset(connection: sqlite3.Connection, dataset: Dataset) -> None:
    """Open a dataset, or change its promise."""
    if dataset.neighbours != REPLACE:
        # A dpfrugal that knows of replaced items only must not take the total for one of these.
        connection.execute(f"PRAGMA user_version = {VERSION_WITH_NEIGHBOURS}")
    record = json.dumps(
        {
            "total": dataset.total.to_record(),
            "max_items_per_person": dataset.max_items_per_person,
            "adaptive": dataset.adaptive,
            "opened": _microseconds(dataset.opened),
        }
        | _of_neighbours(dataset.neighbours)
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
            "asked": spend.asked,
        }
        | _of_neighbours(spend.neighbours),
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
        neighbours=_neighbours(record),
        rho=record["rho"],
        exposure=exposure,
        asked=record.get("asked", {}),
    )


def _neighbours(record: dict[str, Any]) -> parameters.Neighbours:
    """Older ledgers name none: all that they hold is for replaced items."""
    try:
        return parameters.neighbours(record.get("neighbours", REPLACE))
    except ParameterError:
        raise Damaged from None


def _of_neighbours(neighbours: parameters.Neighbours) -> dict[str, str]:
    return {} if neighbours == REPLACE else {"neighbours": neighbours}


def _microseconds(when: datetime) -> int:
    return round(when.timestamp() * 1e6)


def _time(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)
