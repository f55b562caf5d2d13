"""The file of a ledger: SQLite in write-ahead mode; a write is on disk, in the file itself, before the call returns.

Every row has a seal, the SHA-256 of its content. The seals of a dataset's spends form a hash chain; the dataset's row
holds its last link and its length. A flipped byte, a deleted row or an inserted one raises an error.
Each call opens its own connection: nothing stays open, and a forked process inherits nothing.

SQLite's log and most of its locks go by the path of a file. A file may have several: a mount of that one file, a hard
link. So each transaction holds a lock on the file itself (its inode), and before the lock is released the log is empty:
whoever comes next, by whatever path, finds everything in the file. A file with hard links is refused, and so is one
that is not the file that was opened, or not the ledger.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from dpfrugal.budget.ledger_schema import (
    APPLICATION,
    NEWER_TABLES,
    OLDER_SCHEMA,
    OLDER_VERSIONS,
    SCHEMA,
    VERSION,
    last_spend,
    last_writes,
    name_write,
    seal_of,
)
from dpfrugal.errors import LedgerError
from dpfrugal.storage import durable, locks

PATIENCE: Final = 60.0  # seconds to wait for other processes
DISK_FAILS: Final = "the disk fails, or is full; what it holds may be whole, so try again before you restore anything"
T = TypeVar("T")

_holding = threading.local()


def _held_by_this_thread() -> set[tuple[int, int]]:
    """The files whose lock this thread holds."""
    held: set[tuple[int, int]] = _holding.__dict__.setdefault("files", set())
    return held


class LedgerFile:
    """Transactions on a ledger's file, whatever its rows mean.

    ``fill`` computes the running totals of a file that has none yet, in the transaction in which it gets them.
    """

    path: Path
    name: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        fill: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> None:
        self.path, self._fill = Path(path), fill
        if what := durable.kind_of(self.path):
            raise LedgerError(f"{self.path} is {what}, not a ledger.")
        if not self.path.exists() and not create:
            raise LedgerError(f"{self.path} does not exist; Ledger(path, total=…) or dpfrugal ledger add makes one.")
        if not self.path.parent.is_dir():
            raise LedgerError(f"{self.path.parent} is not a directory: no ledger can be made there.")
        self._file: tuple[int, int] | None = None
        self._spends = 0  # as many as were ever seen here
        self.name = ""  # not known yet
        self.name = self._translated(lambda: self._open(create))

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work`` in a read transaction."""
        return self._translated(lambda: self._transaction("BEGIN", work))

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of ``work`` in a write transaction, committed to disk; an error rolls all of it back."""
        return self._translated(lambda: self._transaction("BEGIN IMMEDIATE", work))

    def _transaction(self, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
        writing = begin != "BEGIN"
        with self._held() as outermost, self._connection() as connection:
            self._patiently(lambda: connection.execute(begin))
            try:
                self._identify(connection)
                if writing:
                    self._begin_write(connection)
                result = work(connection)
                seen = last_spend(connection)
                self._patiently(lambda: connection.execute("COMMIT"))
                self._spends = max(self._spends, seen)
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            if outermost:
                self._empty_log(connection)
        return result

    @contextmanager
    def _held(self) -> Iterator[bool]:
        """The lock of the file itself, whatever its path is; the file is the one that was opened, and has one name.

        Work that uses the ledger again, in the same thread, holds it already: then this is False.
        """
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            opened = os.fstat(descriptor)
            file = opened.st_dev, opened.st_ino
            held = _held_by_this_thread()
            if file in held:
                yield False
                return
            with locks.locked(descriptor, PATIENCE):
                held.add(file)
                try:
                    self._refuse_another_file(os.fstat(descriptor))
                    self._settle_log()
                    yield True
                finally:
                    held.remove(file)
        finally:
            os.close(descriptor)

    def _refuse_another_file(self, status: os.stat_result) -> None:
        if status.st_nlink == 0 or not os.path.samestat(status, os.stat(self.path)):
            raise FileNotFoundError
        if status.st_nlink > 1:
            raise LedgerError(
                f"{self.path} has {status.st_nlink} names (hard links); a ledger may have one only. Remove the others."
            )
        if self._file not in (None, (status.st_dev, status.st_ino)):
            raise LedgerError(
                f"{self.path} is not the file that was opened: another one was put in its place. If it is older, what "
                "was spent since is missing in it."
            )
        self._file = status.st_dev, status.st_ino

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # mode=rw: a file that was deleted is not created again, empty.
        with self._connected("mode=rw" if self._is_writable() else "immutable=1") as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")
            # Every commit is checkpointed into the file: the write-ahead log never holds the only copy for long.
            connection.execute("PRAGMA wal_autocheckpoint = 1")
            yield connection

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.resolve().as_uri()}?{mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=PATIENCE, isolation_level=None)) as connection:
            yield connection

    def _is_writable(self) -> bool:
        """Whether SQLite may write the file and its log, which even reading needs; a read-only disk has neither."""
        return os.access(self.path, os.W_OK) and os.access(self.path.resolve().parent, os.W_OK)

    def _log(self) -> Path:
        resolved = self.path.resolve()
        return resolved.with_name(f"{resolved.name}-wal")

    def _settle_log(self) -> None:
        """Deal with the log that a killed process has left under this path; the lock is held, and no connection open.

        What it holds was never confirmed to anyone: that happens when it is in the file. If the file has been written
        by another path since, the log is of an older file, and would undo that: it is removed.
        """
        log = self._log()
        try:
            if not log.stat().st_size:
                return
        except FileNotFoundError:
            return
        if not self._is_writable():
            raise LedgerError(
                f"{self.path} was not closed: a process was killed while it wrote. Open it once where it can be "
                "written."
            )
        last: tuple[str, ...] = ()
        with suppress(sqlite3.Error), self._connected("immutable=1") as connection:  # the file without its log
            last = last_writes(connection)[:1]
        if last:
            with self._connected("mode=ro") as connection:
                logged = last_writes(connection)
            if logged and last[0] not in logged:
                for leftover in ("-wal", "-shm"):
                    log.with_name(log.name.removesuffix("-wal") + leftover).unlink(missing_ok=True)
                return
        with self._connected("mode=rw") as connection:
            last_writes(connection)  # opens the log
            self._empty_log(connection)

    def _begin_write(self, connection: sqlite3.Connection) -> None:
        """Name this write after the one before it; an older file gets its running totals."""
        if connection.execute("PRAGMA user_version").fetchone()[0] in OLDER_VERSIONS:
            for statement in NEWER_TABLES.values():
                connection.execute(statement)
            self._fill(connection)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            name_write(connection, "")
        else:
            name_write(connection, last_writes(connection)[0])

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        """All that was committed is in the file itself: a write is confirmed only then."""
        busy, logged, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if busy or logged != copied:  # another program reads an older state
            busy, logged, copied = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
        if busy or logged != copied:
            raise LedgerError(f"The ledger {self.path} cannot be used: another program keeps it open.")

    def _open(self, create: bool) -> str:
        if create and not self.path.exists():
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        with self._held(), self._connection() as connection:
            if create and connection.execute("PRAGMA application_id").fetchone()[0] == 0:
                self._make(connection)
            return self._identify(connection)

    def _make(self, connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise LedgerError(f"{self.path} is an SQLite file of something else, not a ledger.")
        self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        self._patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
        try:
            for statement in SCHEMA.values():
                connection.execute(statement)
            name = os.urandom(16).hex()
            connection.execute("INSERT INTO ledger VALUES (?, ?)", (name, seal_of("ledger", name)))
            name_write(connection, "")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            self._patiently(lambda: connection.execute("COMMIT"))
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._empty_log(connection)
        durable.sync_folder(self.path.parent)

    def _identify(self, connection: sqlite3.Connection) -> str:
        """The ledger's random name, if the file is a ledger of this version, and the one that was opened."""
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerError(f"{self.path} is not a ledger: it belongs to something else, or is empty.")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (*OLDER_VERSIONS, VERSION):
            raise LedgerError(
                f"{self.path} is a ledger of version {version}; this dpfrugal reads versions {OLDER_VERSIONS[0]} to "
                f"{VERSION}. Use the dpfrugal that made it."
            )
        schema = SCHEMA if version == VERSION else OLDER_SCHEMA
        found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        rows = connection.execute("SELECT name, seal FROM ledger").fetchall() if found == schema else []
        if len(rows) != 1 or rows[0][1] != seal_of("ledger", rows[0][0]):
            raise self.damaged()
        name = str(rows[0][0])
        if self.name not in ("", name):
            raise LedgerError(f"{self.path} is another ledger than the one that was opened there.")
        if version == VERSION and not last_writes(connection):
            raise self.damaged()
        if last_spend(connection) < self._spends:
            raise LedgerError(f"{self.path} has fewer spends than before: an older copy was put in its place.")
        return name

    def check_structure(self, connection: sqlite3.Connection) -> None:
        """SQLite's own check of all its pages; it takes a second for some hundred megabytes."""
        if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise self.damaged("SQLite's integrity check fails")

    def damaged(self, why: str = "what it holds is not what was written") -> LedgerError:
        """The error for a row that does not match its seal, unless it is the disk that fails."""
        if not self._is_readable():
            return LedgerError(f"The ledger {self.path} cannot be used: {DISK_FAILS}.")
        return LedgerError(f"{self.path} is damaged: {why}. Restore it from a backup.")

    def _is_readable(self) -> bool:
        """Whether the disk gives out every byte: SQLite takes some failures to read for damage."""
        try:
            with durable.opened_to_read(self.path) as file:
                while file.read(1 << 20):
                    pass
        except OSError:
            return False
        return True

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
                sqlite3.SQLITE_IOERR: DISK_FAILS,
                sqlite3.SQLITE_NOTADB: "it is not an SQLite file, or is damaged",
                sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a backup",
            }.get(code, "it is damaged, or not a ledger")
            if "damaged" in said and not self._is_readable():
                said = DISK_FAILS
            raise LedgerError(f"The ledger {self.path} cannot be used: {said}.") from None
        except locks.Busy:
            raise LedgerError(f"The ledger {self.path} cannot be used: other processes keep it locked.") from None
        except FileNotFoundError:
            raise LedgerError(f"The ledger {self.path} cannot be opened: it is gone.") from None
        except UnicodeDecodeError:  # from SQLite's message about a damaged schema
            raise self.damaged() from None
        except OSError as error:
            raise LedgerError(f"The ledger {self.path} cannot be used: {error.strerror}.") from None
