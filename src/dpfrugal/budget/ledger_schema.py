"""The tables of a ledger's file, the seal of a row, and the names of its last two writes."""

import hashlib
import json
import os
import sqlite3
from typing import Final

APPLICATION: Final = 0x64704C67  # "dpLg"
VERSION: Final = 4
# Without running totals; 3 has a total for items that are added or removed. The first write adds them.
OLDER_VERSIONS: Final = (2, 3)
OLDER_SCHEMA: Final = {
    "ledger": "CREATE TABLE ledger (name TEXT NOT NULL, seal TEXT NOT NULL)",
    "datasets": (
        "CREATE TABLE datasets (dataset TEXT PRIMARY KEY, record TEXT NOT NULL, spends INTEGER NOT NULL, "
        "head TEXT NOT NULL, seal TEXT NOT NULL)"
    ),
    "spends": (
        "CREATE TABLE spends (id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, lineage TEXT NOT NULL UNIQUE, "
        "record TEXT NOT NULL, seal TEXT NOT NULL)"
    ),
    "generations": (
        "CREATE TABLE generations (lineage TEXT PRIMARY KEY, generation INTEGER NOT NULL, holder TEXT NOT NULL, "
        "seal TEXT NOT NULL)"
    ),
}
NEWER_TABLES: Final = {
    # What all spends of a dataset come to: how many, of which kinds, and the last link of their chain.
    "totals": (
        "CREATE TABLE totals (dataset TEXT PRIMARY KEY, spends INTEGER NOT NULL, head TEXT NOT NULL, "
        "kinds TEXT NOT NULL, newest INTEGER NOT NULL, latest INTEGER, seal TEXT NOT NULL)"
    ),
    # Releases that were paid for and could not be written where they were asked for.
    "kept": (
        "CREATE TABLE kept (id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, release TEXT NOT NULL, seal TEXT NOT NULL)"
    ),
    # The last write and the one before it, at random names: they tell whether a log belongs to the file as it is.
    "writes": "CREATE TABLE writes (last TEXT NOT NULL, before TEXT NOT NULL, seal TEXT NOT NULL)",
}
SCHEMA: Final = OLDER_SCHEMA | NEWER_TABLES


def seal_of(*parts: object) -> str:
    """The SHA-256 of a list of numbers and strings."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, default=repr).encode()).hexdigest()


def last_spend(connection: sqlite3.Connection) -> int:
    """The number of the newest spend; 0 before the first."""
    return int(connection.execute("SELECT max(id) FROM spends").fetchone()[0] or 0)


def last_writes(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The names of the last write and of the one before it; none in an older file, or a damaged one."""
    if not connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'writes'").fetchone()[0]:
        return ()
    rows = connection.execute("SELECT last, before, seal FROM writes").fetchall()
    return rows[0][:2] if len(rows) == 1 and rows[0][2] == seal_of("writes", *rows[0][:2]) else ()


def name_write(connection: sqlite3.Connection, before: str) -> None:
    """Give the write that has begun a random name."""
    names = os.urandom(8).hex(), before
    connection.execute("DELETE FROM writes")
    connection.execute("INSERT INTO writes VALUES (?, ?, ?)", (*names, seal_of("writes", *names)))
