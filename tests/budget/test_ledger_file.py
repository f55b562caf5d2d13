"""The file of a ledger: a write is whole or not there, readers see one moment, and no other file is taken for one."""

import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpfrugal.budget.ledger_file import LedgerFile
from dpfrugal.budget.ledger_schema import SCHEMA, seal_of
from dpfrugal.errors import LedgerError


@pytest.fixture
def file(tmp_path: Path) -> LedgerFile:
    return LedgerFile(tmp_path / "l.ledger", create=True)


def insert(connection: sqlite3.Connection, lineage: str, generation: int = 1) -> None:
    connection.execute("INSERT OR REPLACE INTO generations VALUES (?, ?, 'h', 's')", (lineage, generation))


def generation_of(connection: sqlite3.Connection, lineage: str) -> int | None:
    found = connection.execute("SELECT generation FROM generations WHERE lineage = ?", (lineage,)).fetchone()
    return None if found is None else int(found[0])


def test_seal_of__differs_wherever_the_parts_do() -> None:
    different = [("ab", "c"), ("a", "bc"), ("abc",), ("1",), (1,), (1.0,), ("é",), (), (None,), ("None",)]
    assert len({seal_of(*parts) for parts in different}) == len(different)
    assert seal_of("a", 1) == seal_of("a", 1)
    assert len(seal_of()) == 64


def test_ledger_file__has_a_random_name_that_stays(file: LedgerFile, tmp_path: Path) -> None:
    assert LedgerFile(file.path, create=False).name == LedgerFile(file.path, create=True).name == file.name
    assert LedgerFile(tmp_path / "other.ledger", create=True).name != file.name
    assert len(file.name) == 32


def test_ledger_file__is_made_once_by_threads_that_open_it_at_the_same_time(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def name(_: int) -> str:
        start.wait()
        return LedgerFile(tmp_path / "l.ledger", create=True).name

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(name, range(8)))) == 1


def test_write__is_seen_by_others_and_its_result_returned(file: LedgerFile) -> None:
    file.write(lambda connection: insert(connection, "a", 5))
    assert file.write(lambda connection: generation_of(connection, "a")) == 5
    assert LedgerFile(file.path, create=False).read(lambda connection: generation_of(connection, "a")) == 5


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_write__that_raises_leaves_nothing_behind(file: LedgerFile, error: type[BaseException]) -> None:
    def half(connection: sqlite3.Connection) -> None:
        insert(connection, "a")
        raise error

    with pytest.raises(error):
        file.write(half)
    assert file.read(lambda connection: generation_of(connection, "a")) is None
    file.write(lambda connection: insert(connection, "b"))  # and no lock


def test_write__takes_turns_with_other_writers(file: LedgerFile) -> None:
    """Each reads a number and writes the next: were two of them to read the same one, the sum would be smaller."""

    def increase(connection: sqlite3.Connection) -> None:
        insert(connection, "n", (generation_of(connection, "n") or 0) + 1)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(file.write, increase) for _ in range(40)]:
            done.result()
    assert file.read(lambda connection: generation_of(connection, "n")) == 40


def test_read__sees_one_moment_while_others_write(file: LedgerFile) -> None:
    def twice(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
        before = generation_of(connection, "a")
        file.write(lambda other: insert(other, "a", 2))
        return before, generation_of(connection, "a")

    file.write(lambda connection: insert(connection, "a", 1))
    assert file.read(twice) == (1, 1)
    assert file.read(lambda connection: generation_of(connection, "a")) == 2


def test_ledger_file__is_not_made_where_it_is_only_to_be_opened(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist"):
        LedgerFile(tmp_path / "none.ledger", create=False)
    with pytest.raises(LedgerError, match="is a directory"):
        LedgerFile(tmp_path, create=True)
    with pytest.raises(LedgerError, match="is not a directory"):
        LedgerFile(tmp_path / "none" / "l.ledger", create=True)
    assert list(tmp_path.iterdir()) == []


def test_ledger_file__leaves_files_of_something_else_as_they_are(tmp_path: Path) -> None:
    foreign, text = tmp_path / "foreign.sqlite", tmp_path / "text"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    text.write_text("no database " * 100)
    for path in (foreign, text):
        before = path.read_bytes()
        with pytest.raises(LedgerError, match=r"something else|not an SQLite file"):
            LedgerFile(path, create=True)
        assert path.read_bytes() == before


def test_write__does_not_make_a_deleted_file_again(file: LedgerFile) -> None:
    for path in file.path.parent.iterdir():
        path.unlink()
    with pytest.raises(LedgerError, match="cannot be opened"):
        file.write(lambda connection: insert(connection, "a"))
    assert not file.path.exists()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE ledger SET name = 'another'",
        "DELETE FROM ledger",
        "INSERT INTO ledger SELECT * FROM ledger",
        "ALTER TABLE spends ADD COLUMN more TEXT",
        "DROP TABLE generations",
        "CREATE TABLE another (x)",
    ],
)
def test_ledger_file__refuses_every_call_after_its_name_or_schema_was_changed(file: LedgerFile, damage: str) -> None:
    connection = sqlite3.connect(file.path)
    with connection:
        connection.execute(damage)
    connection.close()
    for use in (
        lambda: file.read(lambda _: 1),
        lambda: file.write(lambda _: 1),
        lambda: LedgerFile(file.path, create=True),
    ):
        with pytest.raises(LedgerError, match="is damaged: what it holds is not what was written"):
            use()


def test_ledger_file__holds_no_connection_between_calls(file: LedgerFile) -> None:
    file.write(lambda connection: insert(connection, "a"))
    opened = {os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")}
    assert str(file.path.resolve()) not in opened
    assert set(SCHEMA) == {"ledger", "datasets", "spends", "generations", "totals", "writes", "kept"}
