"""Seals, and the names of the last two writes."""

import sqlite3

from dpfrugal.budget.ledger_schema import NEWER_TABLES, SCHEMA, last_spend, last_writes, name_write, seal_of


def ledger(*tables: str) -> sqlite3.Connection:
    made = sqlite3.connect(":memory:")
    for name in tables or SCHEMA:
        made.execute(SCHEMA[name])
    return made


def test_seal__differs_wherever_a_part_does() -> None:
    parts = [("a", "b"), ("ab",), ("a", "b", ""), ("a", "b", 0), ("a", "b", "0"), ("a", None), ("a",), ("á", "b")]
    assert len({seal_of(*each) for each in parts}) == len(parts)
    assert seal_of("a", "b") == seal_of("a", "b")


def test_last_writes__are_the_newest_two_names() -> None:
    connection = ledger()
    assert last_writes(connection) == ()
    name_write(connection, "")
    (first, nothing) = last_writes(connection)
    name_write(connection, first)
    second, before = last_writes(connection)
    assert (nothing, before) == ("", first)
    assert len({first, second}) == 2


def test_last_writes__are_unknown_in_an_older_file_and_in_one_that_was_changed() -> None:
    assert last_writes(ledger(*(set(SCHEMA) - set(NEWER_TABLES)))) == ()
    connection = ledger()
    name_write(connection, "")
    connection.execute("UPDATE writes SET last = 'another'")
    assert last_writes(connection) == ()


def test_last_spend__is_the_highest_number() -> None:
    connection = ledger()
    assert last_spend(connection) == 0
    for lineage in ("a", "b"):
        connection.execute("INSERT INTO spends (dataset, lineage, record, seal) VALUES ('d', ?, '{}', '')", (lineage,))
    assert last_spend(connection) == 2
