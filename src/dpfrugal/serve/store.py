"""The store of releases: an SQLite file that says which windows are spent, and holds what was released.

All of it is public.

A window is recorded as spent, on disk, before its noise is drawn, and can be recorded once only; its release is on disk
before anyone is shown it. A crash between the two leaves a window that is spent and was never released: a gap.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import LedgerError, ReplayError

APPLICATION: Final = 0x64705372  # "dpSr"
VERSION: Final = 2
PATIENCE: Final = 5.0
SCHEMA: Final = """
CREATE TABLE key_lists (id INTEGER PRIMARY KEY, keys TEXT NOT NULL UNIQUE);
CREATE TABLE windows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, metric TEXT NOT NULL, ends REAL NOT NULL, began REAL NOT NULL,
    day TEXT NOT NULL, terms TEXT NOT NULL, released REAL, about TEXT, key_list INTEGER, numbers BLOB,
    UNIQUE (metric, ends));
CREATE INDEX windows_by_day ON windows (metric, day);
CREATE INDEX windows_by_end ON windows (ends);
CREATE TABLE grants (metric TEXT NOT NULL, day TEXT NOT NULL, terms TEXT NOT NULL, windows INTEGER NOT NULL);
CREATE TABLE marks (name TEXT PRIMARY KEY, number INTEGER NOT NULL);
"""
T = TypeVar("T")


@dataclass(frozen=True)
class Stored:
    """A release: of each key and quantile a value with its interval; NaN where there were too few items."""

    id: int
    metric: str
    began: float
    ends: float
    released: float
    about: dict[str, Any]  # what the metric was then: its quantiles, its guarantee, its names
    keys: tuple[str, ...]
    numbers: NDArray[np.float64]  # values, lower and upper ends: 3 × keys × quantiles


@dataclass(frozen=True)
class Found:
    """Releases that were asked for, and whether there are more of them."""

    releases: list[Stored]
    more: bool


class Store:
    """One connection to the file, for all threads in turn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._key_lists: dict[int, tuple[str, ...]] = {}
        try:
            if not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._prepare()
            return
        except sqlite3.Error:
            problem = "it is no file of releases, is damaged, or is locked"
        except OSError as error:
            problem = str(error.strerror)
        raise LedgerError(f"The store {path} cannot be used: {problem}.")

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA trusted_schema = OFF")
        application, version = run("PRAGMA application_id").fetchone()[0], run("PRAGMA user_version").fetchone()[0]
        if not application and not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            run("PRAGMA journal_mode = WAL")
            with self._writing() as connection:
                for statement in SCHEMA.strip().split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
        elif (application, version) != (APPLICATION, VERSION):
            raise sqlite3.DatabaseError
        run("PRAGMA synchronous = FULL")
        # One server owns a store: two would each think that a window's items are its own.
        run("PRAGMA locking_mode = NORMAL")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on disk when this returns, or did not happen."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            return work(self._connection)

    def close(self) -> None:
        """No call comes after this."""
        with self._lock:
            self._connection.close()

    def spend(self, metric: str, began: float, ends: float, day: str, terms: str) -> None:
        """Record that a window's noise is about to be drawn, on these terms; a second time is refused."""
        with self._writing() as connection:
            try:
                connection.execute(
                    "INSERT INTO windows (metric, ends, began, day, terms) VALUES (?, ?, ?, ?, ?)",
                    (metric, ends, began, day, terms),
                )
                return
            except sqlite3.IntegrityError:
                pass
            raise ReplayError("This window was released before.")

    def publish(
        self,
        metric: str,
        ends: float,
        released: float,
        about: dict[str, Any],
        keys: Sequence[str],
        numbers: NDArray[Any],
    ) -> Stored:
        """Record what a spent window released; it may be shown when this returns."""
        blob = np.ascontiguousarray(numbers, dtype="<f8").tobytes()
        with self._writing() as connection:
            listed = json.dumps(list(keys), ensure_ascii=False)
            connection.execute("INSERT OR IGNORE INTO key_lists (keys) VALUES (?)", (listed,))
            (list_id,) = connection.execute("SELECT id FROM key_lists WHERE keys = ?", (listed,)).fetchone()
            found = connection.execute(
                "UPDATE windows SET released = ?, about = ?, key_list = ?, numbers = ? "
                "WHERE metric = ? AND ends = ? AND released IS NULL RETURNING id, began",
                (released, json.dumps(about), list_id, blob, metric, ends),
            ).fetchone()
            if found is None:
                raise ReplayError("This window was not spent, or was released before.")
        return Stored(found[0], metric, found[1], ends, released, about, tuple(keys), numbers)

    def spent_on(self, metric: str, day: str) -> dict[str, int]:
        """How many windows of a day are spent, by the terms they had."""
        query = "SELECT terms, count(*) FROM windows WHERE metric = ? AND day = ? GROUP BY terms"
        return dict(self._read(lambda connection: connection.execute(query, (metric, day)).fetchall()))

    def grant(self, metric: str, day: str, terms: str, windows: int) -> None:
        """Record that the ledger has a spend for so many windows of a day, on these terms."""
        with self._writing() as connection:
            connection.execute("INSERT INTO grants VALUES (?, ?, ?, ?)", (metric, day, terms, windows))

    def granted(self, metric: str, day: str, terms: str) -> int:
        """For how many windows of a day the ledger has a spend on these terms."""
        query = "SELECT coalesce(sum(windows), 0) FROM grants WHERE metric = ? AND day = ? AND terms = ?"
        return int(self._read(lambda connection: connection.execute(query, (metric, day, terms)).fetchone()[0]))

    def releases(
        self,
        *,
        metric: str | None = None,
        since: float | None = None,
        after: int = 0,
        limit: int = 100,
        last: bool = False,
        most_numbers: int | None = None,
    ) -> Found:
        """Releases in the order they were made; with ``last`` the newest ones. At least one, if there are any."""
        conditions, given = ["released IS NOT NULL", "id > ?"], [after]  # type: list[str], list[Any]
        if metric is not None:
            conditions, given = [*conditions, "metric = ?"], [*given, metric]
        if since is not None:
            conditions, given = [*conditions, "ends >= ?"], [*given, since]
        query = (
            "SELECT id, metric, began, ends, released, about, key_list, numbers FROM windows "  # noqa: S608 - constants
            f"WHERE {' AND '.join(conditions)} ORDER BY id {'DESC' if last else ''} LIMIT ?"
        )

        def work(connection: sqlite3.Connection) -> tuple[list[Any], bool]:
            rows: list[Any] = []
            size = 0
            for row in connection.execute(query, [*given, limit]):
                size += len(row[7]) // 8
                if rows and most_numbers is not None and size > most_numbers:
                    return rows, True
                rows.append(row)
            return rows, False

        rows, more = self._read(work)
        found = [self._stored(row) for row in rows]
        return Found(found[::-1] if last else found, more)

    def _stored(self, row: Any) -> Stored:
        number, metric, began, ends, released, text, key_list, blob = row
        about, keys = json.loads(text), self._keys(key_list)
        numbers = np.frombuffer(blob, dtype="<f8").reshape(3, len(keys), len(about["quantiles"]))
        return Stored(number, metric, began, ends, released, about, keys, numbers)

    def _keys(self, list_id: int) -> tuple[str, ...]:
        if list_id not in self._key_lists:
            if len(self._key_lists) > 64:
                self._key_lists.clear()
            query = "SELECT keys FROM key_lists WHERE id = ?"
            (text,) = self._read(lambda connection: connection.execute(query, (list_id,)).fetchone())
            self._key_lists[list_id] = tuple(json.loads(text))
        return self._key_lists[list_id]

    def forget(self, before: float) -> None:
        """Drop releases that ended before; that a window was spent stays recorded."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE windows SET numbers = NULL, released = NULL WHERE ends < ? AND released IS NOT NULL", (before,)
            )
            connection.execute(
                "DELETE FROM key_lists WHERE id NOT IN (SELECT key_list FROM windows WHERE numbers IS NOT NULL)"
            )
            self._key_lists.clear()
