"""The command line as people run it: in a process of its own, by its output and exit status."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpfrugal.cli.streams.stdin_periods import Period
from dpfrugal.errors import ParameterError
from tests.support.command_line import COMMAND, interruptible, refused, run, run_here

ITEMS = np.random.default_rng(6).normal(50, 2, 200_000)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "latencies.parquet"
    pq.write_table(pa.table({"ms": ITEMS, "endpoint": ["/a"] * ITEMS.size}), path)
    return path


WALK = ("--algorithm", "dp-frugal-1u")


SEGMENTS = ("--algorithm", "private-quantile")


@pytest.mark.parametrize("options", [SEGMENTS, (*SEGMENTS, "--decimals", 2), (*WALK, "--decimals", 2, "--start", 40)])
def test_quantile_command__reads_a_file_in_one_scan(parquet: Path, options: tuple[object, ...]) -> None:
    done = run("quantile", parquet, "--column", "ms", "-q", 0.5, "-q", 0.9, "--epsilon", 1, *options)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [float(q) for q, _ in rows] == [0.5, 0.9]
    for q, value in rows:
        assert abs(float(value) - np.quantile(ITEMS, float(q))) < 1
    assert "ε=1 per item" in done.stderr
    assert "200,000 items" in done.stderr


@pytest.mark.parametrize(
    ("options", "claim"),
    [
        (["--epsilon", "1"], {"PureDP": {"epsilon": 1.0}}),
        (["--epsilon", "1", "--delta", "1e-6"], {"ApproxDP": {"epsilon": 1, "delta": 1e-6, "calibration": "analytic"}}),
        (
            ["--epsilon", "1", "--delta", "0.04", "--calibration", "classic"],
            {"ApproxDP": {"epsilon": 1, "delta": 0.04, "calibration": "classic"}},
        ),
        (["--rho", "0.5"], {"ZCDP": {"rho": 0.5}}),
    ],
)
def test_quantile_command__prints_json_with_the_claim(options: list[str], claim: dict[str, Any], parquet: Path) -> None:
    done = run("quantile", parquet, "--column", "ms", "-q", 0.5, "--start", 45, "--json", *WALK, *options)
    answer = json.loads(done.stdout)
    assert answer["guarantee"] == claim
    assert answer["items"] == ITEMS.size
    assert answer["quantile"] == 0.5
    assert abs(answer["value"] - 50) < 60
    assert (answer["neighbours"], answer["unit"]) == ("replace-one", "item")


def test_quantile_command__reads_standard_input() -> None:
    text = "\n".join(map(str, ITEMS[:50_000]))
    done = run("quantile", "-", "-q", 0.5, "--epsilon", 1, "--decimals", 2, "--start", 45, *SEGMENTS, text=text)
    assert abs(float(done.stdout.split()[1]) - 50) < 1


def test_quantile_command__adds_more_noise_for_people_with_many_items(parquet: Path) -> None:
    one, ten = (
        json.loads(
            run(
                *("quantile", parquet, "--column", "ms", "-q", 0.5, "--epsilon", 1, "--json", *WALK),
                *("--max-items-per-person", items),
            ).stdout
        )
        for items in (1, 10)
    )
    assert ten["alpha"] == pytest.approx(10 * one["alpha"])
    assert "10 items" in ten["unit"]


def test_quantile_command__prints_intervals_of_segments_in_json(parquet: Path) -> None:
    done = run("quantile", parquet, "--column", "ms", "-q", "0.5,0.99", "--epsilon", 1, "--json", *SEGMENTS)
    answer = json.loads(done.stdout)
    for q, value, (low, high) in zip(answer["quantiles"], answer["values"], answer["intervals"], strict=True):
        assert low <= value <= high
        assert abs(value - np.quantile(ITEMS, q)) < 0.5
    assert answer["stable"] is True
    assert answer["items"] == ITEMS.size


def test_quantile_command__points_out_a_sorted_file(tmp_path: Path) -> None:
    path = tmp_path / "sorted.parquet"
    pq.write_table(pa.table({"ms": np.sort(ITEMS)}), path)
    done = run("quantile", path, "-q", 0.5, "--epsilon", 1, *SEGMENTS)
    assert "segments of the stream disagree" in done.stderr
    assert "too few items" not in done.stderr


def test_quantile_command__points_out_a_walk_that_cannot_have_converged(parquet: Path) -> None:
    done = run("quantile", parquet, "--column", "ms", "-q", 0.5, "--epsilon", 1, "--decimals", 4, *WALK)
    assert "may not have converged" in done.stderr
    done = run("quantile", parquet, "--column", "ms", "-q", 0.5, "--epsilon", 1, "--decimals", 1, *WALK)
    assert "may not have converged" not in done.stderr


def test_command_line__ends_in_a_sentence_on_bad_files(parquet: Path, tmp_path: Path) -> None:
    ask = ("-q", 0.5, "--epsilon", 1)
    assert "no such file" in refused("quantile", tmp_path / "nope.parquet", *ask)
    assert "there are 'ms', 'endpoint'" in refused("quantile", parquet, "--column", "nope", *ask)
    assert "the column holds string" in refused("quantile", parquet, "--column", "endpoint", *ask)
    assert "not numeric" in refused("quantile", parquet, "--column", "endpoint", *ask, *WALK)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(parquet.read_bytes()[:-1000])
    assert "truncated or damaged" in refused("quantile", broken, "--column", "ms", *ask)
    bad = tmp_path / "bad.csv"
    bad.write_text("ms\n1\n2\nsecret4242\n")
    message = refused("quantile", bad, "--column", "ms", *ask)
    assert "line 4" in message
    assert "4242" not in message
    header = tmp_path / "header.csv"
    header.write_text("ms\n")
    assert "no rows" in refused("quantile", header, "--column", "ms", *ask)
    assert "no items" in refused("quantile", header, "--column", "ms", *ask, *WALK)
    holes = tmp_path / "holes.csv"
    holes.write_text("ms,b\n1,x\n,y\n")
    assert "--nan-policy omit" in refused("quantile", holes, "--column", "ms", *ask)
    assert run("quantile", holes, "--column", "ms", *ask, "--nan-policy", "omit").returncode == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["-q", "0.5"], "guarantee is needed"),
        (["-q", "1.5", "--epsilon", "1"], "quantile"),
        (["-q", "0.5", "--epsilon", "0"], "epsilon"),
        (["-q", "0.5", "--epsilon", "nan"], "epsilon"),
        (["-q", "0.5", "--epsilon", "1", "--delta", "2"], "delta"),
        (["-q", "0.5", "--epsilon", "1", "--rho", "1"], "--rho"),
        (["-q", "0.5", "--delta", "1e-6"], "--delta needs --epsilon"),
        (["-q", "0", "--epsilon", "1"], "strictly between 0 and 1"),
        (["-q", "0.5", "--epsilon", "1", "--column", "ms", *WALK], "for files"),
        (["-q", "0.5", "--epsilon", "1", "--format", "csv", *WALK], "for files"),
        (["-q", "0.5", "--epsilon", "1", *WALK, "--decimals", "99"], "decimals"),
        (["-q", "0.5", "--rho", "-1"], "rho"),
        (["-q", "0.5", "--epsilon", "1", "--decimals", "99"], "decimals"),
        (
            ["-q", "0.5", "--epsilon", "20", "--delta", "1e-6", "--calibration", "classic", *WALK],
            "--calibration analytic",
        ),
        (["-q", "0.5", "--epsilon", "1", "--algorithm", "magic"], "algorithm"),
        (["--epsilon", "1"], "quantile"),
        (["-q", "x", "--epsilon", "1"], "--quantile must be a number"),
        (["-q", "0.5,x", "--epsilon", "1"], "--quantile must be a number"),
        (["-q", "0.5", "--epsilon", "x"], "must be a number"),
        (["-q", "0.5", "--epsilon", "1", "--bogus"], "There is no option --bogus"),
    ],
)
def test_command_line__ends_in_a_sentence_on_bad_options(options: list[str], word: str) -> None:
    said = refused("quantile", "-", *options, text="1\n2\n")
    assert word in said
    assert said.count("\n") == 1


def test_quantile_command__refuses_standard_input_that_is_no_number() -> None:
    message = refused("quantile", "-", "-q", 0.5, "--epsilon", 1, text="1\n2\nsecret\n")
    assert "Line 3" in message
    assert "secret" not in message
    assert "no rows" in refused("quantile", "-", "-q", 0.5, "--epsilon", 1, text="")
    assert "no items" in refused("quantile", "-", "-q", 0.5, "--epsilon", 1, *SEGMENTS, text="")
    assert "no items" in refused("watch", "-q", 0.5, "--epsilon", 1, "--every", 10, text="")


@pytest.mark.parametrize("options", [SEGMENTS, WALK])
def test_watch_command__releases_once_per_period_of_items(options: tuple[object, ...]) -> None:
    text = "".join(f"{k % 100}\n" for k in range(1_000))
    done = run("watch", "-q", 0.5, "-q", 0.9, "--epsilon", 1, "--every", 250, *options, text=text)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [int(row[0]) for row in rows] == [250, 500, 750, 1000]
    assert all(len(row) == 3 for row in rows)


@pytest.mark.parametrize("by", [(), ("--by", "--keys", "keys.txt")])
def test_watch_command__is_no_table(by: tuple[str, ...]) -> None:
    ask = ("watch", "-q", 0.5, "--epsilon", 1, "--every", 10, "--algorithm", "table", *by)
    assert "--algorithm table is for rows that can be held" in refused(*ask, text="1\n")


def test_watch_command__releases_what_is_left_when_the_input_ends() -> None:
    done = run("watch", "-q", 0.5, "--epsilon", 1, "--every", 100, *SEGMENTS, "--json", text="5\n" * 250)
    assert [json.loads(line)["items"] for line in done.stdout.splitlines()] == [100, 200, 250]


def test_watch_command__keeps_going_over_bad_lines_if_told_so() -> None:
    text = "5\n" * 60 + "oops\n" + "5\n" * 39
    assert "Line 61" in refused("watch", "-q", 0.5, "--epsilon", 1, "--every", 100, *SEGMENTS, text=text)
    done = run("watch", "-q", 0.5, "--epsilon", 1, "--every", 100, *SEGMENTS, "--nan-policy", "omit", text=text)
    assert done.stdout.startswith("100\t")


def test_watch_command__prints_what_was_due_before_a_bad_line() -> None:
    done = run(
        "watch", "-q", 0.5, "--epsilon", 1, "--every", 100, *SEGMENTS, text="5\n" * 230 + "secret\n" + "5\n" * 100
    )
    assert done.returncode == 2
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["100", "200"]
    assert "Line 231" in done.stderr
    assert "secret" not in done.stderr


def test_command_line__reports_output_that_cannot_be_written_in_a_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "plan", "--epsilon", "1"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "could not be written" in done.stderr


def test_command_line__works_on_a_terminal_that_knows_no_greek() -> None:
    done = run("plan", "--epsilon", 1, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr


def wait_until_idle(process: "subprocess.Popen[str]") -> None:
    """Until every thread of it has been waiting for half a second, however busy the machine is."""
    tasks, calm = Path(f"/proc/{process.pid}/task"), 0
    while calm < 5:
        time.sleep(0.1)
        try:
            states = {task.joinpath("stat").read_text().rpartition(")")[2].split()[0] for task in tasks.glob("*")}
        except OSError:  # a thread has just ended
            states = {"R"}
        calm = calm + 1 if states <= {"S"} else 0


def watching(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "watch", "-q", "0.5", "--epsilon", "1", *SEGMENTS, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    )


def test_watch_command__ends_cleanly_on_ctrl_c_after_the_last_full_period() -> None:
    """The stream stays open and silent meanwhile, as ``tail -f`` keeps it."""
    process = watching("--every", "100")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("7\n" * 250)
    process.stdin.flush()
    shown = [process.stdout.readline() for _ in range(2)]
    wait_until_idle(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    rest, errors = process.communicate(timeout=30)
    assert [line.split("\t")[0] for line in shown] == ["100", "200"]
    assert rest == ""
    told = [line for line in errors.splitlines() if not line.startswith("note: ")]  # noise may look like drift
    assert told == ["Stopped; 50 items after the last full period were not released."]


def test_watch_command__ends_on_a_bad_line_while_the_stream_stays_open() -> None:
    process = watching("--every", "100")
    assert process.stdin is not None
    process.stdin.write("7\nsecret\n")
    process.stdin.flush()
    assert process.wait(timeout=30) == 2
    _, errors = process.communicate(timeout=30)
    assert len(errors.splitlines()) == 1
    assert "Line 2" in errors


def test_watch_command__releases_by_the_clock_while_the_stream_is_silent() -> None:
    process = watching("--every", "300ms")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("7\n" * 30)
    process.stdin.flush()
    first, second = process.stdout.readline(), process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    process.communicate(timeout=30)
    assert first.startswith("30\t")
    assert second == first  # no new item: the same release again
    assert process.returncode == 0


def test_command_line__ends_without_an_error_when_its_reader_goes_away(parquet: Path) -> None:
    program = f"yes 5 | head -n 300000 | {' '.join(COMMAND)} watch -q 0.5 --epsilon 1 --every 10 | head -n 1"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split("\t")[1] == "10"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100000", Period(items=100_000)),
        ("100_000", Period(items=100_000)),
        ("10s", Period(seconds=10)),
        ("1.5m", Period(seconds=90)),
        ("250ms", Period(seconds=0.25)),
        ("1d", Period(seconds=86_400)),
    ],
)
def test_periods__are_read_as_people_write_them(text: str, expected: Period) -> None:
    assert Period.parse(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "ten", "5 parsecs", "1e3", "s"])
def test_periods__that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="--every"):
        Period.parse(text)


def test_plan_command__prints_every_guarantee() -> None:
    done = run("plan", "--epsilon", 1, "--beta", 0.05, env={**os.environ, "COLUMNS": "80"})
    for part in ("pure, Laplace", "5.991", "approx., Gaussian", "8.452", "approx., classic", "10.6", "zCDP, Gaussian"):
        assert part in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_plan_command__prints_json_and_says_where_classic_is_refused() -> None:
    rows = json.loads(run("plan", "--epsilon", 20, "--json", "--decimals", 3).stdout)["rows"]
    by_name = {row["guarantee"]: row for row in rows}
    assert "alpha" not in by_name["approx., classic"]
    assert by_name["pure, Laplace"]["alpha"] == pytest.approx(0.1 * np.log(20) / 1000)
    assert "refused" in run("plan", "--epsilon", 20).stdout
    assert "epsilon" in refused("plan", "--epsilon", -1)
    assert "max-items-per-person" in refused("plan", "--epsilon", 1, "--max-items-per-person", 0)


def test_demo_command__draws_its_picture(tmp_path: Path) -> None:
    done = run("demo", "--rows", 20_000, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "/search" in done.stdout
    assert "too few rows" in done.stdout
    assert (tmp_path / "out" / "requests.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "requests.csv").read_text().startswith('"time","endpoint","ms"\n')
    assert "--rows" in refused("demo", "--rows", 3)
    (tmp_path / "file").write_text("")
    assert "--output" in refused("demo", "--rows", 10_000, "--output", tmp_path / "file")


def test_command_line__has_help_and_a_version() -> None:
    assert run("--version").stdout.startswith("dpfrugal ")
    for command in ([], ["quantile"], ["describe"], ["watch"], ["plan"], ["demo"], ["ledger"], ["ledger", "add"]):
        assert "Usage" in run(*command, "--help").stdout


def test_command_line__refuses_an_option_that_is_given_twice() -> None:
    done = run_here("plan", "--epsilon", 1, "--epsilon", 2)
    assert done.returncode == 2
    assert done.stderr == "dpfrugal: --epsilon was given 2 times, and takes one value; see dpfrugal plan --help.\n"
    assert run_here("plan", "--epsilon", 1).returncode == 0
