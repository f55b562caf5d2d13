"""What a command says when nobody reads it, or nothing can be written: a release that was paid for is never lost."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from tests.support.command_line import COMMAND, run

NUMBERS = "".join(f"{number}\n" for number in range(2000))
ASKED = ("quantile", "-", "-q", 0.5, "--epsilon", 1)


@pytest.fixture
def charged(tmp_path: Path) -> tuple[Any, ...]:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=5.0))
    ledger.open("clicks", dpf.PureDP(epsilon=5.0))
    return ("--ledger", ledger.path, "--dataset", "clicks")


def spends(charged: tuple[Any, ...]) -> int:
    return dpf.Ledger(charged[1]).dataset("clicks").tally.size


def with_output(output: Any, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    given = {"input": NUMBERS} | options
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], stdout=output, stderr=subprocess.PIPE, text=True, check=False, **given
    )


def test_output__that_nobody_reads_is_found_before_anything_is_spent(charged: tuple[Any, ...]) -> None:
    """The exit status is that of a broken pipe, also of an audit, where 1 would mean that it failed."""
    reader, writer = os.pipe()
    os.close(reader)
    done = with_output(writer, *ASKED, *charged)
    assert (done.returncode, "Traceback" in done.stderr) == (128 + signal.SIGPIPE, False)
    assert spends(charged) == 0
    done = with_output(writer, "audit", "--algorithm", "keyed", "--epsilon", 1, "--runs", 10)
    assert done.returncode == 128 + signal.SIGPIPE
    os.close(writer)


def test_output__that_is_closed_is_refused_before_anything_is_spent(charged: tuple[Any, ...]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *map(str, (*ASKED, *charged))],
        input=NUMBERS, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Standard output is closed" in done.stderr
    assert spends(charged) == 0


def test_output__to_a_full_device_keeps_the_release_in_the_ledger(charged: tuple[Any, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = with_output(full, *ASKED, *charged)
    assert done.returncode == 2
    assert "ledger kept" in done.stderr
    assert "could not be written" in done.stderr
    assert spends(charged) == 1
    (kept,) = dpf.Ledger(charged[1]).kept("clicks")
    assert json.loads(kept)["values"]
    shown = run("ledger", "kept", charged[1], "clicks")
    assert json.loads(shown.stdout) == json.loads(kept)
    assert run("ledger", "verify", charged[1]).returncode == 0


@pytest.mark.parametrize("way", [(), ("--algorithm", "private-quantile"), ("--json",)])
def test_output__of_watch_to_a_full_device_keeps_the_release_in_the_ledger(
    way: tuple[str, ...], charged: tuple[Any, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        done = with_output(full, "watch", "-q", 0.5, "--epsilon", 1, "--every", 1000, *way, *charged)
    assert done.returncode == 2
    assert "ledger kept" in done.stderr
    (kept,) = dpf.Ledger(charged[1]).kept("clicks")
    assert "1000" in kept


@pytest.mark.parametrize("command", [ASKED, ("watch", "-q", 0.5, "--epsilon", 1, "--every", 1000)])
def test_input__that_never_ends_a_line_is_refused(command: tuple[object, ...]) -> None:
    with Path("/dev/zero").open("rb") as zero:
        done = subprocess.run([*COMMAND, *map(str, command)], stdin=zero, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "longer than" in done.stderr


def test_output__to_a_full_device_without_a_ledger_goes_to_standard_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = with_output(full, *ASKED)
    assert done.returncode == 2
    assert any(line.startswith("{") and "values" in json.loads(line) for line in done.stderr.splitlines())


def small_files() -> None:
    """In a new process: no file may grow, as on a full disk."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_output__to_a_file_on_a_full_disk_leaves_the_old_one(tmp_path: Path, ending: str) -> None:
    table, output = tmp_path / "rows.csv", tmp_path / f"out.{ending}"
    table.write_text("k,ms\n" + "".join(f"{'ab'[row % 2]},{row}\n" for row in range(2000)))
    (tmp_path / "keys.txt").write_text("a\nb\n")
    output.write_bytes(b"old")
    output.chmod(0o640)
    command = ["quantile", table, "--column", "ms", "--by", "k", "--keys", tmp_path / "keys.txt", "-q", 0.5]
    command += ["--epsilon", 1, "--output", output]
    done = run(*command, preexec_fn=small_files)
    assert done.returncode == 2
    assert output.read_bytes() == b"old"
    assert {each.name for each in tmp_path.iterdir()} == {"rows.csv", "keys.txt", output.name}
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert output.stat().st_size > 40
    assert output.stat().st_mode & 0o777 == 0o640


def test_input__that_is_closed_or_fails_is_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, *map(str, ASKED)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input" in done.stderr
    descriptor = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)  # reading fails, as with EIO
    for command in (ASKED, (*ASKED, "--algorithm", "private-quantile")):
        done = subprocess.run(
            [*COMMAND, *map(str, command)], stdin=descriptor, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert "standard input cannot be read" in done.stderr
        assert "Traceback" not in done.stderr
    os.close(descriptor)


def test_input__of_a_device_that_never_ends_is_refused() -> None:
    done = run("quantile", "/dev/zero", "-q", 0.5, "--epsilon", 1)
    assert done.returncode == 2
    assert "/dev/zero: this is a device" in done.stderr


def test_paper__leaves_a_folder_to_the_process_that_has_it(tmp_path: Path) -> None:
    from dpfrugal.paper import results
    from dpfrugal.storage.locks import folder_lock

    with folder_lock(results.open_folder(tmp_path)):
        done = run("paper", "--output", tmp_path, "--quick", "--figure", "1a")
    assert done.returncode == 2
    assert "Another process writes to" in done.stderr


def test_quantile_command__prints_whole_numbers_of_a_column_of_integers(tmp_path: Path) -> None:
    """By the column's type; a number that stands for an address keeps both of its slashes."""
    numbers = np.random.default_rng(3).integers(2000, 2801, 20_000)
    pq.write_table(pa.table({"ms": numbers}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"ms": numbers.astype(float)}), tmp_path / "f.parquet")
    ask = ("-q", 0.5, "--epsilon", 1, "--algorithm", "private-quantile")
    assert re.fullmatch(r"0\.5\t2\d\d\d\n", run("quantile", tmp_path / "t.parquet", "--column", "ms", *ask).stdout)
    assert "." in run("quantile", tmp_path / "f.parquet", "--column", "ms", *ask).stdout.removeprefix("0.5")
    assert "s3://b/x.db does not exist" in run("ledger", "show", "s3://b/x.db").stderr
