"""Ledgers as earlier versions wrote them, without running totals, and long histories without waiting for a disk."""

import sqlite3
from contextlib import closing
from pathlib import Path

import dpfrugal as dpf
from dpfrugal.budget import ledger_rows
from dpfrugal.budget.promises import spend_of
from dpfrugal.privacy.guarantees import Guarantee


def as_older(path: Path, version: int = 2) -> None:
    """Make a ledger's file what an earlier version would have written."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE totals")
        connection.execute("DROP TABLE writes")
        connection.execute("DROP TABLE kept")
        connection.execute(f"PRAGMA user_version = {version}")


def spend_many(ledger: dpf.Ledger, dataset: str, guarantee: Guarantee, times: int) -> None:
    """So many spends in one transaction, each as ``Ledger.spend`` writes it; the totals are written at the end."""

    def work(connection: sqlite3.Connection) -> None:
        ledger._add(connection, spend_of(dataset, guarantee, "by hand", None, 1), f"{dataset} first", "")
        found = ledger._known(connection, dataset)
        spend = ledger._fitting(found, spend_of(dataset, guarantee, "by hand", None, 1))
        with_totals, tally = ledger_rows.write_totals, found.tally
        try:
            ledger_rows.write_totals = lambda *_: None
            for number in range(1, times):
                ledger_rows.add_spend(connection, found, spend, f"{dataset} {number}", "")
        finally:
            ledger_rows.write_totals = with_totals
        promise = ledger_rows.find_promise(connection, dataset)
        assert promise is not None
        ledger_rows.write_totals(connection, dataset, promise[0].head, tally.plus(spend.claim, times - 1), spend.when)

    ledger._write(work)
