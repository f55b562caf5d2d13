"""Faults of the machines people have: second paths to one ledger, failing disks, stopped processes, small memory.

python -m reliability.machines paths --rounds 5      # and likewise faults, stops, watchers, memory, names
"""

import argparse
import csv
import errno
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import dpfrugal as dpf
from reliability import io_faults

TOTAL: Final = dpf.PureDP(epsilon=20.0)
ONE: Final = dpf.PureDP(epsilon=1.0)
COMMAND: Final = [sys.executable, "-m", "dpfrugal"]
GIGABYTE: Final = 1 << 30
# Spends until nothing is left, or the ledger refuses; each confirmed spend is a line.
SPEND: Final = """
import sys, dpfrugal as dpf
try:
    ledger = dpf.Ledger(sys.argv[1])
    for _ in range(int(sys.argv[2])):
        ledger.spend("clicks", dpf.PureDP(epsilon=1.0))
        print("confirmed", flush=True)
except dpf.BudgetExceeded:
    pass
except dpf.LedgerError as refusal:
    print("refused:", refusal)
"""
NAMES: Final[tuple[str, ...]] = (
    "[/x]",
    "clicks [eu]",
    "=cmd|' /C calc'!A0",
    "café",
    "cafe\u0301",  # the same word, decomposed
    "[link=a]b",
    "\\x1b[2J",
    "'",
    "日本",
    "a" * 200,
)
UNPRINTABLE: Final = ("\x1b[2J", "a\nb", "a\tb", "\x9b2J", "\u202eab", "\udce9")


def begun(folder: Path) -> Path:
    """A fresh ledger with a total of 20."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    ledger = dpf.Ledger(folder / "budget.db", total=TOTAL)
    ledger.open("clicks", TOTAL)
    return ledger.path


def spender(path: Path, times: int, before: tuple[str, ...] = (), **options: Any) -> "subprocess.Popen[str]":
    """A process that spends."""
    command = [*before, sys.executable, "-c", SPEND, str(path), str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def confirmed(process: "subprocess.Popen[str]") -> int:
    """How many of its spends were confirmed; it must have run to its end."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out.count("confirmed")


def paths(rounds: int, folder: Path) -> str:
    """Eight processes under two paths of one file never exceed the total; a hard link is refused."""
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    second, by_second = folder / "second.db", 0
    for _ in range(rounds):
        path = begun(folder / "ledger")
        second.touch()
        mount = ("unshare", "-m", "sh", "-c", script, "sh", str(path), str(second))
        made = [spender(second, 5, mount) if number % 2 else spender(path, 5) for number in range(8)]
        spent = [confirmed(each) for each in made]
        by_second += sum(spent[1::2])
        ledger = dpf.Ledger(path)
        assert sum(spent) == ledger.verify().spends == 20, (spent, ledger.verify().spends)
        (folder / "link.db").hardlink_to(path)
        assert confirmed(spender(path, 1)) == confirmed(spender(folder / "link.db", 1)) == 0
        (folder / "link.db").unlink()
    assert by_second > rounds, by_second  # they did spend, and about as often as the others
    return (
        f"{rounds} rounds of 8 processes under two paths: 20 of 20 spent each time, {by_second} in all through the "
        "mount; hard links refused"
    )


def faults(rounds: int, folder: Path) -> str:
    """Each read, write and sync of a ledger fails in turn: what was confirmed is there, and nothing is damaged."""
    failed = lost = 0
    kinds: list[tuple[io_faults.Call, int]] = [
        ("read", errno.EIO), ("write", errno.EIO), ("write", errno.ENOSPC), ("sync", errno.EIO)
    ]  # fmt: skip
    for call, error in kinds:
        for at in range(1, rounds + 1):
            path = begun(folder / "ledger")
            note = folder / "note"
            note.unlink(missing_ok=True)
            given = io_faults.environment(call, "ledger/budget.db", at, error, stays=at % 2 == 0, note=note)
            spent = confirmed(spender(path, 3, env=given))
            if note.exists():
                failed += 1
            ledger = dpf.Ledger(path)
            found = ledger.verify().spends
            assert spent <= found <= 3, (call, at, spent, found)
            lost += found - spent
            ledger.spend("clicks", ONE)
    return (
        f"{failed} failed reads, writes and syncs: every confirmed spend there, nothing damaged; {lost} spent in vain"
    )


def stops(rounds: int, folder: Path) -> str:
    """Processes that are stopped at random, with the lock or without it, and continued."""
    rng, stopped = random.Random(1), 0  # noqa: S311 - points in time, not secrets
    for _ in range(rounds):
        path = begun(folder / "ledger")
        made = [spender(path, 6) for _ in range(6)]
        while any(process.poll() is None for process in made):
            process = rng.choice(made)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(rng.random() * 0.05)
                os.kill(process.pid, signal.SIGCONT)
                stopped += 1
        spent = sum(map(confirmed, made))
        assert spent == dpf.Ledger(path).verify().spends == 20
    return f"{stopped} SIGSTOPs among 6 processes, {rounds} rounds: 20 of 20 spent each time"


def watchers(rounds: int, folder: Path) -> str:
    """Of two watchers on one checkpoint the second is refused, and the first goes on."""
    for number in range(rounds):
        state = folder / f"state{number}"
        command = [*COMMAND, "watch", "-q", "0.5", "--epsilon", "1", "--every", "1h", "--accept-replay-risk"]
        command += ["--checkpoint", str(state)]
        pipe: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        first = subprocess.Popen(command, text=True, **pipe)
        while not state.exists():
            assert first.poll() is None, first.communicate()
            time.sleep(0.05)
        second = subprocess.run(command, input="1\n", capture_output=True, text=True, check=False)
        assert second.returncode == 2, second
        assert "Another process uses the checkpoint" in second.stderr
        out, err = first.communicate("1\n2\n3\n" * 1000)
        assert first.returncode == 0, err
        assert out
    return f"{rounds} pairs of watchers on one checkpoint: the second refused, the first undisturbed"


def limited() -> None:
    """In a new process: a gigabyte of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))


def memory(rounds: int, folder: Path) -> str:
    """Commands in a gigabyte of address space, and small files that stand for gigabytes."""
    numbers = "".join(f"{number}\n" for number in range(5000))
    state = folder / "limited"
    watch = [
        "watch",
        "-q",
        "0.5",
        "--epsilon",
        "1",
        "--every",
        "2000",
        "--checkpoint",
        str(state),
        "--accept-replay-risk",
    ]
    for command in (["quantile", "-", "-q", "0.5", "--epsilon", "1"], watch, watch):
        done = subprocess.run(
            [*COMMAND, *command], input=numbers, text=True, capture_output=True, check=False, preexec_fn=limited
        )
        assert done.returncode == 0, done.stderr
    for name in ("one.csv.gz", "one.jsonl.gz"):
        with gzip.open(folder / name, "wb") as file:
            file.write(b"ms\n" if "csv" in name else b'{"ms": 1}\n{"ms": "')
            for _ in range(256 * rounds):
                file.write(b"1" * (1 << 20))
        done = subprocess.run(
            [*COMMAND, "quantile", str(folder / name), "--column", "ms", "-q", "0.5", "--epsilon", "1"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done
        assert "longer than" in done.stderr
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    assert most < 500, most
    return f"3 commands in 1 GiB of address space; lines of {256 * rounds} MiB refused; at most {most} MiB resident"


def names(rounds: int, folder: Path) -> str:
    """Hostile names of datasets, files, columns, keys and notes: shown as they are or escaped, and never obeyed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def run(*arguments: str, status: int = 0) -> str:
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, check=False)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert done.returncode == status, err
        assert all(letter.isprintable() or letter in "\n\t" for letter in out + err), out + err
        assert status == 0 or err.count("\n") == 1, err
        return out

    for number, name in enumerate(NAMES):
        path = str(folder / f"[red]\x1b[2J{number}\n.db")
        run("ledger", "add", path, name, "--epsilon", "3")
        run("ledger", "add", path, name, "--epsilon", "1", "--spent-by", f"by {name}"[:200])
        run("ledger", "show", path)
        (spend,) = json.loads(run("ledger", "history", path, "--json"))["spends"]
        assert spend["dataset"] == unicodedata.normalize("NFC", name)
    for name in UNPRINTABLE:
        run("ledger", "add", str(folder / "never.db"), name, "--epsilon", "3", status=2)
    keys = [name for name in (*NAMES, *UNPRINTABLE) if name != "\udce9"]  # Arrow's strings are UTF-8
    rows = pa.table({"ms\x1b[2J": range(1000 * len(keys)), "[/k]\n": keys * 1000})
    data, declared = folder / "[x]\x1b[2J.parquet", folder / "\nkeys.parquet"
    pq.write_table(rows, data)
    pq.write_table(pa.table({"k": keys}), declared)
    asked = ["quantile", str(data), "--column", "ms\x1b[2J", "--by", "[/k]\n", "--keys", str(declared)]
    asked += ["-q", "0.5", "--epsilon", "9"]
    table = list(csv.reader(run(*asked).splitlines(keepends=True)))
    assert len({row[0] for row in table}) == len(keys) + 1
    objects = [json.loads(line) for line in run(*asked, "--to", "jsonl").splitlines()]
    assert [each["key"] for each in objects] == keys
    run("quantile", str(data), "--column", "no\x1b[2J", "-q", "0.5", "--epsilon", "1", status=2)
    return (
        f"{len(NAMES)} hostile names through 4 commands, {len(UNPRINTABLE)} refused, {len(keys)} as keys: shown as "
        "they are or escaped, none obeyed"
    )


KINDS: Final[dict[str, Callable[[int, Path], str]]] = {
    "paths": paths, "faults": faults, "stops": stops, "watchers": watchers, "memory": memory, "names": names
}  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpfrugal-machines-") as folder:
        print(KINDS[asked.kind](asked.rounds, Path(folder)))


if __name__ == "__main__":
    main()
