"""The rows of a ledger, as they are written and read: every part of one is under its seal."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import dpfrugal as dpf
from dpfrugal.budget import ledger_rows as rows
from dpfrugal.budget.claims import Tally
from dpfrugal.budget.ledger_schema import SCHEMA
from dpfrugal.budget.promises import Dataset, Spend

WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOTAL = dpf.PureDP(epsilon=3.0)
PROMISE = Dataset(name="visits", total=TOTAL, max_items_per_person=2, adaptive=False, opened=WHEN)
SPEND = Spend(
    dataset="visits", guarantee=dpf.PureDP(epsilon=1.0), when=WHEN, by="test", rule="basic", max_items_per_person=2,
    generation=1, asked={"column": "ms"},
)  # fmt: skip


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    for statement in SCHEMA.values():
        made.execute(statement)
    yield made
    made.close()


def read(connection: sqlite3.Connection, name: str = "visits") -> tuple[Dataset, Tally]:
    found = rows.find_promise(connection, name)
    assert found is not None
    totals = rows.find_totals(connection, *found)
    assert totals is not None
    return totals


def with_spends(connection: sqlite3.Connection, number: int) -> None:
    rows.write_dataset(connection, PROMISE)
    for place in range(number):
        dataset, tally = read(connection)
        known = Dataset(**{**dataset.__dict__, "tally": tally})
        rows.add_spend(connection, known, SPEND, f"lineage {place}", "holder")


def test_ledger_rows__a_promise_is_read_as_it_was_written(connection: sqlite3.Connection) -> None:
    assert rows.find_promise(connection, "visits") is None
    rows.write_dataset(connection, PROMISE)
    found, tally = read(connection)
    assert (found.name, found.total, found.max_items_per_person, found.opened) == ("visits", TOTAL, 2, WHEN)
    assert (found.neighbours, found.adaptive, found.latest, tally) == ("replace", False, None, Tally())
    assert rows.names(connection) == ["visits"]


def test_ledger_rows__spends_are_counted_by_kind(connection: sqlite3.Connection) -> None:
    with_spends(connection, 3)
    found, tally = read(connection)
    assert (list(tally), found.latest) == ([(SPEND.claim, 3)], WHEN)
    assert rows.find_generation(connection, "lineage 2") == (1, "holder")
    assert rows.find_generation(connection, "another") is None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE datasets SET record = replace(record, '3.0', '9.0')",
        "UPDATE datasets SET spends = 1",
        "UPDATE datasets SET head = 'another'",
        "UPDATE totals SET spends = 1",
        "UPDATE totals SET kinds = '[]'",
        "UPDATE totals SET newest = 0",
        "UPDATE totals SET latest = 0",
        "DELETE FROM totals",
    ],
)
def test_ledger_rows__a_row_that_was_changed_by_hand_is_damaged(connection: sqlite3.Connection, change: str) -> None:
    with_spends(connection, 2)
    read(connection)
    assert connection.execute(change).rowcount == 1
    with pytest.raises(rows.Damaged):
        read(connection)


def test_ledger_rows__a_generation_or_a_kept_release_that_was_changed_is_damaged(
    connection: sqlite3.Connection,
) -> None:
    rows.write_generation(connection, "lineage", 1, "holder")
    rows.keep(connection, "visits", "the release")
    assert rows.kept(connection) == [("visits", "the release")]
    connection.execute("UPDATE generations SET generation = 2")
    connection.execute("UPDATE kept SET release = 'another'")
    with pytest.raises(rows.Damaged):
        rows.find_generation(connection, "lineage")
    with pytest.raises(rows.Damaged):
        rows.kept(connection)


def test_ledger_rows__names_with_totals_of_another_dataset_are_damaged(connection: sqlite3.Connection) -> None:
    rows.write_dataset(connection, PROMISE)
    connection.execute("UPDATE totals SET dataset = 'another'")
    with pytest.raises(rows.Damaged):
        rows.names(connection)


def test_ledger_rows__a_name_is_found_whichever_way_its_accents_are_stored(connection: sqlite3.Connection) -> None:
    apart, whole = "cafe\u0301", "caf\u00e9"
    rows.write_dataset(connection, Dataset(**{**PROMISE.__dict__, "name": apart}))
    assert rows.stored_name(connection, whole) == apart
    assert rows.stored_name(connection, "tea") == "tea"


def test_ledger_rows__a_spend_of_an_older_ledger_is_for_replaced_items(connection: sqlite3.Connection) -> None:
    record = {"guarantee": {"PureDP": {"epsilon": "0x1.0p+0"}}}
    assert rows.neighbours_of(record) == "replace"
    with pytest.raises(rows.Damaged):
        rows.neighbours_of({"neighbours": "others"})


@pytest.mark.parametrize("record", [{}, {"guarantee": 1}, {"guarantee": {"NoDP": {}}}])
def test_ledger_rows__a_spend_that_is_none_is_damaged(record: dict[str, object]) -> None:
    with pytest.raises(rows.Damaged):
        rows.claim_of_record(record)
