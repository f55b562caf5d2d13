"""The paper's experiments: what their rows say, that they are resumed at every row, and what the report shows."""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dpfrugal.cli.paper import paper
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.paper import exact_quantiles, resources, throughput
from dpfrugal.paper.accuracy import alphas
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, CONVENTIONS, ON_GRID, SENSITIVITIES, mean_noise, noise_steps
from dpfrugal.paper.results import Row
from dpfrugal.paper.runner import Run, Watcher, identity, results_of
from dpfrugal.paper.settings import ALGORITHMS, FIGURES, PANELS, Algorithm, Scale, chosen_figures, default_setting
from dpfrugal.paper.summary import points_of
from dpfrugal.privacy import noise
from tests.support.command_line import interruptible

TINY = Scale(items=2000, repetitions=2)
SILENT = Watcher(lambda *_: None, lambda *_: None, lambda *_: None)


def rows_of(folder: Path, figure: str) -> list[Row]:
    return sorted(results_of(folder, figure), key=lambda row: tuple(row.values()))


def run(folder: Path, *figures: str, scale: Scale = TINY, jobs: int = 2) -> Run:
    folder.mkdir(exist_ok=True)
    made = Run(folder, list(figures), scale, jobs)
    made.go(SILENT)
    return made


def without_noise(values: Sequence[int], guarantee: object, sensitivity: object) -> list[int]:
    return list(values)


# Settings


def test_settings__have_the_grids_of_table_2() -> None:
    assert {name: panel.values for name, panel in PANELS.items()} == {
        "1a": (0.1, 0.5, 1.0, 2.0),
        "2a": (0.01, 0.04, 0.08, 0.1),
        "3a": (0.1, 0.5, 1.0, 5.0),
        **dict.fromkeys(("1b", "2b", "3b"), (0.1, 0.3, 0.5, 0.99)),
        **dict.fromkeys(("1c", "2c", "3c"), (10, 50, 75, 100)),
    }
    assert Scale().lengths == [10_000_000, 50_000_000, 75_000_000, 100_000_000]
    assert Scale().repetitions == 10
    defaults = {algorithm: default_setting(algorithm, "D5", 10) for algorithm in ALGORITHMS}
    assert [(s.quantile, s.epsilon, s.delta, s.rho) for s in defaults.values()] == [
        (0.99, 1.0, None, None),
        (0.99, 1.0, 0.04, None),
        (0.99, None, None, 1.0),
    ]


def test_settings__choose_figures_by_name_or_number() -> None:
    assert chosen_figures([]) == list(FIGURES)
    assert chosen_figures(["4", "1a", "1a"]) == ["1a", "4"]
    assert chosen_figures(["1"]) == ["1a", "1b", "1c", "1d"]
    for unknown in ("9z", "", "a", "1e", "11"):
        with pytest.raises(ParameterError, match=r"one of 1a, 1b, 1c, 1d, 2a, .*, 4, accuracy, start"):
            chosen_figures([unknown])


@pytest.mark.parametrize(
    ("algorithm", "formula", "two_sided"),
    [("L", 6.4378, 6.4378), ("G", 9.1867, 10.7770), ("ρ", 2.4758, 2.9044)],
)
def test_conventions__have_alpha_to_four_digits(algorithm: Algorithm, formula: float, two_sided: float) -> None:
    found = alphas(algorithm)
    assert (round(found.formula, 4), round(found.two_sided, 4)) == (formula, two_sided)
    assert found.printed == int(formula * 10) / 10  # the paper cuts its digits off


# Conventions


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_conventions__publish_a_thousand_times_the_noise_on_the_grid(algorithm: Algorithm) -> None:
    guarantee = default_setting(algorithm, "D5", 10).guarantee
    published, grid = (guarantee.noise_scale(SENSITIVITIES[convention]) for convention in CONVENTIONS)
    assert published == pytest.approx(1000 * grid)
    assert mean_noise(guarantee, AS_PUBLISHED) == pytest.approx(1000 * mean_noise(guarantee, ON_GRID))


def test_conventions__publish_laplace_noise_in_data_units() -> None:
    """|noise| has mean 2 and deviation 2: 4000 draws are off by 0.3 (nine deviations) less than once in 10^9 runs."""
    guarantee = default_setting("L", "D5", 10).guarantee
    means = {c: statistics.fmean(abs(step) / 1000 for step in noise_steps(4000, guarantee, c)) for c in CONVENTIONS}
    assert abs(means[AS_PUBLISHED] - 2) < 0.3
    assert abs(means[ON_GRID] - 2) > 0.3


def test_conventions__walk_the_same_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_noise", without_noise)
    run(tmp_path, "1b", "1c", "4")
    for figure in ("1b", "1c", "4"):
        released: dict[tuple[str, ...], set[str]] = {}
        for row in rows_of(tmp_path, figure):
            if row["algorithm"] != "PrivateQuantile":
                key = tuple(row[column] for column in ("dataset", "items", "quantile", "repetition"))
                released.setdefault(key, set()).add(row["released"])
        assert all(len(values) == 1 for values in released.values())
        for (name, items, quantile, repetition), (value,) in released.items():
            seed = DATASETS[name].seed(int(repetition))
            walk = Frugal1U(float(quantile), decimals=3, coin_seed=seed)
            for chunk in DATASETS[name].stream(seed, [int(items)]):
                walk.update_many(chunk)
            assert float(value) == walk.estimate


# Rows


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whole run by the command, with its report."""
    output = tmp_path_factory.mktemp("paper")
    command(output)
    return output


def command(output: Path, *figures: str, fresh: bool = False, scale: Scale = TINY, jobs: int = 2) -> None:
    chosen: dict[str, Any] = {"items": scale.items, "repetitions": scale.repetitions, "jobs": jobs}
    paper(figure=list(figures), output=output, fresh=fresh, **chosen)


def test_runner__has_every_row_once(everything: Path) -> None:
    counts = {figure: len(rows_of(everything / "results", figure)) for figure in FIGURES}
    expected: dict[str, int] = dict.fromkeys(PANELS, 4 * 2 * 2)
    assert counts == {**expected, "1d": 8, "4": 8 * 7 * 2, "accuracy": 3 * 5 * 2, "start": 12}


def test_runner__has_rows_with_the_exact_quantile_and_the_error(everything: Path) -> None:
    for figure in (*PANELS, "4"):
        for row in rows_of(everything / "results", figure):
            lower, upper, released = (float(row[name]) for name in ("exact_lower", "exact_upper", "released"))
            stream = DATASETS[row["dataset"]].stream(int(row["seed"]), [int(row["items"])])
            items = sorted(x for chunk in stream for x in chunk.tolist())
            ranks = exact_quantiles.ranks(float(row["quantile"]), len(items))
            assert (lower, upper) == tuple(items[rank - 1] for rank in ranks)
            assert float(row["relative_error"]) == abs(released - lower) / abs(lower)


def test_runner__has_the_same_seeds_across_algorithms(everything: Path) -> None:
    seeds: dict[tuple[str, str], set[str]] = {}
    for figure in (*PANELS, "1d", "4", "start"):
        for row in rows_of(everything / "results", figure):
            seeds.setdefault((row.get("dataset", "D5"), row["repetition"]), set()).add(row["seed"])
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set().union(*seeds.values())) == len(seeds) == 16


def test_starts__at_the_first_item_are_not_private(everything: Path) -> None:
    apart: dict[str, list[int]] = {}
    for row in rows_of(everything / "results", "start"):
        apart.setdefault(row["start"], []).append(int(row["steps_apart"]))
    assert max(apart["a public constant"]) <= 2
    assert min(apart["the first item"]) > 10**8


def test_throughput__is_a_ratio(everything: Path) -> None:
    for row in rows_of(everything / "results", "1d"):
        assert float(row["ratio"]) == pytest.approx(float(row["updates_per_second"]) / float(row["sums_per_second"]))
        assert row["machine"] == resources.machine()


@pytest.mark.parametrize("batch", [1 << 18, 300_000, 700_000, 1 << 20])
def test_throughput__is_timed_over_every_item(batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not batches, chunks and stream lengths fit into each other."""
    summed: list[int] = []

    def counted(act: Any, items: Any) -> float:
        summed.append(items.size)
        act(items)
        return 1.0

    monkeypatch.setattr(throughput, "BATCH", batch)
    monkeypatch.setattr(throughput, "seconds_of", counted)
    run(tmp_path, "1d", scale=Scale(items=90_001, repetitions=1))
    assert sum(summed) == 3 * 900_010  # summed, walked, summed again
    assert len(rows_of(tmp_path, "1d")) == 4


def test_runner__seeds_items_and_coins_and_no_noise(tmp_path: Path, everything: Path) -> None:
    """128 released values of scale 2000 steps agree by chance with a probability far below 10^-300."""
    run(tmp_path, "4", jobs=1)
    one, other = rows_of(tmp_path, "4"), rows_of(everything / "results", "4")
    for name in ("seed", "exact_lower", "exact_upper"):
        assert [row[name] for row in one] == [row[name] for row in other]
    assert [row["released"] for row in one] != [row["released"] for row in other]


def test_runner__is_not_misled_by_a_first_chunk(
    tmp_path: Path, everything: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_quantiles.Bracket, "found", lambda *_: None)
    small = Scale(items=TINY.items, repetitions=1)
    run(tmp_path, "1a", scale=small)
    known = {row["seed"]: row["exact_lower"] for row in rows_of(everything / "results", "1a")}
    assert {row["exact_lower"] for row in rows_of(tmp_path, "1a")} == {known["15"]}


def test_accuracy__knows_whether_the_walk_can_have_converged(everything: Path) -> None:
    points = points_of(rows_of(everything / "results", "4"))
    assert not any(point.can_converge for point in points if point.convention in CONVENTIONS)  # 2000 items from 0
    assert all(point.can_converge for point in points if point.convention not in CONVENTIONS)
    assert all(point.standard_error <= point.mean for point in points)


# Report


def test_report__is_a_self_contained_page(everything: Path) -> None:
    page = (everything / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == page.count('src="data:image/svg+xml;base64,') == 6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "cannot be seeded" in page
    assert resources.machine() in page


def test_report__shows_every_figure_with_a_verdict_in_markdown(everything: Path) -> None:
    text = (everything / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (everything / target).exists(), target
    for figure in (*PANELS, "1d", "4"):
        assert re.search(rf"^> \*\*{figure}\.\*\* .*p [=<] ", text, flags=re.MULTILINE), figure
        assert f"\n**{figure}, " in text, figure
    for number in ("6.4378", "9.1867", "10.7770", "2.4758", "2.9044"):
        assert number in text
    assert os.uname().nodename not in text
    assert str(everything) not in text


def test_figures__are_pictures(everything: Path) -> None:
    for name in ("figure1", "figure2", "figure3", "figure4", "accuracy", "start"):
        assert (everything / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (everything / f"{name}.svg").read_bytes()[:1000]


def test_runner__does_not_run_a_finished_figure_again_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight released values of scale 2000 steps and more agree by chance less than once in 10^24 runs."""
    small = Scale(items=500, repetitions=1)
    command(tmp_path, "1a", "2a", scale=small)
    paths = [tmp_path / "results" / name for name in ("1a.csv", "runs.csv", "2a.csv")]
    before = [path.read_bytes() for path in paths]
    capsys.readouterr()
    command(tmp_path, "1a", scale=small)
    assert "All 8 rows exist; --fresh runs them again." in capsys.readouterr().err
    assert [path.read_bytes() for path in paths] == before
    command(tmp_path, "1a", scale=small, fresh=True)
    after = [path.read_bytes() for path in paths]
    assert after[0] != before[0]
    assert after[1].startswith(before[1])
    assert after[2] == before[2]


def test_report__of_one_figure_has_one_figure(tmp_path: Path) -> None:
    command(tmp_path, "2a", scale=Scale(items=500, repetitions=1))
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "## Figure 2" in text
    assert "## Figure 1" not in text
    assert "2b" not in text


# Interrupts


class EnoughError(Exception):
    """What stops a run in the middle."""


def test_runner__goes_on_with_an_interrupted_figure_where_it_stopped(tmp_path: Path) -> None:
    done = 0

    def stop_soon(amount: int) -> None:
        nonlocal done
        done += amount
        if done > 60_000:
            raise EnoughError

    scale = Scale(items=4000, repetitions=3)
    tmp_path.mkdir(exist_ok=True)
    first = Run(tmp_path, ["1c", "2c"], scale, 2)
    with pytest.raises(EnoughError):
        first.go(Watcher(lambda *_: None, stop_soon, lambda *_: None))
    kept = (tmp_path / "1c.csv").read_bytes()
    assert kept.endswith(b"\n")
    assert 0 < first.rows_missing < first.rows
    again = Run(tmp_path, ["1c", "2c"], scale, 2)
    assert again.rows_missing == first.rows_missing
    again.go(SILENT)
    assert (tmp_path / "1c.csv").read_bytes().startswith(kept)
    for figure in ("1c", "2c"):
        assert len(rows_of(tmp_path, figure)) == 4 * 2 * 3
    assert Run(tmp_path, ["1c", "2c"], scale, 2).work == 0
    assert len((tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines()) == 3


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


# Bad input


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
