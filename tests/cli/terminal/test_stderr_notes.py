"""What a person is told beside the numbers, from public values only."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

import dpfrugal as dpf
from dpfrugal.cli import ledger as ledger_command
from dpfrugal.cli.estimator_from_options import record, shown_values
from dpfrugal.cli.options import EstimatorOptions
from dpfrugal.cli.terminal.stderr_notes import doubts, header, row
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.releases import SegmentRelease, WalkRelease
from dpfrugal.privacy.guarantees import Sensitivity
from tests.support.command_line import COMMAND, run

ONE = dpf.PureDP(epsilon=1.0)


SEGMENTS = ("--algorithm", "private-quantile")


def walked(q: float, value: float, items: int) -> WalkRelease:
    return WalkRelease(
        values=(value,), quantiles=(q,), guarantee=ONE, items=items, grid=Grid(0), sensitivity=Sensitivity.of(2)
    )


@pytest.mark.parametrize(
    ("q", "value", "items", "arrived"),
    [
        (0.5, 1000.0, 1_000_000, True),
        (0.5, 1000.0, 5_000, False),
        (0.99, 1000.0, 400_000, False),  # its last steps are made at less than 0.01 an item
        (0.99, 1000.0, 1_000_000, True),
        (0.99, -100.0, 10_000, False),  # downwards it never moves faster than that
        (0.01, 100.0, 10_000, False),
        (0.01, 100.0, 100_000, True),
    ],
)
def test_terminal__says_that_a_walk_may_not_have_converged(q: float, value: float, items: int, arrived: bool) -> None:
    assert ["may not have converged" in doubt for doubt in doubts(walked(q, value, items), 0.0)] == [True] * (
        not arrived
    )


def test_terminal__says_instead_that_a_walk_is_drowned_in_noise() -> None:
    assert "noise is as large" in doubts(walked(0.5, 20.0, 30), 0.0)[0]


def test_terminal__knows_that_a_high_quantile_walks_down_slowly() -> None:
    """The rule of thumb that looks at the number of steps alone would be content: 100 steps in 10,000 items."""
    walk = dpf.DPFrugal1U(0.99, dpf.PureDP(epsilon=100.0), start=1000.0)
    walk.update_many([50.0] * 10_000)
    release = walk.release()
    assert release.value > 700  # 100 steps in the mean; 300 are 20 standard deviations more
    assert len(doubts(release, 1000.0)) == 1


@pytest.mark.parametrize("stable", [True, False])
def test_terminal__aligns_rows_and_says_when_segments_disagree(stable: bool) -> None:
    release = SegmentRelease(
        values=(50.0, 75.25),
        quantiles=(0.5, 0.9),
        guarantee=ONE,
        items=1_000,
        stable=stable,
        bounds=lambda confidence: ((49.5, 50.5), (-float("inf"), 80.0)),
    )
    above, line = header(release), row(release, 1_000, ["50", "75.25"])
    assert line.index("[49.5, 50.5]") == above.index("[95%]")
    assert line.index("[-inf, 80]") == above.rindex("[95%]")
    assert line.endswith("not stable") is not stable
    assert len(doubts(release, 0.0)) == (not stable)


@pytest.mark.parametrize(("items", "helps"), [(300, True), (300_000, False)])
def test_terminal__advises_a_weaker_guarantee_only_where_that_would_help(items: int, helps: bool) -> None:
    release = SegmentRelease(
        values=(16.0,),
        quantiles=(0.9,),
        guarantee=ONE,
        items=items,
        stable=True,
        bounds=lambda confidence: ((-float("inf"), float("inf")),),
    )
    (doubt,) = doubts(release, 0.0)
    assert ("weaker guarantee" in doubt) is helps
    assert shown_values(release, EstimatorOptions([[0.9]], algorithm="private-quantile")) == [""]  # type: ignore[list-item]
    assert record(release)["value"] is None


def shown_on_a_terminal(*arguments: str, text: str) -> str:
    """What a terminal shows that only standard output is connected to."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.DEVNULL, text=True
    )
    os.close(theirs)
    process.communicate(text, timeout=120)
    assert process.returncode == 0
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        parts = []
        try:
            while part := terminal.read(4096):
                parts.append(part)
        except OSError:  # how Linux says that the other end is closed
            pass
    return b"".join(parts).decode()


def test_terminal__shows_intervals_in_watch_and_tabs_in_a_pipe() -> None:
    arguments = ("watch", "-q", "0.5", "--epsilon", "1", "--every", "1000", *SEGMENTS)
    text = "\n".join(str(number * 7919 % 1000) for number in range(2000))
    lines = shown_on_a_terminal(*arguments, text=text).splitlines()
    assert lines[0].split() == ["items", "q=0.5", "[95%]"]
    assert [line.split()[0] for line in lines[1:]] == ["1,000", "2,000"]
    assert all("[" in line and "]" in line for line in lines[1:])
    plain = run(*arguments, text=text).stdout.splitlines()
    assert [len(line.split("\t")) for line in plain] == [2, 2]


def test_terminal__shows_a_table_of_values_and_intervals() -> None:
    text = "\n".join(str(number * 7919 % 1000) for number in range(20_000))
    shown = shown_on_a_terminal("quantile", "-", "-q", "0.5,0.9999", "--epsilon", "1", text=text)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert [cell.strip() for cell in lines[1].split("┃")[1:-1]] == ["quantile", "value", "95% interval"]
    assert [line.split("│")[1].strip() for line in lines[3:5]] == ["0.5", "0.9999"]
    assert " to " in lines[3]
    assert "too few rows" in lines[4]


def test_terminal__shows_what_a_watch_goes_on_from(tmp_path: Path) -> None:
    arguments = ("watch", "-q", "0.5", "--epsilon", "1", "--every", "1000", *SEGMENTS, "--json", "--accept-replay-risk")
    checkpoint = ("--checkpoint", tmp_path / "c.private")
    text = "\n".join(str(number * 7919 % 1000) for number in range(1500))
    first, second = (run(*arguments, *checkpoint, text=text) for _ in range(2))
    assert [json.loads(line)["went_on_at"] for line in first.stdout.splitlines()] == [None, None]
    assert {json.loads(line)["went_on_at"] for line in second.stdout.splitlines()} == {1500}
    assert "Continuing from" not in first.stderr
    assert "1,500 items." in second.stderr


def test_terminal__keeps_every_row_of_a_ledger_to_one_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "b.db"
    totals: dict[str, dpf.Guarantee] = {
        "a": dpf.PureDP(epsilon=3.0),
        "b": dpf.ZCDP(rho=0.5),
        "c": dpf.ApproxDP(epsilon=2.0, delta=1e-5),
    }
    for name, total in totals.items():
        ledger = dpf.Ledger(path, total=total)
        ledger.open(name, total)
        ledger.spend(name, dpf.ZCDP(rho=0.1) if name == "b" else dpf.PureDP(epsilon=0.5))
    ledger_command.show(path, None, 1e-6, False)
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│ ")]
    found = {cells[1].strip(): [cell.strip() for cell in cells[4:7]] for cells in rows if cells[1].strip()}
    assert found["a"][:2] == ["ε=0.5", "ε=2.5"]
    assert found["b"][:2] == ["ρ=0.1", "ρ=0.4"]
    assert found["c"][:2] == ["ε=0.5", "ε=1.5"]
    assert float(found["b"][2]) == pytest.approx(dpf.ZCDP(rho=0.1).to_approx(1e-6).epsilon, rel=1e-3)
