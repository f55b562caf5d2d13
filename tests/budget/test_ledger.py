"""The ledger: what is spent stays spent, whoever spends, whenever it crashes, and whatever lies on the disk."""

import json
import multiprocessing
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpfrugal as dpf
from dpfrugal.budget import promises
from dpfrugal.budget.claims import Claim
from dpfrugal.budget.composition import total_spent
from dpfrugal.budget.ledger_file import LedgerFile
from dpfrugal.budget.ledger_schema import seal_of
from dpfrugal.budget.spend_facts import printable, user
from dpfrugal.cli import app
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy import noise
from tests.support.command_line import refused, run
from tests.support.older_ledger import as_older

ONE = dpf.PureDP(epsilon=1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path: Path) -> dpf.Ledger:
    return dpf.Ledger(path, total=dpf.PureDP(epsilon=3.0))


def test_ledger__keeps_what_was_spent(path: Path, ledger: dpf.Ledger) -> None:
    ledger.spend("clicks", ONE, by="the March report")
    again = dpf.Ledger(path)
    assert again.left("clicks") == dpf.PureDP(epsilon=2.0)
    (spend,) = again.dataset("clicks").spends
    assert (spend.by, spend.guarantee, spend.rule, spend.generation) == ("the March report", ONE, "sum", 0)
    assert again.total_spent("clicks", delta=1e-6).epsilon == pytest.approx(1.0, abs=1e-4)


def test_ledger__spends_nothing_beyond_the_total_and_says_what_is_left(ledger: dpf.Ledger) -> None:
    ledger.spend("clicks", dpf.PureDP(epsilon=2.5))
    with pytest.raises(dpf.BudgetExceeded, match=r"ε=0\.5 is left; ε=1 was asked for") as refusal:
        ledger.spend("clicks", ONE)
    assert refusal.value.left == dpf.PureDP(epsilon=0.5)
    assert len(ledger.dataset("clicks").spends) == 1
    ledger.spend("clicks", dpf.PureDP(epsilon=0.5))
    assert ledger.left("clicks") is None
    assert ledger.dataset("clicks").share == 1.0
    ledger.spend("sensors", ONE)  # another dataset has its own total


@pytest.mark.parametrize("guarantee", [ONE, dpf.ZCDP(rho=0.1), dpf.ApproxDP(epsilon=1.0, delta=1e-7)])
@pytest.mark.parametrize("kind", [dpf.DPFrugal1U, dpf.PrivateQuantile])
def test_ledger__charges_an_estimator_once_for_all_its_releases(
    path: Path, kind: Any, guarantee: dpf.Guarantee
) -> None:
    ledger = dpf.Ledger(path, total=dpf.ApproxDP(epsilon=9.0, delta=1e-5))
    estimator = kind(0.5, guarantee, ledger=ledger, dataset="clicks")
    estimator.update_many(np.arange(100.0))
    assert ledger.datasets() == ()  # nothing until noise is taken
    for _ in range(3):
        estimator.update_many(np.arange(1000.0))
        estimator.release()
    (spend,) = ledger.dataset("clicks").spends
    assert (spend.guarantee, spend.by) == (guarantee, kind.__name__)
    assert spend.generation == 3 if kind is dpf.DPFrugal1U else spend.generation > 0
    assert (spend.rho is not None) == isinstance(guarantee, dpf.ApproxDP)


@pytest.mark.parametrize("kind", [dpf.DPFrugal1U, dpf.PrivateQuantile])
def test_ledger__has_the_spend_on_disk_before_noise_is_taken(
    path: Path, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise that is never taken, as in a crash, leaves the budget spent; the batch is as if it had not come."""
    ledger = dpf.Ledger(path, total=ONE)
    estimator = kind(0.5, ONE, ledger=ledger, dataset="clicks")
    seen = []

    def crash(*_: object) -> list[int]:
        seen.append(dpf.Ledger(path).dataset("clicks").spends[0].generation)
        raise OSError("no noise")

    def items_and_release() -> Any:
        estimator.update_many(np.arange(5000.0))
        return estimator.release()

    monkeypatch.setattr(noise, "measurement", crash)
    with pytest.raises(OSError, match="no noise"):
        items_and_release()
    monkeypatch.undo()
    assert seen == [1]
    assert ledger.left("clicks") is None
    assert items_and_release().items > 0  # the same estimator may go on: it is the one that has spent
    assert len(ledger.dataset("clicks").spends) == 1
    with pytest.raises(dpf.BudgetExceeded):
        kind(0.5, ONE, ledger=ledger, dataset="clicks")


def test_ledger__that_refuses_a_spend_changes_nothing_in_the_estimator(ledger: dpf.Ledger) -> None:
    first, second = (dpf.PrivateQuantile(0.5, dpf.PureDP(epsilon=2.0), ledger=ledger, dataset="c") for _ in range(2))
    second.update_many(np.arange(100.0))
    first.update_many(np.arange(5000.0))
    before = second._counts.tolist()
    with pytest.raises(dpf.BudgetExceeded):
        second.update_many(np.arange(5000.0))
    assert (second.items, second._counts.tolist()) == (100, before)


def test_ledger__says_whether_nothing_is_left_or_the_total_is_of_another_kind(ledger: dpf.Ledger) -> None:
    with pytest.raises(dpf.BudgetExceeded, match=r"a PureDP total cannot cover a ZCDP spend \(ρ=0\.1 was asked for\)"):
        ledger.spend("clicks", dpf.ZCDP(rho=0.1))
    ledger.spend("clicks", dpf.PureDP(epsilon=3.0))
    with pytest.raises(dpf.BudgetExceeded, match="of which nothing is left; ε=1 was asked for"):
        ledger.spend("clicks", ONE)
    ledger.open("visits", dpf.ApproxDP(epsilon=1.0, delta=1e-6))
    with pytest.raises(dpf.BudgetExceeded, match=r"of which ε=1 is left; ε=0\.5, δ=1e-05 was asked for"):
        dpf.Ledger(ledger.path).spend("visits", dpf.ApproxDP(epsilon=0.5, delta=1e-5))


def test_ledger__refuses_weaker_protection_than_promised(path: Path) -> None:
    ledger = dpf.Ledger(path, total=ONE, max_items_per_person=10)
    ledger.open("people", ONE, max_items_per_person=10)
    with pytest.raises(dpf.ParameterError, match="protects less"):
        dpf.PrivateQuantile(0.5, ONE, ledger=ledger, dataset="people")
    dpf.PrivateQuantile(0.5, ONE, ledger=ledger, dataset="people", max_items_per_person=20)


def test_ledger__changes_totals_only_when_told_to_and_never_below_what_is_spent(path: Path, ledger: dpf.Ledger) -> None:
    ledger.spend("clicks", dpf.PureDP(epsilon=2.0))
    others: list[Any] = [{"total": dpf.PureDP(epsilon=4.0)}, {"max_items_per_person": 2}, {"adaptive": True}]
    for other in others:
        with pytest.raises(dpf.LedgerError, match="change_total"):
            dpf.Ledger(path, **({"total": dpf.PureDP(epsilon=3.0)} | other)).spend("clicks", ONE)
    with pytest.raises(
        dpf.LedgerError, match="already has the total ε=3 per item replaced, not ε=4 per item replaced; use --change"
    ):
        ledger.open("clicks", dpf.PureDP(epsilon=4.0))
    with pytest.raises(dpf.LedgerError, match="smaller than what is spent"):
        ledger.change_total("clicks", dpf.PureDP(epsilon=1.9))
    with pytest.raises(dpf.LedgerError, match="There is no dataset 'visits' to change; leave out --change"):
        ledger.change_total("visits", ONE)
    assert ledger.change_total("clicks", dpf.PureDP(epsilon=2.0)).left is None
    assert dpf.Ledger(path).dataset("clicks").total == dpf.PureDP(epsilon=2.0)


def test_ledger__refuses_a_dataset_that_is_not_in_it_in_a_sentence(path: Path, ledger: dpf.Ledger) -> None:
    with pytest.raises(dpf.LedgerError, match="not in this ledger"):
        dpf.Ledger(path).spend("clicks", ONE)
    with pytest.raises(dpf.LedgerError, match="not in this ledger"):
        ledger.left("clicks")
    for name in ("", " a", "a\n", "x" * 201):
        with pytest.raises(dpf.ParameterError, match="dataset"):
            ledger.spend(name, ONE)
    with pytest.raises(dpf.ParameterTypeError):
        ledger.spend(3, ONE)  # type: ignore[arg-type]


def test_ledger__takes_its_parameters_together_or_not_at_all(ledger: dpf.Ledger) -> None:
    with pytest.raises(dpf.ParameterError, match="ledger="):
        dpf.DPFrugal1U(0.5, ONE, dataset="clicks")
    with pytest.raises(dpf.ParameterError, match="dataset="):
        dpf.PrivateQuantile(0.5, ONE, ledger=ledger)
    with pytest.raises(dpf.ParameterTypeError, match="Ledger"):
        dpf.DPFrugal1U(0.5, ONE, ledger="budget.db", dataset="clicks")  # type: ignore[arg-type]


def test_ledger__keeps_times_in_order_when_the_clock_goes_back(
    ledger: dpf.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([2e9, 1e9, 3e9, 5e8] * 10)
    monkeypatch.setattr("dpfrugal.budget.promises.clock", lambda: next(clock))
    for _ in range(8):
        ledger.spend("clicks", dpf.PureDP(epsilon=0.1))
    times = [spend.when for spend in ledger.dataset("clicks").spends]
    assert times == sorted(times)
    assert len(set(times)) < len(times)  # the clock did go back


def spend_often(path: str, times: int, results: Any) -> None:
    ledger, done = dpf.Ledger(path, total=dpf.PureDP(epsilon=3.0)), 0
    for _ in range(times):
        try:
            ledger.spend("clicks", dpf.PureDP(epsilon=0.1), by=f"process {os.getpid()}")
            done += 1
        except dpf.BudgetExceeded:
            pass
    results.put(done)


def test_ledger__lets_eight_processes_spend_at_once(path: Path) -> None:
    """The file is made, opened and spent from by all of them; thirty spends fit, and thirty are made."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    processes = [context.Process(target=spend_often, args=(str(path), 6, results)) for _ in range(8)]
    for process in processes:
        process.start()
    done = [results.get(timeout=240) for _ in processes]
    for process in processes:
        process.join(timeout=60)
        assert process.exitcode == 0
    assert sum(done) == 30
    ledger = dpf.Ledger(path)
    assert ledger.left("clicks") is None
    assert len(ledger.dataset("clicks").spends) == 30


def test_ledger__lets_threads_spend_at_once(ledger: dpf.Ledger) -> None:
    refusals = []

    def work() -> None:
        for _ in range(5):
            try:
                ledger.spend("clicks", dpf.PureDP(epsilon=0.2))
            except dpf.BudgetExceeded as refusal:
                refusals.append(refusal)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.dataset("clicks").spends) == 15
    assert len(refusals) == 5


def test_ledger_file__refuses_files_that_are_no_ledger(tmp_path: Path) -> None:
    total = dpf.PureDP(epsilon=1.0)
    with pytest.raises(dpf.LedgerError, match="directory"):
        dpf.Ledger(tmp_path, total=total)
    with pytest.raises(dpf.LedgerError, match="does not exist"):
        dpf.Ledger(tmp_path / "none.db")
    with pytest.raises(dpf.LedgerError, match="not a directory"):
        dpf.Ledger(tmp_path / "none" / "b.db", total=total)
    text = tmp_path / "notes.txt"
    text.write_text("these are notes, and no ledger\n" * 100)
    with pytest.raises(dpf.LedgerError, match="not an SQLite file"):
        dpf.Ledger(text, total=total)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    before = other.read_bytes()
    with pytest.raises(dpf.LedgerError, match="something else"):
        dpf.Ledger(other, total=total)
    assert other.read_bytes() == before
    with pytest.raises(dpf.LedgerError, match="not a ledger"):
        dpf.Ledger(other)
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA application_id = 1")
    with pytest.raises(dpf.LedgerError, match="something else"):
        dpf.Ledger(other, total=total)


def test_ledger_file__refuses_another_version(path: Path, ledger: dpf.Ledger) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(dpf.LedgerError, match="version 1"):
        dpf.Ledger(path)
    with pytest.raises(dpf.LedgerError, match="version 1"):
        ledger.spend("clicks", ONE)


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE spends SET record = replace(record, '0.25', '0.01') WHERE id = 1",
        "DELETE FROM spends WHERE id = 2",
        "DELETE FROM spends WHERE id = 1",
        "UPDATE datasets SET record = replace(record, '3.0', '9.0')",
        "UPDATE datasets SET spends = 1",
        "UPDATE generations SET generation = 7",
        "DELETE FROM generations",
        "DELETE FROM datasets",
        "INSERT INTO spends SELECT 9, dataset, 'x', record, seal FROM spends WHERE id = 1",
        "UPDATE ledger SET name = 'x'",
        "DROP TABLE spends",
    ],
)
def test_ledger_file__refuses_rows_that_were_not_written_by_a_ledger(
    path: Path, ledger: dpf.Ledger, tamper: str
) -> None:
    for _ in range(2):
        ledger.spend("clicks", dpf.PureDP(epsilon=0.25))
    with sqlite3.connect(path) as connection:
        connection.execute(tamper)
    connection.close()
    with pytest.raises(dpf.LedgerError, match="damaged"):
        dpf.Ledger(path)


def test_ledger_file__answers_flipped_bytes_with_an_error_or_the_same_contents(
    path: Path, ledger: dpf.Ledger, tmp_path: Path
) -> None:
    """Every 29th byte here; the long run flips all of them."""
    ledger.spend("clicks", dpf.PureDP(epsilon=0.25), by="the March report")
    truth = dpf.Ledger(path).datasets()
    whole = path.read_bytes()
    assert not Path(f"{path}-wal").exists()
    refusals = 0
    copy = tmp_path / "copy.db"
    for place in range(0, len(whole), 29):
        copy.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        for leftover in ("-wal", "-shm"):
            Path(f"{copy}{leftover}").unlink(missing_ok=True)
        try:
            assert dpf.Ledger(copy).datasets() == truth
        except dpf.LedgerError:
            refusals += 1
    assert refusals > 10
    for length in (0, 1, 50, 100, len(whole) // 2, len(whole) - 1):
        copy.write_bytes(whole[:length])
        with pytest.raises(dpf.LedgerError):
            dpf.Ledger(copy)


def test_ledger_file__never_has_its_only_copy_in_the_log(path: Path, ledger: dpf.Ledger) -> None:
    """A process that dies leaves the write-ahead log behind; damaged or lost, it takes nothing with it."""
    ledger.spend("clicks", ONE)
    reader = sqlite3.connect(path)  # keeps the log from being removed, as a process that was killed would
    reader.execute("SELECT count(*) FROM spends").fetchone()
    ledger.spend("clicks", ONE)
    ledger.spend("clicks", dpf.PureDP(epsilon=0.5))
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    reader.close()
    assert dpf.Ledger(copy).left("clicks") == dpf.PureDP(epsilon=0.5)


def test_ledger_file__that_cannot_be_written_is_reported_in_a_sentence(
    path: Path, ledger: dpf.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened for reading only, as on a disk that is mounted so: nothing is spent, and no noise is taken."""
    ledger.spend("clicks", ONE)
    estimator = dpf.DPFrugal1U(0.5, ONE, ledger=ledger, dataset="clicks")
    real = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda address, **rest: real(address.replace("mode=rw", "mode=ro"), **rest))
        patch.setattr(noise, "add_noise", lambda *_: pytest.fail("noise was taken"))
        for spending in (estimator.release, lambda: ledger.spend("clicks", ONE)):
            with pytest.raises(dpf.LedgerError, match="cannot be used: it cannot be written"):
                spending()
    assert ledger.left("clicks") == dpf.PureDP(epsilon=2.0)
    estimator.release()


def test_ledger_file__on_a_full_disk_is_reported_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dpf.Ledger(path, total=dpf.PureDP(epsilon=900.0))
    ledger.spend("clicks", ONE)
    real, made = LedgerFile._connection, [ledger.dataset("clicks").spends[0]]

    @contextmanager
    def small(self: LedgerFile) -> Iterator[sqlite3.Connection]:
        with real(self) as connection:
            connection.execute("PRAGMA max_page_count = 12")
            yield connection

    def spend_on() -> None:
        while True:
            made.append(ledger.spend("clicks", ONE, by="x" * 200))

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "_connection", small)
        with pytest.raises(dpf.LedgerError, match="the disk is full"):
            spend_on()
    assert len(dpf.Ledger(path).dataset("clicks").spends) == len(made)
    ledger.spend("clicks", ONE)


def test_ledger_file__that_vanishes_is_not_made_anew(path: Path, ledger: dpf.Ledger) -> None:
    ledger.spend("clicks", ONE)
    path.unlink()
    with pytest.raises(dpf.LedgerError):
        ledger.spend("clicks", ONE)
    assert not path.exists()


def test_ledger__moves_generations_for_one_holder_only(ledger: dpf.Ledger) -> None:
    spend = promises.spend_of("clicks", ONE, "test", None, 1)
    assert ledger.advance(spend, "lineage", "a") == 1
    assert ledger.advance(spend, "lineage", "a") == 2  # interrupted before it could note 1: it still holds it
    with pytest.raises(dpf.ReplayError, match="stale"):
        ledger.advance(spend, "lineage", "b")
    from dataclasses import replace

    assert ledger.advance(replace(spend, generation=2), "lineage", "b") == 3
    with pytest.raises(dpf.ReplayError, match="stale"):
        ledger.advance(replace(spend, generation=2), "lineage", "a")
    with pytest.raises(dpf.LedgerError, match="older"):
        ledger.advance(replace(spend, generation=4), "lineage", "c")
    assert ledger.generation("lineage") == 3
    assert len(ledger.dataset("clicks").spends) == 1


BOTH: list[Neighbours] = ["replace", "add-remove"]


@pytest.mark.parametrize("promised", BOTH)
def test_ledger__never_adds_up_spends_under_different_neighbours(path: Path, promised: Neighbours) -> None:
    ledger = dpf.Ledger(path, total=dpf.PureDP(epsilon=3.0), neighbours=promised)
    (other,) = (each for each in BOTH if each != promised)
    ledger.spend("clicks", ONE, neighbours=promised)
    for spent in ("clicks", "a dataset that is not open yet"):
        with pytest.raises(dpf.ParameterError, match=f'does not add up .* open another dataset with .*"{other}"'):
            ledger.spend(spent, ONE, neighbours=other)
    found = dpf.Ledger(path).dataset("clicks")
    assert (found.neighbours, [spend.neighbours for spend in found.spends]) == (promised, [promised])
    assert len(ledger.datasets()) == 1
    with pytest.raises(dpf.LedgerError, match="its neighbours stay: open another dataset"):
        ledger.open("clicks", dpf.PureDP(epsilon=3.0), neighbours=other)
    ledger.open("clicks, the other way", dpf.PureDP(epsilon=2.0), neighbours=other)
    dpf.Ledger(path).spend("clicks, the other way", ONE, neighbours=other)
    changed = ledger.change_total("clicks", dpf.PureDP(epsilon=4.0))
    assert (changed.neighbours, changed.left) == (promised, dpf.PureDP(epsilon=3.0))
    with pytest.raises(dpf.ParameterError, match="neighbours must be"):
        ledger.spend("clicks", ONE, neighbours="remove")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [dpf.DPFrugal1U, dpf.PrivateQuantile])
def test_ledger__refuses_an_estimator_of_replaced_items_under_another_promise(path: Path, kind: Any) -> None:
    ledger = dpf.Ledger(path, total=ONE, neighbours="add-remove")
    with pytest.raises(dpf.ParameterError, match="promises ε=1 per item added or removed; a spend per item replaced"):
        kind(0.5, ONE, ledger=ledger, dataset="clicks")


def test_ledger__that_names_no_neighbours_means_replaced_items(path: Path, ledger: dpf.Ledger) -> None:
    """The rows of a ledger of replaced items are written as they were before neighbours had a name."""
    ledger.spend("clicks", ONE)
    with closing(sqlite3.connect(path)) as connection, connection:
        (promised,) = connection.execute("SELECT record FROM datasets").fetchone()
        (spent,) = connection.execute("SELECT record FROM spends").fetchone()
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
    assert set(json.loads(promised)) == {"total", "max_items_per_person", "adaptive", "opened"}
    assert "neighbours" not in json.loads(spent)
    # A spend as older versions wrote it, which has no ``asked`` either.
    as_older(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        record = json.dumps({name: value for name, value in json.loads(spent).items() if name != "asked"})
        (lineage,) = connection.execute("SELECT lineage FROM spends").fetchone()
        link = seal_of(seal_of("chain", "clicks"), "clicks", lineage, record)
        connection.execute("UPDATE spends SET record = ?, seal = ?", (record, link))
        seal = seal_of("dataset", "clicks", promised, 1, link)
        connection.execute("UPDATE datasets SET head = ?, seal = ?", (link, seal))
    before = path.read_bytes()
    (standing,) = dpf.Ledger(path).datasets()
    assert (standing.neighbours, standing.spends[0].neighbours, standing.spends[0].asked) == ("replace", "replace", {})
    assert "by hand" in told("history", path)
    assert path.read_bytes() == before


def test_ledger__of_added_items_is_not_taken_for_one_of_replaced_items(path: Path, ledger: dpf.Ledger) -> None:
    """Versions that know no neighbours refuse version 4, too; a spend of the other relation is damage."""
    ledger.open("clicks", ONE, neighbours="add-remove")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        (record,) = connection.execute("SELECT record FROM datasets").fetchone()
        changed = json.dumps(json.loads(record) | {"neighbours": "remove"})
        head = seal_of("chain", "clicks")
        row = ("clicks", changed, 0, head, seal_of("dataset", "clicks", changed, 0, head))
        connection.execute("REPLACE INTO datasets VALUES (?, ?, ?, ?, ?)", row)
    with pytest.raises(dpf.LedgerError, match="damaged"):
        dpf.Ledger(path)


def test_ledger__composes_choices_by_their_guarantee_alone(path: Path) -> None:
    """A table's answers are chosen: no Gaussian noise is there to have a ρ, and none is on record."""
    rows, ledger = np.arange(1000.0), dpf.Ledger(path, total=dpf.ApproxDP(epsilon=9.0, delta=1e-5))
    guarantees = [ONE, dpf.ZCDP(rho=0.1), dpf.ApproxDP(epsilon=0.5, delta=1e-7)]
    for guarantee in guarantees:
        dpf.private_quantiles(rows, 0.5, guarantee, ledger=ledger, dataset="table")
    spends = dpf.Ledger(path).dataset("table").spends
    assert [spend.claim for spend in spends] == [Claim(guarantee) for guarantee in guarantees]
    assert [spend.claim.zcdp_rho for spend in spends] == [ONE.implied_rho, 0.1, None]
    alone = ledger.dataset("table").spends[2:]
    assert total_spent([spend.claim for spend in alone], 1e-6).epsilon == pytest.approx(0.5, rel=1e-3)
    by_walk = dpf.DPFrugal1U(0.5, guarantees[2], ledger=ledger, dataset="table")._account._spend
    assert by_walk is not None
    assert by_walk.rho is not None  # which noise has
    ledger.open("concentrated", dpf.ZCDP(rho=1.0))
    again = dpf.Ledger(path)
    for guarantee in guarantees[:2]:
        dpf.private_quantiles(rows, 0.5, guarantee, ledger=again, dataset="concentrated")
    assert ledger.dataset("concentrated").used == pytest.approx(0.1 + np.tanh(0.5), rel=1e-9)
    with pytest.raises(dpf.BudgetExceeded, match="cannot cover a ApproxDP spend"):
        dpf.private_quantiles(rows, 0.5, guarantees[2], ledger=again, dataset="concentrated")
    again.open("pure", dpf.PureDP(epsilon=1.0))
    dpf.private_quantiles(rows, [0.25, 0.5], ONE, ledger=again, dataset="pure")
    assert again.left("pure") is None


def test_ledger__charges_a_table_under_its_own_neighbours(path: Path) -> None:
    ledger = dpf.Ledger(path, total=ONE, neighbours="add-remove")
    dpf.private_quantiles([1.0, 2.0], 0.5, ONE, ledger=ledger, dataset="table", neighbours="add-remove")
    (spend,) = ledger.dataset("table").spends
    assert (spend.neighbours, spend.generation) == ("add-remove", 1)
    with pytest.raises(dpf.ParameterError, match="added or removed"):
        dpf.private_quantiles([1.0, 2.0], 0.5, ONE, ledger=ledger, dataset="table")


def told(*arguments: object) -> str:
    """What ``dpfrugal ledger`` prints, in this process."""
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["ledger", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_ledger_command__keeps_the_books(tmp_path: Path) -> None:
    path, numbers = tmp_path / "budget.db", "\n".join(map(str, range(2000)))
    assert "does not exist" in refused("ledger", "show", path)
    told("add", path, "clicks", "--epsilon", 2)
    again = ("quantile", "-", "-q", 0.5, "--epsilon", 1.5, "--ledger", path, "--dataset")
    done = run(*again, "clicks", text=numbers)
    assert done.returncode == 0, done.stderr
    assert "clicks: ε=0.5 is left of ε=2" in done.stderr
    assert "ε=0.5 is left" in refused(*again, "clicks", text=numbers)
    assert "not in this ledger" in refused(*again, "other", text=numbers)
    assert "belong together" in refused(*again[:-1], text=numbers)
    shown = told("show", path)
    assert "████████░░  75% │ ε=1.5 │ ε=0.5" in shown
    assert max(map(len, shown.splitlines())) <= 80
    (standing,) = json.loads(told("show", path, "--json"))["datasets"]
    assert (standing["share"], standing["left"]) == (0.75, {"PureDP": {"epsilon": 0.5}})
    (entry,) = json.loads(told("history", path, "clicks", "--json"))["spends"]
    assert entry["by"] == "private_quantiles"
    assert entry["generation"] > 0
    assert "private_quantiles" in told("history", path)
    for bad, said in [
        (["--epsilon", 1, "--change"], "smaller than what is spent"),
        (["--epsilon", 1], "already has the total ε=2 per item replaced, not ε=1 per item replaced; use --change"),
        (["--epsilon", 5, "--change", "--adaptive"], "--change changes a total only"),
        (["--epsilon", 1, "--spent-by", "me", "--change"], "--change and --adaptive are for totals"),
        ([], "A guarantee is needed"),
    ]:
        with pytest.raises(dpf.DPFrugalError, match=said):
            told("add", path, "clicks", *bad)
    told("add", path, "clicks", "--epsilon", 5, "--change")
    done_by_hand = told("add", path, "clicks", "--epsilon", 3, "--spent-by", "a colleague", "--json")
    assert json.loads(done_by_hand)["left"] == {"PureDP": {"epsilon": 0.5}}


def test_ledger_command__shows_neighbours_and_what_was_asked(path: Path) -> None:
    told("add", path, "visits", "--epsilon", 3, "--neighbours", "add-remove")
    asked = {"column": "ms", "quantiles": (0.5, 0.9), "source": "requests.parquet", "who": "alice"}
    dpf.Ledger(path).spend("visits", ONE, by="private_quantiles", neighbours="add-remove", asked=asked)
    told("add", path, "visits", "--epsilon", 1, "--neighbours", "add-remove", "--spent-by", "a colleague")
    (standing,) = json.loads(told("show", path, "--json"))["datasets"]
    assert (standing["neighbours"], standing["left"]) == ("add-remove", {"PureDP": {"epsilon": 1.0}})
    first, second = json.loads(told("history", path, "--json"))["spends"]
    assert first["neighbours"] == "add-remove"
    assert first["asked"] == {
        **asked,
        "quantiles": [0.5, 0.9],
        "neighbours": "add-remove",
        "unit": "item added or removed",
    }
    assert second["asked"]["who"] == printable(user())
    shown = " ".join(told("history", path).replace("│", " ").split())
    for part in ("private_quantiles", "q=0.5, 0.9", "requests.parquet", "alice", "a colleague"):
        assert part in shown
    assert "removed" in told("show", path)
    for bad, said in [
        (["--epsilon", 3], "its neighbours stay"),
        (["--epsilon", 3, "--spent-by", "me"], "does not add up"),
        (["--epsilon", 4, "--change", "--neighbours", "replace"], "leave out --adaptive"),
    ]:
        with pytest.raises(dpf.DPFrugalError, match=said):
            told("add", path, "visits", *bad)


@pytest.mark.parametrize("name", ["[/x]", "clicks [eu]", "[red]a", "\\[b]"])
def test_ledger_command__prints_names_as_they_are(tmp_path: Path, name: str) -> None:
    """A name is text from outside: no markup, and no character that a terminal obeys."""
    folder = tmp_path / "[bold]"
    folder.mkdir()
    path = folder / "[" / ".." / f"{name.replace('/', '')}.db"
    (folder / "[").mkdir()
    told("add", path, name, "--epsilon", 3)
    asked = {"column": f"{name}\x1b[2J", "source": f"{name}\udcff"}
    dpf.Ledger(path).spend(name, ONE, by=f"by {name}", asked=asked)
    assert name in told("show", path)
    history = told("history", path)
    assert name in history
    assert "\x1b" not in history
    (entry,) = json.loads(told("history", path, "--json"))["spends"]
    assert (entry["asked"]["column"], entry["asked"]["source"]) == (f"{name}\\x1b[2J", f"{name}\\udcff")
