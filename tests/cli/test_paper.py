"""``dpfrugal paper``: resumed after Ctrl-C, and refused in a sentence before anything is written."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpfrugal.cli.paper import paper
from dpfrugal.errors import ParameterError
from dpfrugal.paper import resources
from dpfrugal.paper.runner import identity
from dpfrugal.paper.settings import Scale
from tests.paper.small_runs import command, rows_of
from tests.support.command_line import interruptible


def started(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "dpfrugal", "paper", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    )


def interrupted(path: Path, *arguments: object) -> str:
    """What the command says when Ctrl-C comes after it has added rows."""
    before = len(path.read_bytes().splitlines()) if path.exists() else 0
    process = started(*arguments)
    while process.poll() is None and not (path.exists() and len(path.read_bytes().splitlines()) > before + 5):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert path.read_bytes().endswith(b"\n")
    return said


def test_paper_command__leaves_whole_rows_on_ctrl_c_and_goes_on(tmp_path: Path) -> None:
    """The run is made of two billion items, so that it is still going on when the interrupt comes."""
    arguments = ("--figure", "1c", "--items", 200_000, "--repetitions", 1000, "--jobs", 2, "--output", tmp_path)
    path = tmp_path / "results" / "1c.csv"
    said = interrupted(path, *arguments)
    kept = path.read_bytes()
    rows = len(kept.splitlines()) - 1
    assert f"Stopped; {rows:,} of 8,000 rows are in" in said
    assert "The same command continues from there." in said
    said = interrupted(path, *arguments)
    assert f"{rows:,} of 8,000 rows exist; the others follow." in said
    assert path.read_bytes().startswith(kept)
    names = [tuple(line.split(",")[:10]) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(set(names)) == len(names) > rows + 1
    assert not (tmp_path / "report.html").exists()


def refused(*arguments: object) -> str:
    process = started(*arguments)
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 2, complained
    assert said == ""
    assert "Traceback" not in complained
    return complained


def test_paper_command__ends_in_one_sentence_on_bad_input(tmp_path: Path) -> None:
    complained = refused("--figure", "5", "--output", tmp_path / "new")
    assert complained.startswith("dpfrugal: --figure must be one of 1a, 1b, 1c, 1d, 2a")
    assert complained.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": 99}, "--items must be between 100 and"),
        ({"items": 10**10}, "--items must be between 100 and"),
        ({"repetitions": 0}, "--repetitions must be between 1 and"),
        ({"jobs": 0}, "--jobs must be between 1 and"),
        ({"quick": True, "items": 1000}, "either --quick or --items"),
        ({"figure": ["x"]}, "--figure must be one of"),
    ],
)
def test_paper_command__refuses_bad_options_before_anything_is_written(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        paper(**{"output": tmp_path / "new", "repetitions": 1, **options})
    assert not (tmp_path / "new").exists()


def test_paper_command__refuses_results_of_other_settings(tmp_path: Path) -> None:
    small = Scale(items=500, repetitions=1)
    command(tmp_path, "1a", scale=small)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    with pytest.raises(ParameterError, match=r"items 500 there, 600 here.*--fresh"):
        command(tmp_path, "1a", scale=Scale(items=600, repetitions=1))
    with pytest.raises(ParameterError, match=r"repetitions 1 there, 2 here.*--fresh"):
        command(tmp_path, "1b", scale=Scale(items=500, repetitions=2))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    command(tmp_path, "1a", scale=Scale(items=600, repetitions=1), fresh=True)
    assert identity(Scale(items=600, repetitions=1))["items"] == 600
    assert {row["items"] for row in rows_of(tmp_path / "results", "1a")} == {"600"}


def test_paper_command__stops_before_the_first_row_with_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "free_memory_mib", lambda: 100)
    with pytest.raises(ParameterError, match="MiB of memory are needed"):
        command(tmp_path, "1a")
    assert not list(tmp_path.rglob("*.csv"))
    (tmp_path / "results" / "1a.csv").write_bytes(b"from an earlier run\n")
    with pytest.raises(ParameterError, match="MiB of memory are needed"):
        command(tmp_path, "1a", fresh=True)
    assert (tmp_path / "results" / "1a.csv").read_bytes() == b"from an earlier run\n"


def test_paper_command__refuses_a_damaged_file_of_another_figure_before_it_runs(tmp_path: Path) -> None:
    small = Scale(items=500, repetitions=1)
    command(tmp_path, "1a", scale=small)
    (tmp_path / "results" / "2a.csv").write_bytes(b"something else\n1\n")
    with pytest.raises(ParameterError, match=r"2a\.csv is not a results file of this version"):
        command(tmp_path, "1b", scale=small)
    assert not (tmp_path / "results" / "1b.csv").exists()


def test_paper_command__asks_for_matplotlib_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dpfrugal.cli.paper"], "find_spec", lambda _: None)
    with pytest.raises(ParameterError, match=r"pip install 'dpfrugal\[paper\]'"):
        command(tmp_path / "new", "1a")
    assert not (tmp_path / "new").exists()
