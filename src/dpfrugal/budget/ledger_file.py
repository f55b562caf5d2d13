"""The file of a ledger: SQLite in write-ahead mode; a write is on disk before the call returns.

Every row has a seal, the SHA-256 of its content. The seals of a dataset's spends form a hash chain; the dataset's row
holds its last link and its length. A flipped byte, a deleted row or an inserted one raises an error.
Each call opens its own connection: nothing stays open, and a forked process inherits nothing.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from dpfrugal.errors import LedgerError
from dpfrugal.storage import durable

APPLICATION: Final = 0x64704C67  # "dpLg"
VERSION: Final = 2
VERSION_WITH_NEIGHBOURS: Final = 3  # it has a total for items that are added or removed
PATIENCE: Final = 60.0  # seconds to wait for other processes
SCHEMA: Final = {
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
T = TypeVar("T")


def seal_of(*parts: object) -> str:
    """The SHA-256 of a list of numbers and strings."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, default=repr).encode()).hexdigest()


class LedgerFile:
    """Transactions on a ledger's file, whatever its rows mean."""

    path: Path
    name: str

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise LedgerError(f"{self.path} is a directory, not a ledger.")
        if not self.path.exists() and not create:
            raise LedgerError(f"{self.path} does not exist; Ledger(path, total=…) or dpfrugal ledger add makes one.")
        if not self.path.parent.is_dir():
            raise LedgerError(f"{self.path.parent} is not a directory: no ledger can be made there.")
        self.name = self._translated(lambda: self._open(create))

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work`` in a read transaction."""
        return self._translated(lambda: self._transaction("BEGIN", work))

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work`` in a write transaction, committed to disk; an error rolls all of it back."""
        return self._translated(lambda: self._transaction("BEGIN IMMEDIATE", work))

    def _transaction(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._connection() as connection:
            self._patiently(lambda: connection.execute(begin))
            try:
                self._identify(connection)
                result = work(connection)
                self._patiently(lambda: connection.execute("COMMIT"))
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        return result

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # mode=rw: a file that was deleted is not created again, empty.
        address = f"{self.path.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")
            # Every commit is checkpointed into the file: the write-ahead log never holds the only copy for long.
            connection.execute("PRAGMA wal_autocheckpoint = 1")
            yield connection

    def _open(self, create: bool) -> str:
        if create and not self.path.exists():
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        with self._connection() as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] == 0 and create:
                self._make(connection)
            self._identify(connection)
            if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                raise LedgerError(f"{self.path} is damaged: SQLite's integrity check fails. Restore it from a backup.")
            return self._identify(connection)

    def _make(self, connection: sqlite3.Connection) -> None:
        foreign = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if foreign and connection.execute("PRAGMA application_id").fetchone()[0] == 0:
            raise LedgerError(f"{self.path} is an SQLite file of something else, not a ledger.")
        self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
        try:
            if connection.execute("PRAGMA application_id").fetchone()[0] == 0:
                for statement in SCHEMA.values():
                    connection.execute(statement)
                name = os.urandom(16).hex()
                connection.execute("INSERT INTO ledger VALUES (?, ?)", (name, seal_of("ledger", name)))
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            self._patiently(lambda: connection.execute("COMMIT"))
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        durable.sync_folder(self.path.parent)

    def _identify(self, connection: sqlite3.Connection) -> str:
        """The ledger's random name, if the file is a ledger of this version."""
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerError(f"{self.path} is not a ledger: it belongs to something else, or is empty.")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (VERSION, VERSION_WITH_NEIGHBOURS):
            raise LedgerError(
                f"{self.path} is a ledger of version {version}; this dpfrugal reads versions {VERSION} and "
                f"{VERSION_WITH_NEIGHBOURS}. "
                "Use the dpfrugal that made it."
            )
        found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        rows = connection.execute("SELECT name, seal FROM ledger").fetchall() if found == SCHEMA else []
        if len(rows) != 1 or rows[0][1] != seal_of("ledger", rows[0][0]):
            raise self.damaged()
        return str(rows[0][0])

    def damaged(self) -> LedgerError:
        """The error for a row that does not match its seal."""
        return LedgerError(f"{self.path} is damaged: what it holds is not what was written. Restore it from a backup.")

    def _patiently(self, work: Callable[[], Any]) -> None:
        """Try again while other processes lock the file; SQLite's busy timeout does not cover all cases."""
        deadline, pause = time.monotonic() + PATIENCE, 0.001
        while True:
            try:
                work()
                return
            except sqlite3.OperationalError as error:
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _translated(self, work: Callable[[], T]) -> T:
        """The result of ``work``, with SQLite's errors translated into sentences."""
        try:
            return work()
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            said = {
                sqlite3.SQLITE_FULL: "the disk is full",
                sqlite3.SQLITE_READONLY: "it cannot be written",
                sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its directory cannot be written",
                sqlite3.SQLITE_PERM: "it may not be opened",
                sqlite3.SQLITE_BUSY: "other processes keep it locked",
                sqlite3.SQLITE_IOERR: "the disk fails, or is full",
                sqlite3.SQLITE_NOTADB: "it is not an SQLite file, or is damaged",
                sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a backup",
            }.get(code, "it is damaged, or not a ledger")
            raise LedgerError(f"The ledger {self.path} cannot be used: {said}.") from None
        except UnicodeDecodeError:  # from SQLite's message about a damaged schema
            raise self.damaged() from None
        except OSError as error:
            raise LedgerError(f"The ledger {self.path} cannot be used: {error.strerror}.") from None
