"""The history of a ledger: every spend in order, each checked against its seal and its link to the one before it.

A long history is read in parts, each in a transaction of its own, so that others may spend meanwhile. Spends are only
ever appended, so the parts fit together.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

from dpfrugal.budget import ledger_rows as rows
from dpfrugal.budget.claims import Claim, Tally
from dpfrugal.budget.ledger_rows import Damaged
from dpfrugal.budget.ledger_schema import seal_of
from dpfrugal.budget.promises import Dataset, Spend, time_of

PART: Final = 20_000  # spends that are read at once: some tenths of a second
FEW: Final = 2_000  # spends that are all checked whenever a ledger is opened
NEWEST: Final = 200  # spends that are checked when a ledger with more is opened
Row = tuple[Any, ...]
T = TypeVar("T")
Reader = Callable[[Callable[[sqlite3.Connection], T]], T]


@dataclass(frozen=True)
class Verified:
    """What a verification has read: every row was as it was written."""

    spends: int
    datasets: int
    generations: int


def last_spend(connection: sqlite3.Connection) -> int:
    """The number of the last spend; they are numbered from 1 on, without a gap."""
    return int(connection.execute("SELECT max(id) FROM spends").fetchone()[0] or 0)


def part_after(connection: sqlite3.Connection, last: int, most: int = PART, dataset: str | None = None) -> list[Row]:
    """The rows of the next spends, each with that of its generation."""
    where, given = ("AND s.dataset = ?", (last, dataset, most)) if dataset is not None else ("", (last, most))
    return connection.execute(
        "SELECT s.id, s.dataset, s.lineage, s.record, s.seal, g.generation, g.holder, g.seal "  # noqa: S608 - constants
        f"FROM spends s LEFT JOIN generations g ON g.lineage = s.lineage WHERE s.id > ? {where} ORDER BY s.id LIMIT ?",
        given,
    ).fetchall()


class Chains:
    """The chains of all datasets as far as they were followed, and what their spends come to."""

    def __init__(self) -> None:
        self.links: dict[str, str] = {}
        self.tallies: dict[str, dict[Claim, int]] = {}
        self.newest: dict[str, Claim] = {}
        self.neighbours: dict[str, set[str]] = {}
        self.latest: dict[str, datetime] = {}

    def follow(self, row: Row) -> tuple[dict[str, Any], int]:
        """Check the next spend; its record and its generation."""
        _, name, lineage, text, seal, generation, holder, generation_seal = row
        link = seal_of(self.links.get(name) or seal_of("chain", name), name, lineage, text)
        if seal != link or generation_seal != seal_of("generation", lineage, generation, holder):
            raise Damaged
        record = json.loads(text)
        claim = rows.claim_of_record(record)
        self.links[name] = link
        counts = self.tallies.setdefault(name, {})
        counts[claim] = counts.get(claim, 0) + 1
        if claim.exposure is not None:
            self.newest[name] = claim
        self.neighbours.setdefault(name, set()).add(rows.neighbours_of(record))
        self.latest[name] = time_of(record["when"] / 1e6)
        return record, generation

    def tally(self, name: str) -> Tally:
        """What the spends of a dataset come to."""
        return Tally(tuple(self.tallies.get(name, {}).items()), self.newest.get(name))

    def check(self, dataset: Dataset, spends: int) -> None:
        """The dataset has exactly the spends that were followed."""
        link = self.links.get(dataset.name) or seal_of("chain", dataset.name)
        found = self.tally(dataset.name)
        if dataset.head != link or found.size != spends:
            raise Damaged
        if not self.neighbours.get(dataset.name, set()) <= {dataset.neighbours}:
            raise Damaged
        if dataset.tally and (set(dataset.tally), dataset.tally.newest) != (set(found), found.newest):
            raise Damaged


def find_dataset(connection: sqlite3.Connection, name: str, read: Reader[Any]) -> Dataset | None:
    """A dataset and what its spends come to, without reading them where totals are kept; ``read`` reads them later."""
    name = rows.stored_name(connection, name)
    if (found := rows.find_promise(connection, name)) is None:
        if rows.has_totals(connection) and rows.is_counted(connection, name):
            raise Damaged
        return None
    dataset, count = found
    if (totals := rows.find_totals(connection, dataset, count)) is not None:
        dataset, tally = totals
    else:
        chains = followed(_all_of(connection, name))
        chains.check(dataset, count)
        tally, latest = chains.tally(name), chains.latest.get(name)
        dataset = replace(dataset, latest=latest)
    head = dataset.head
    return replace(dataset, tally=tally, history=lambda: _history(read, name, count, head))


def _history(read: Reader[list[Row]], name: str, count: int, head: str) -> tuple[Spend, ...]:
    """The first ``count`` spends of a dataset, whose chain ends with ``head``."""
    chains, found = Chains(), list[Spend]()
    last = 0
    while len(found) < count:
        part = read(lambda connection, last=last: _whole(part_after(connection, last, PART, name)))  # type: ignore[misc]
        for row in part[: count - len(found)]:
            record, generation = chains.follow(row)
            found.append(rows.spend_of_record(name, record, generation))
        last = part[-1][0]
    if chains.links.get(name, head) != head:
        raise Damaged
    return tuple(found)


def _whole(part: list[Row]) -> list[Row]:
    if not part:
        raise Damaged
    return part


def fill_totals(connection: sqlite3.Connection) -> None:
    """Compute the totals of a file that kept none, from its history, every row of which is checked."""
    chains = followed(_all_of(connection))
    for name in [name for (name,) in connection.execute("SELECT dataset FROM datasets").fetchall()]:
        found = rows.find_promise(connection, name)
        if found is None:
            raise Damaged
        chains.check(*found)
        rows.write_totals(connection, name, found[0].head, chains.tally(name), chains.latest.get(name))
    if sum(chains.tally(name).size for name in chains.tallies) != last_spend(connection):
        raise Damaged


def _all_of(connection: sqlite3.Connection, dataset: str | None = None) -> Iterator[Row]:
    """All spends, or those of one dataset, in one transaction, without holding them all."""
    part = part_after(connection, 0, PART, dataset)
    while part:
        yield from part
        part = part_after(connection, part[-1][0], PART, dataset)


def followed(part: Iterable[Row]) -> Chains:
    """The chains of these rows."""
    chains = Chains()
    for row in part:
        chains.follow(row)
    return chains


def check_when_opened(connection: sqlite3.Connection, structure: Callable[[sqlite3.Connection], None]) -> None:
    """What is checked whenever a ledger is opened: all of a short history; of a long one totals and the newest spends.

    A row of a long history that is damaged decides nothing: spends are decided by the totals, which are checked here
    and in every transaction. ``verify`` reads all of it.
    """
    last = last_spend(connection)
    if last <= FEW:
        structure(connection)
        verify(lambda work: work(connection), structure=lambda _: None)
        return
    promises = {name: found for name in rows.names(connection) if (found := rows.find_promise(connection, name))}
    for dataset, count in promises.values():
        rows.find_totals(connection, dataset, count)
    if sum(count for _, count in promises.values()) != last:
        raise Damaged
    links: dict[str, str] = {}
    for row in part_after(connection, last - NEWEST):
        _, name, lineage, text, seal, generation, holder, generation_seal = row
        if generation_seal != seal_of("generation", lineage, generation, holder):
            raise Damaged
        if name in links and seal != seal_of(links[name], name, lineage, text):
            raise Damaged
        links[name] = seal
    if any(name not in promises or promises[name][0].head != link for name, link in links.items()):
        raise Damaged


def verify(read: Reader[Any], structure: Callable[[sqlite3.Connection], None]) -> Verified:
    """Read every row of a ledger and check all that it says against all that was written."""

    def begin(connection: sqlite3.Connection) -> tuple[dict[str, tuple[Dataset, int]], int, int]:
        structure(connection)
        rows.kept(connection)
        found = {}
        for name in rows.names(connection):
            if (promise := rows.find_promise(connection, name)) is None:
                raise Damaged
            totals = rows.find_totals(connection, *promise)
            found[name] = promise if totals is None else (replace(totals[0], tally=totals[1]), promise[1])
        (generations,) = connection.execute("SELECT count(*) FROM generations").fetchone()
        return found, last_spend(connection), generations

    promises, last, generations = read(begin)
    if generations != last or sum(count for _, count in promises.values()) != last:
        raise Damaged
    chains = Chains()
    for row in _all_up_to(read, last):
        chains.follow(row)
    if not set(chains.tallies) <= set(promises):
        raise Damaged
    for promise in promises.values():
        chains.check(*promise)
    return Verified(last, len(promises), generations)


def _all_up_to(read: Reader[list[Row]], last: int) -> Iterator[Row]:
    at = 0
    while at < last:
        for row in read(lambda connection, at=at: _whole(part_after(connection, at))):  # type: ignore[misc]
            if row[0] != at + 1:
                raise Damaged
            at = row[0]
            yield row
            if at == last:
                return
