"""Running totals: a spend costs the same after ten and after thousands, and older files get totals safely."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dpfrugal as dpf
from dpfrugal.budget import ledger_history
from dpfrugal.budget.claims import Claim, Tally
from dpfrugal.budget.composition import fits, left, total_spent
from dpfrugal.budget.ledger_file import LedgerFile
from dpfrugal.budget.ledger_schema import seal_of
from dpfrugal.cli import app
from tests.support.older_ledger import as_older, spend_many

SMALL = dpf.PureDP(epsilon=0.001)
TOTALS = [dpf.PureDP(epsilon=1e4), dpf.ApproxDP(epsilon=1e3, delta=1e-6)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def steps_of(work: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many instructions SQLite's machine executes: what is read, whatever the clock says."""
    counted = 0
    connected = LedgerFile._connected

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    @contextmanager
    def counting(self: LedgerFile, mode: str) -> Any:
        with connected(self, mode) as connection:
            connection.set_progress_handler(count, 1)
            yield connection

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "_connected", counting)
        work()
    return counted


@pytest.mark.parametrize("total", TOTALS)
def test_ledger__reads_as_much_for_a_spend_after_thousands_as_after_ten(
    tmp_path: Path, total: dpf.Guarantee, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for times in (10, 5_000):
        ledger = dpf.Ledger(tmp_path / f"{times}.db", total=total)
        spend_many(ledger, "clicks", SMALL, times)
        estimator = dpf.DPFrugal1U(0.5, dpf.PureDP(epsilon=0.1), ledger=ledger, dataset="clicks")
        estimator.update(1.0)
        uses = [
            partial(ledger.spend, "clicks", SMALL),
            partial(ledger.left, "clicks"),
            partial(ledger.total_spent, "clicks", 1e-6),
            estimator.release,
        ]
        costs.append([steps_of(use, monkeypatch) for use in uses])
        assert ledger.dataset("clicks").tally.size == times + 2
    few, many = costs
    assert all(after < 1.5 * before for before, after in zip(few, many, strict=True)), costs
    opening = steps_of(lambda: dpf.Ledger(tmp_path / "5000.db"), monkeypatch)
    assert opening < 30 * ledger_history.NEWEST


def test_tally__composes_as_the_spends_one_by_one() -> None:
    """Sums exactly; the losses of a thousand equal spends to a part in a thousand."""
    kinds = [
        Claim(dpf.PureDP(epsilon=0.1)),
        Claim(dpf.ZCDP(rho=0.003)),
        Claim(dpf.ApproxDP(epsilon=0.05, delta=1e-9), 0.0004),
        Claim(dpf.ApproxDP(epsilon=0.02, delta=1e-9)),
    ]
    claims = [kinds[place] for place in np.random.default_rng(1).integers(0, 4, size=40)]
    for total in (*TOTALS, dpf.ZCDP(rho=3.0)):
        assert fits(total, claims) == fits(total, Tally.of(claims))
        assert left(total, claims, dpf.PureDP(epsilon=1.0)) == left(total, Tally.of(claims), dpf.PureDP(epsilon=1.0))
    assert total_spent(claims, 1e-6) == total_spent(Tally.of(claims), 1e-6)
    ten = Tally.of([kinds[0]] * 10)
    assert fits(dpf.PureDP(epsilon=1.0), ten) == "sum"
    assert fits(dpf.PureDP(epsilon=1.0), ten.plus(Claim(dpf.PureDP(epsilon=1e-9)))) is None
    thousand = Tally(((Claim(dpf.ZCDP(rho=1e-4)), 1000),))
    assert total_spent(thousand, 1e-6).epsilon == pytest.approx(dpf.ZCDP(rho=0.1).to_approx(1e-6).epsilon, rel=1e-8)


@pytest.mark.parametrize("times", [1_000, 1_000_000])
def test_tally__of_very_many_spends_is_bounded_by_their_sums_and_grows_with_them(times: int) -> None:
    """A million spends at ε = 0.001 are ε = 4.9 at δ = 1e-6, between their deviation and the bound by zCDP."""
    made = Tally(((Claim(SMALL), times),))
    found = total_spent(made, 1e-6)
    by_rho = dpf.ZCDP(rho=times * SMALL.implied_rho).to_approx(1e-6).epsilon
    assert found.rule == "pld"
    assert 0.8 * by_rho < found.epsilon < by_rho
    assert total_spent(made.plus(Claim(SMALL)), 1e-6).epsilon >= found.epsilon * (1 - 1e-6)


@pytest.mark.parametrize(("version", "neighbours"), [(2, "replace"), (3, "add-remove")])
def test_ledger__of_an_older_version_is_read_as_it_is_and_gets_totals_with_its_first_write(
    path: Path, version: int, neighbours: Any
) -> None:
    ledger = dpf.Ledger(path, total=TOTALS[0], neighbours=neighbours)
    for epsilon in (1.0, 0.5, 1.0):
        ledger.spend("clicks", dpf.PureDP(epsilon=epsilon), neighbours=neighbours)
    ledger.open("empty", TOTALS[1])
    truth = ledger.datasets()
    as_older(path, version)
    before = path.read_bytes()
    older = dpf.Ledger(path)
    assert older.datasets() == truth
    assert older.left("clicks") == dpf.PureDP(epsilon=9997.5)
    assert older.verify().spends == 3
    assert path.read_bytes() == before
    older.spend("clicks", dpf.PureDP(epsilon=2.5), neighbours=neighbours)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        assert connection.execute("SELECT dataset, spends FROM totals ORDER BY dataset").fetchall() == [
            ("clicks", 4),
            ("empty", 0),
        ]
    newer = dpf.Ledger(path)
    assert newer.left("clicks") == dpf.PureDP(epsilon=9995.0)
    assert newer.verify().spends == 4
    assert [spend.guarantee.size for spend in newer.dataset("clicks").spends] == [1.0, 0.5, 1.0, 2.5]


def test_ledger__of_an_older_version_that_is_damaged_is_not_given_totals(path: Path) -> None:
    ledger = dpf.Ledger(path, total=TOTALS[0])
    spend_many(ledger, "clicks", SMALL, ledger_history.FEW + 10)
    as_older(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE spends SET record = replace(record, '0.001', '0.0001') WHERE id = 7")
    before = path.read_bytes()
    with pytest.raises(dpf.LedgerError, match="damaged"):
        dpf.Ledger(path).spend("clicks", SMALL)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert len(before) == path.stat().st_size


KILLED = """
import os, sqlite3, sys
import dpfrugal as dpf
from dpfrugal.budget import ledger_rows
at, done = int(sys.argv[2]), 0
ledger = dpf.Ledger(sys.argv[1])
def trace(statement):
    global done
    done += 1
    if done == at: os._exit(9)
real = sqlite3.connect
def connect(*given, **named):
    connection = real(*given, **named)
    connection.set_trace_callback(trace)
    return connection
sqlite3.connect = connect
ledger.spend("clicks", dpf.PureDP(epsilon=0.001))
os._exit(7)
"""


def test_ledger__survives_a_kill_at_every_statement_of_getting_its_totals(path: Path, tmp_path: Path) -> None:
    ledger = dpf.Ledger(path, total=TOTALS[0])
    spend_many(ledger, "clicks", SMALL, 20)
    as_older(path)
    copy, versions = tmp_path / "copy.db", []
    for at in range(4, 70, 7):
        for leftover in tmp_path.glob("copy.db*"):
            leftover.unlink()
        copy.write_bytes(path.read_bytes())
        done = subprocess.run([sys.executable, "-c", KILLED, str(copy), str(at)], check=False)
        found = dpf.Ledger(copy)
        assert found.verify().spends in (20, 21)
        found.spend("clicks", SMALL)
        with closing(sqlite3.connect(copy)) as connection:
            versions.append(
                (done.returncode, found.verify().spends, *connection.execute("PRAGMA user_version").fetchone())
            )
        if done.returncode == 7:
            break
    assert {status for status, *_ in versions} == {7, 9}
    assert (9, 21, 4) in versions  # killed before the commit: nothing was there, and the next write did it
    assert all(version == 4 for *_, version in versions)


TAMPER = [
    "UPDATE spends SET record = replace(record, '0.001', '0.0001') WHERE id = 7",
    "UPDATE spends SET dataset = 'views' WHERE id = 7",
    "UPDATE generations SET generation = 7 WHERE lineage = (SELECT lineage FROM spends WHERE id = 7)",
    "DELETE FROM generations WHERE lineage = (SELECT lineage FROM spends WHERE id = 7)",
    "INSERT INTO generations VALUES ('more', 1, 'h', 's')",
    "DELETE FROM spends WHERE id = 7",
]
AT_ONCE = [
    "UPDATE totals SET kinds = replace(kinds, '0.001', '0.0001')",
    "UPDATE totals SET spends = spends - 1",
    "UPDATE totals SET latest = 0",
    "DELETE FROM totals",
    "DELETE FROM datasets",
    "UPDATE datasets SET record = replace(record, '1e4', '9e9'), seal = seal || ''",
    "UPDATE datasets SET spends = spends - 1",
    "DELETE FROM spends WHERE id = (SELECT max(id) FROM spends)",
    "UPDATE writes SET last = 'x'",
    "DELETE FROM writes",
    "UPDATE spends SET record = replace(record, '0.001', '0.0001') WHERE id = (SELECT max(id) FROM spends)",
]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "budget.db"
    spend_many(dpf.Ledger(path, total=dpf.PureDP(epsilon=1e4)), "clicks", SMALL, ledger_history.FEW + 200)
    return path


@pytest.mark.parametrize("tamper", [*TAMPER, *AT_ONCE])
def test_ledger__with_a_long_history_notices_what_was_not_written_by_it(long: Path, path: Path, tamper: str) -> None:
    """What decides about spends is checked whenever it is used; the rest when it is verified."""
    path.write_bytes(long.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(tamper.replace("1e4", "10000.0"))
    if tamper in AT_ONCE:
        with pytest.raises(dpf.LedgerError, match="damaged"):
            dpf.Ledger(path)
    else:
        with pytest.raises(dpf.LedgerError, match="damaged"):
            dpf.Ledger(path).verify()


def test_ledger__with_a_long_history_and_a_flipped_byte_never_says_something_else(long: Path, path: Path) -> None:
    """Bytes all over the file: what is left stays what it was, or is refused; and verifying finds them."""
    whole, rng = long.read_bytes(), np.random.default_rng(3)
    truth = dpf.Ledger(long).left("clicks")
    found = 0
    for _ in range(30):
        at = int(rng.integers(len(whole)))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(8))]) + whole[at + 1 :])
        try:
            ledger = dpf.Ledger(path)
            assert ledger.left("clicks") == truth
            ledger.verify()
            assert [spend.guarantee for spend in ledger.dataset("clicks").spends] == [SMALL] * (
                ledger_history.FEW + 200
            )
        except dpf.LedgerError:
            found += 1
    assert found > 10  # the others are in unused places of the file


def test_ledger__decides_by_totals_that_history_bears_out(path: Path) -> None:
    """Totals that were sealed but are wrong, as a mistake in this program would make them, are found by verifying."""
    ledger = dpf.Ledger(path, total=TOTALS[0])
    spend_many(ledger, "clicks", SMALL, ledger_history.FEW + 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        row = list(connection.execute("SELECT * FROM totals").fetchone())
        row[3] = row[3].replace("0.001", "0.0001")
        row[6] = seal_of("totals", *row[:6])
        connection.execute("REPLACE INTO totals VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    again = dpf.Ledger(path)
    with pytest.raises(dpf.LedgerError, match="damaged"):
        again.verify()


def test_history__is_read_in_parts_while_others_spend(long: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(long.read_bytes())
    ledger, other = dpf.Ledger(path), dpf.Ledger(path)
    monkeypatch.setattr(ledger_history, "PART", 500)
    dataset, parts = ledger.dataset("clicks"), 0
    real = ledger._file.read

    def reading(work: Any) -> Any:
        nonlocal parts
        parts += 1
        result = real(work)
        other.spend("clicks", SMALL)
        return result

    monkeypatch.setattr(ledger._file, "read", reading)
    assert len(dataset.spends) == ledger_history.FEW + 200
    assert parts == 5
    assert ledger.verify().spends == ledger_history.FEW + 205
    assert ledger.verify().spends > ledger_history.FEW + 205


def test_ledger_command__verifies(path: Path, long: Path) -> None:
    path.write_bytes(long.read_bytes())
    done = CliRunner().invoke(app, ["ledger", "verify", str(path)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "2,200 spends" in done.stdout
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(TAMPER[0])
    with pytest.raises(dpf.LedgerError, match="damaged"):
        CliRunner().invoke(app, ["ledger", "verify", str(path)], catch_exceptions=False)


def test_ledger__takes_composed_and_decomposed_letters_for_one_name(path: Path) -> None:
    ledger = dpf.Ledger(path, total=dpf.PureDP(epsilon=1.0))
    ledger.spend("caf\u00e9", dpf.PureDP(epsilon=0.5))
    ledger.spend("cafe\u0301", dpf.PureDP(epsilon=0.5))
    assert [(one.name, one.tally.size) for one in ledger.datasets()] == [("caf\u00e9", 2)]
    with pytest.raises(dpf.BudgetExceeded):
        ledger.spend("cafe\u0301", dpf.PureDP(epsilon=0.5))


def test_ledger__finds_a_name_that_an_older_version_stored_decomposed(path: Path) -> None:
    ledger = dpf.Ledger(path, total=dpf.PureDP(epsilon=1.0))
    old = "cafe\u0301"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpfrugal.parameters.name", lambda _, value: value)
        ledger.spend(old, dpf.PureDP(epsilon=0.5))
    for name in (old, "caf\u00e9"):
        assert dpf.Ledger(path).left(name) == dpf.PureDP(epsilon=0.5)
    ledger.spend("caf\u00e9", dpf.PureDP(epsilon=0.5))
    assert [(one.name, one.tally.size, one.left) for one in ledger.datasets()] == [(old, 2, None)]
    assert ledger.verify().spends == 2


@pytest.mark.parametrize("seconds", [2.6e11, 1e18, float("inf"), -1e15])
def test_ledger__survives_a_clock_that_is_beyond_all_years(
    path: Path, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = dpf.Ledger(path, total=dpf.PureDP(epsilon=1.0))
    with monkeypatch.context() as patch:
        patch.setattr("dpfrugal.budget.promises.clock", lambda: seconds)
        ledger.spend("clicks", dpf.PureDP(epsilon=0.25))
    ledger.spend("clicks", dpf.PureDP(epsilon=0.25))
    times = [spend.when for spend in dpf.Ledger(path).dataset("clicks").spends]
    assert times == sorted(times)
    assert CliRunner().invoke(app, ["ledger", "history", str(path)], catch_exceptions=False).exit_code == 0
    assert os.path.exists(path)
