"""Running the experiments: every row once, resumed at every row, seeded but for the noise."""

from pathlib import Path

import pytest

from dpfrugal.paper import exact_quantiles
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.runner import Run, Watcher
from dpfrugal.paper.settings import FIGURES, PANELS, Scale
from tests.paper.small_runs import SILENT, TINY, command, rows_of, run


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
