"""``dpfrugal watch`` as a user runs it: windows by items and by the clock, with keys, from logs, over crashes."""

import json
import os
import select
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.cli.streams import stdin_periods, window_output
from dpfrugal.cli.streams.stdin_periods import Period
from tests.support.command_line import COMMAND, interruptible, refused, run, run_here

ONE = ("--epsilon", 1)
RNG = np.random.default_rng(2)
NUMBERS = "".join(f"{number:.3f}\n" for number in RNG.lognormal(3, 1, 5_000))


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.txt"
    path.write_text("/home\n/pay\n/none\n")
    return path


def test_watch__releases_each_period_by_itself() -> None:
    """The stream with a rhythm that a running estimate could not follow: its median alternates between 52 and 26."""
    text = "".join(f"{RNG.normal(52 if k // 5_000 % 2 else 26, 3):.2f}\n" for k in range(20_000))
    done = run("watch", "-q", "0.5,0.9", *ONE, "--every", 5_000, text=text)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [len(row) for row in rows] == [8] * 4
    assert [row[1] for row in rows] == ["5000"] * 4
    for at, row in enumerate(rows):
        assert datetime.fromisoformat(row[0]).tzinfo is not None
        lower, upper = map(float, row[3:5])
        assert lower <= float(row[2]) <= upper
        assert abs(float(row[2]) - (52 if at % 2 else 26)) < 1
    assert done.stderr == ""


def test_watch__shows_no_number_where_there_are_too_few() -> None:
    done = run("watch", "-q", 0.99, *ONE, "--every", 100, "--json", text="5\n" * 250)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["items"], row["value"], row["window"]) for row in found] == [
        (100, None, 1),
        (100, None, 2),
        (50, None, 3),
    ]
    assert done.stderr.count("too few rows") == 1, "said once"


def log(kind: str) -> str:
    lines = []
    for at, number in enumerate(RNG.lognormal(3, 1, 4_000)):
        route, person = "/home" if at % 4 else "/pay", at % 500
        if kind == "json":
            lines.append(json.dumps({"route": route, "http": {"ms": round(number, 3)}, "user": person}))
        elif kind == "logfmt":
            lines.append(f'level=info route={route} ms={number:.3f} user=u{person} msg="all \\"well\\""')
        else:
            lines.append(f'1.2.3.4 - u{person} "GET {route} HTTP/1.1" 200 {number:.3f}')
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("json", ("--json-lines", "--value", "http.ms", "--by", "route", "--person", "user")),
        ("logfmt", ("--logfmt", "--value", "ms", "--by", "route")),
        ("pattern", ("--pattern", r'- (?P<person>\w+) "GET (?P<key>\S+)[^"]*" \d+ (?P<value>\S+)$')),
    ],
)
def test_watch__reads_logs_as_they_are(kind: str, options: tuple[object, ...], keys: Path) -> None:
    text = log(kind)
    ask = ("watch", "-q", 0.5, *ONE, "--every", "1d", "--keys", keys, "--max-items-per-person", 8)
    done = run(*ask, *options, text=text)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[1] for row in rows] == ["/home", "/pay", "/none"]
    assert abs(int(rows[0][2]) - 3_000) < 2_000, "noise of a scale of 160: one false alarm in 200,000"
    assert 10 < float(rows[0][3]) < 40
    assert rows[2][3:] == ["", "", ""]
    if "person" in str(options):
        assert "ε=1 per person of ≤ 8 items per window" in done.stderr
    if kind != "json":
        return
    broken = text.replace("\n", "\nsecret 4242\n", 1)
    done = run(*ask, *options, text=broken)
    assert done.returncode == 2
    assert "Line 2 does not fit" in done.stderr
    assert "4242" not in done.stderr + done.stdout
    assert run(*ask, *options, "--nan-policy", "omit", text=broken).returncode == 0


def test_watch__shows_no_number_of_items_where_it_is_private(tmp_path: Path) -> None:
    """Whatever came, the same number of lines, the same notes and no number; also where nothing came."""
    ask = ("watch", "-q", 0.5, *ONE, "--every", "1d", "--neighbours", "add-remove")
    shown = set()
    for count in (0, 1, 3):
        done = run(*ask, text="5\n" * count)
        (line,) = done.stdout.splitlines()
        shown.add((done.returncode, line.partition("\t")[2], done.stderr))
    assert len(shown) == 1
    path = tmp_path / "state"
    process = watching(*ask[5:], *("--checkpoint", path, "--accept-replay-risk"))
    assert process.stdin is not None
    process.stdin.write(NUMBERS)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 5_000 * 8) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.communicate()[1] == "Stopped; items after the last full period are kept in the checkpoint.\n"
    again = run(*ask, "--checkpoint", path, "--accept-replay-risk", text="")
    assert "items in the open one" in again.stderr
    assert "5,000" not in again.stderr


def test_watch_by__refuses_a_log_that_nobody_parsed(keys: Path) -> None:
    """Whole lines must not become undeclared keys."""
    line = '127.0.0.1 - - [18/Nov/2026:21:00:00 +0000] "GET / HTTP/1.1" 200 512\n'
    said = refused("watch", "--by", "--keys", keys, "-q", 0.5, *ONE, "--every", 10, text=line * 50)
    assert "Line 1 does not fit" in said
    assert "GET" not in said


def test_watch_by__shows_keys_as_text_that_nothing_breaks(tmp_path: Path) -> None:
    text = "".join(json.dumps({"k": "a\tb\x1b[2J", "v": 1}) + "\n" for _ in range(500))
    (tmp_path / "keys.parquet").write_bytes(b"")
    ask = ("watch", "--json-lines", "--value", "v", "--by", "k", "-q", 0.5, "--epsilon", 2, "--delta", 1e-6)
    done = run(*ask, "--discover-keys", "--every", 500, text=text)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[1] for line in done.stdout.splitlines()] == ["a\\tb\\x1b[2J"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--start", 3), "--start is for --algorithm"),
        (("--half-life", 9), "--half-life was retired: windows"),
        (("--keys", "k.txt"), "are for --by"),
        (("--other", "rest"), "are for --by"),
        (("--json-lines",), "need --value NAME"),
        (("--json-lines", "--by", "--value", "ms"), "--by NAME where there are keys"),
        (("--json-lines", "--logfmt", "--value", "ms"), "use one of them"),
        (("--value", "ms"), "name fields"),
        (("--by", "route"), "for lines of a key and a number use --by alone"),
        (("--pattern", "("), "--pattern is not a regular expression"),
        (("--neighbours", "add-remove"), "--every must be a time"),
        (("--algorithm", "private-quantile", "--windows", 3), "--windows is for windows"),
        (("--algorithm", "dp-frugal-1u", "--json-lines", "--value", "ms"), "takes lines of numbers"),
        (("--windows", 0), "--windows must be"),
    ],
)
def test_watch__refuses_options_that_do_not_belong(options: tuple[object, ...], said: str) -> None:
    done = run_here("watch", "-q", 0.5, *ONE, "--every", 9, *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_period__ends_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")  # half an hour beside the others
    time.tzset()
    try:
        for text, shown in (("1m", "12:01:00"), ("1h", "13:00:00"), ("10s", "12:00:10"), ("1d", "00:00:00")):
            period = Period.parse(text)
            moment = datetime.fromisoformat("2026-11-18T12:00:00.5+05:30").timestamp()
            assert period.shown(period.end_after(moment)).endswith(f"T{shown}+05:30")
            assert period.end_after(period.end_after(moment)) > period.end_after(moment)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_clock__goes_on_where_it_was_set_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """No period lasts longer or shorter than it should, but for the first one after the clock was set."""
    now = {"time": 1_000_000_005.0, "monotonic": 50.0}
    for name in now:
        monkeypatch.setattr(time, name, lambda name=name: now[name])
    clock = stdin_periods._Clock(Period.parse("10s"))
    assert (clock.end, clock.deadline) == (1_000_000_010.0, 55.0)
    ends = []
    for step in (0.0, 0.013, 3_600.0, 0.0, -3_600.0, 0.0):
        now["monotonic"] = clock.deadline
        now["time"] = clock.end + step
        clock.advance()
        ends.append((clock.end - now["time"], clock.deadline - now["monotonic"]))
    assert all(abs(left - waiting) < 1e-6 and 5 <= left <= 15.1 for left, waiting in ends)


def watching(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
    epsilon = () if "--epsilon" in arguments else ("--epsilon", "1")
    return subprocess.Popen(
        [*COMMAND, "watch", "-q", "0.5", *epsilon, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_watch__saves_in_silence_and_when_it_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    """A burst, then quiet: what came is in the checkpoint a second later, and when a signal comes."""
    path = tmp_path / "state"
    process = watching("--every", "1d", "--checkpoint", path, "--accept-replay-risk")
    assert process.stdin is not None
    process.stdin.write(NUMBERS)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 5_000 * 8) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.stat().st_size > 5_000 * 8, "the burst was not saved while the stream was silent"
    process.stdin.write("1\n")
    process.stdin.flush()
    process.send_signal(number)
    assert process.wait(timeout=60) == 0
    _, errors = process.communicate()
    assert "after the last full period are kept in the checkpoint" in errors
    ask = ("watch", "-q", 0.5, *ONE, "--every", "1d", "--checkpoint", path, "--accept-replay-risk")
    again = run(*ask, text="2\n")
    assert "Continuing from" in again.stderr
    assert int(again.stdout.split("\t")[1]) in (5_001, 5_002)


def value_of(line: str) -> str:
    """The value of a line of one quantile; none where it is cut off."""
    cells = line.rstrip("\n").split("\t")
    return cells[2] if len(cells) == 5 else ""


def test_watch__over_kills_releases_every_window_once(tmp_path: Path) -> None:
    """Killed at random; every number says in which window it came, and its release can be told from the others."""
    ledger, path = dpf.Ledger(tmp_path / "b.db", total=dpf.PureDP(epsilon=50.0)), tmp_path / "state"
    ledger.open("clicks", dpf.PureDP(epsilon=50.0))
    books = ("--ledger", tmp_path / "b.db", "--dataset", "clicks", "--checkpoint", path)
    ask = ("--epsilon", 50, "--every", "300ms", *books)
    shown: list[tuple[str, int, float]] = []
    for round_number in range(5):
        process = watching(*ask)
        assert process.stdin is not None
        assert process.stdout is not None
        lines: list[str] = []
        until = time.monotonic() + 60
        while time.monotonic() < until:
            process.stdin.write(f"{round_number * 1_000}\n" * 300)
            process.stdin.flush()
            if select.select([process.stdout], [], [], 0.02)[0]:
                lines.append(process.stdout.readline())
                # A while after the first window that has a value: starting takes long on a busy machine.
                if until - time.monotonic() > 5 and value_of(lines[-1]):
                    until = time.monotonic() + RNG.uniform(0.1, 0.9)
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
        process.communicate()
        for line in lines:
            if value_of(line):
                cells = line.rstrip("\n").split("\t")
                shown.append((cells[0], int(cells[1]), float(cells[2])))
    assert len(shown) >= 5
    ends = [end for end, _, _ in shown]
    repeated = [row for row in shown if ends.count(row[0]) > 1]
    assert len(set(repeated)) * 2 == len(repeated) or not repeated, "a window is repeated as it was, or not at all"
    assert all(value % 1_000 == 0 for _, _, value in shown), "no window has items of two runs"
    (spend,) = ledger.dataset("clicks").spends
    assert spend.generation >= len(set(ends))


def test_watch__is_alone_with_its_checkpoint(tmp_path: Path) -> None:
    options = ("--every", "1d", "--checkpoint", tmp_path / "state", "--accept-replay-risk")
    process = watching(*options)
    assert process.stdin is not None
    deadline = time.monotonic() + 60
    while not (tmp_path / "state").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "Another process uses the checkpoint" in refused("watch", "-q", 0.5, *ONE, *options, text="1\n")
    process.kill()
    process.communicate()


def test_live_table__shows_values_intervals_and_the_last_windows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    table = window_output.LiveTable("1m")
    keyed = dpf.KeyedWindowQuantile(0.5, dpf.PureDP(epsilon=1.0), keys=["/home", "bell\x07", "/none"])
    for scale in (1, 2, 3):
        keyed.update_many(["/home", "bell\x07"] * 2_000, np.linspace(0, 100 * scale, 4_000))
        with table.aside():
            assert not table._live.is_started, "nothing is printed over the table"
        table.show(keyed.release(), f"12:0{scale}:00")
        assert table._live.is_started
    table.stop()
    shown = capsys.readouterr().out
    assert "ε=1 per item (replace-one, value and key)" in shown
    assert "window 3, to 12:03:00" in shown
    assert "bell\\x07" in shown
    assert "\x07" not in shown
    assert "▁" in shown
    assert "·" in shown
    assert "95% interval" in shown
    assert os.linesep in shown
