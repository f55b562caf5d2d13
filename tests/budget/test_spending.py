"""A run that fails after it has spent says so: how much, on which dataset, in which ledger, and what is left."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from tests.support.command_line import COMMAND, interruptible, run

ONE, THREE = dpf.PureDP(epsilon=1.0), dpf.PureDP(epsilon=3.0)
SEGMENTS = ("--algorithm", "private-quantile")  # it spends while it reads; a table is read before anything is spent
WALK = ("--algorithm", "dp-frugal-1u")
GOOD = "\n".join(str(number % 100) for number in range(3000))  # some segments are closed on the way


@pytest.fixture
def ledger(tmp_path: Path) -> dpf.Ledger:
    ledger = dpf.Ledger(tmp_path / "b.db", total=THREE)
    ledger.open("clicks", THREE)
    return ledger


def options(ledger: dpf.Ledger) -> list[str]:
    return ["-q", "0.5", "--epsilon", "1", "--ledger", str(ledger.path), "--dataset", "clicks"]


def said(ledger: dpf.Ledger) -> str:
    return f"ε=1 was spent on 'clicks' in {ledger.path} before that; ε=2 is left of ε=3."


@pytest.mark.parametrize("command", [["quantile", "-", *SEGMENTS], ["watch", "--every", "1000"]])
def test_spending__is_reported_at_a_bad_line_after_the_spend(command: list[str], ledger: dpf.Ledger) -> None:
    done = run(*command, *options(ledger), text=f"{GOOD}\nsecret\n")
    assert done.returncode == 2
    (error,) = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]  # noise may look like drift
    assert "Line 3001" in error
    assert said(ledger) in error
    assert ledger.left("clicks") == dpf.PureDP(epsilon=2.0)


@pytest.mark.parametrize("command", [["quantile", "-"], ["watch", "--every", "1000"]])
def test_spending__has_nothing_to_report_at_a_bad_line_before_it(command: list[str], ledger: dpf.Ledger) -> None:
    done = run(*command, *options(ledger), text="1\nsecret\n")
    assert done.returncode == 2
    assert "spent" not in done.stderr
    assert ledger.left("clicks") == THREE


@pytest.mark.parametrize("last", ["secret", ""])
def test_spending__of_segments_comes_after_a_bad_last_line_of_a_file_was_found(
    last: str, ledger: dpf.Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "items.csv"
    path.write_text("ms\n" + "7\n" * 30_000 + last + "\n", encoding="utf-8")
    done = run("quantile", path, "--column", "ms", *options(ledger), *SEGMENTS)
    assert done.returncode == 2
    assert "Nothing was spent on 'clicks'" in done.stderr
    assert ledger.left("clicks") == THREE


@pytest.mark.parametrize(
    ("command", "notes"), [(["quantile", "-"], 0), (["quantile", "items.csv", "--column", "ms"], 1)]
)
def test_spending__of_a_table_comes_after_all_of_it_was_read(
    command: list[str], notes: int, ledger: dpf.Ledger, tmp_path: Path
) -> None:
    (tmp_path / "items.csv").write_text(f"ms\n{GOOD}\nsecret\n", encoding="utf-8")
    command = [str(tmp_path / part) if part.endswith(".csv") else part for part in command]
    done = run(*command, *options(ledger), text=f"{GOOD}\nsecret\n")
    assert done.returncode == 2
    assert done.stderr.count("spent") == done.stderr.count(f"Nothing was spent on 'clicks' in {ledger.path}.") == notes
    assert "secret" not in done.stderr
    assert ledger.left("clicks") == THREE


def test_spending__does_not_begin_where_a_key_is_missing_in_the_last_round(ledger: dpf.Ledger, tmp_path: Path) -> None:
    path, rows = tmp_path / "rows.parquet", 3 << 20
    keys = pa.array(["a"] * (rows - 1) + [None])
    pq.write_table(pa.table({"key": keys, "ms": np.ones(rows)}), path, row_group_size=1 << 20)
    (tmp_path / "keys.txt").write_text("a\n", encoding="utf-8")
    by = ("--by", "key", "--column", "ms", "--keys", tmp_path / "keys.txt", "--rounds", 3, *WALK)
    done = run("quantile", path, *by, *options(ledger))
    assert done.returncode == 2
    assert "null keys" in done.stderr
    assert ledger.dataset("clicks").spends == ()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_spending__is_reported_when_the_output_cannot_be_written(ledger: dpf.Ledger) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*COMMAND, "quantile", "-", *options(ledger)], input=GOOD, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert said(ledger) in done.stderr


def interrupted(ledger: dpf.Ledger) -> tuple[int, str]:
    """The input stays open and silent until the command has ended."""
    before = len(ledger.dataset("clicks").spends)
    process = subprocess.Popen(
        [*COMMAND, "quantile", "-", *options(ledger), *SEGMENTS],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    )
    assert process.stdin is not None
    process.stdin.write(f"{GOOD}\n" * 400)  # more than a batch
    process.stdin.flush()
    while len(ledger.dataset("clicks").spends) == before and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return 0, ""
    return process.returncode, process.communicate()[1]


def test_spending__is_reported_on_ctrl_c(ledger: dpf.Ledger) -> None:
    """Python loses an interrupt that comes within a callback from C, as when compiled code is loaded: then again."""
    status, errors = interrupted(ledger)
    while not status and ledger.left("clicks") is not None:
        status, errors = interrupted(ledger)
    assert status in (130, -signal.SIGINT)
    assert "Traceback" not in errors
    assert (
        f"ε=1 was spent on 'clicks' in {ledger.path} before that; {ledger.left('clicks') or 'nothing'} is left of ε=3."
        in errors
    )


def test_spending__is_reported_at_the_end_of_a_watch_with_what_is_left(ledger: dpf.Ledger) -> None:
    done = run("watch", "--every", "1000", *options(ledger), text=GOOD)
    assert done.returncode == 0
    assert "clicks: ε=2 is left of ε=3" in done.stderr


def test_spending__is_reported_when_the_ledger_is_gone(ledger: dpf.Ledger) -> None:
    p = dpf.PrivateQuantile(0.5, ONE, ledger=ledger, dataset="clicks")
    p.update_many(np.arange(2000.0))
    ledger.path.unlink()
    with pytest.raises(ZeroDivisionError) as caught, p.account.owning_up():
        _ = 1 / 0
    assert "may have been spent on 'clicks'" in caught.value.__notes__[0]


def test_spending__of_an_earlier_run_is_not_reported_as_this_ones(ledger: dpf.Ledger, tmp_path: Path) -> None:
    books = (*options(ledger), "--checkpoint", tmp_path / "c.private")
    assert run("watch", "--every", "1000", *books, text=GOOD).returncode == 0
    done = run("watch", "--every", "1000", *books, text="secret\n")
    assert done.returncode == 2
    assert "Continuing from" in done.stderr
    assert "was spent" not in done.stderr


LOADED_BEFORE = """
import sys
import dpfrugal as dpf
from dpfrugal.budget.spending import Account
before = Account.before_noise
def noted(self):
    print(sys.argv[1], "opendp" in sys.modules, flush=True)
    before(self)
Account.before_noise = noted
one = dpf.PureDP(epsilon=1.0)
if sys.argv[1] == "keyed":
    estimator = dpf.KeyedDPFrugal1U(0.5, one, keys=["a"])
    estimator.update_many(["a"] * 100, list(range(100)))
else:
    estimator = {"walk": dpf.DPFrugal1U, "segments": dpf.PrivateQuantile}[sys.argv[1]](0.5, one)
    estimator.update_many(list(range(3000)))
estimator.release()
"""


@pytest.mark.parametrize("kind", ["walk", "segments", "keyed"])
def test_noise__is_loaded_before_the_ledger_counts_it(kind: str) -> None:
    """A kill between the count and the release forgets the open segment: nothing slow may lie in between."""
    done = subprocess.run([sys.executable, "-c", LOADED_BEFORE, kind], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {f"{kind} True"}
