"""The first sections of a report: what was run, and the paper's tables as the settings have them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpfrugal.paper import settings
from dpfrugal.paper.cpu_time import PARTS
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.report_preface import (
    PART_NAMES,
    SHORT_STREAMS,
    paper_tables,
    preface,
    run_sentences,
    split,
    split_table,
)
from dpfrugal.paper.runner import costs_of, runs_in
from dpfrugal.paper.settings import Scale


def costs(folder: Path, figure: str, **seconds: float) -> None:
    spent = {f"{part}_seconds": seconds.get(part, 0.0) for part in PARTS}
    costs_of(folder, figure).append({"figure": figure, "dataset": "D5", "repetition": 1, "items": 1_000, **spent})


def test_split__adds_up_the_processor_time_of_all_figures(tmp_path: Path) -> None:
    costs(tmp_path, "1a", generation=1.0, noise=0.5)
    costs(tmp_path, "4", generation=0.5)
    assert split(tmp_path) == (2_000, {"generation": 1.5, "exact": 0.0, "estimators": 0.0, "noise": 0.5})
    table = split_table(tmp_path)
    assert [row[0] for row in table.rows] == list(PART_NAMES.values())
    assert table.rows[0][1:] == ("1.5", "75%")
    assert "2,000 items" in table.title


def test_split__of_nothing_is_nothing(tmp_path: Path) -> None:
    assert {row[2] for row in split_table(tmp_path).rows} == {"0%"}
    assert set(PART_NAMES) == set(PARTS)


def test_runs__are_a_sentence_each(tmp_path: Path) -> None:
    for day in (1, 2):
        begun = datetime(2026, 3, day, 9, 5, tzinfo=UTC).isoformat(timespec="milliseconds")
        made = {"seconds": 61.25, "rows": day, "jobs": 2, "peak_mib": 1_234, "machine": "a machine"}
        runs_in(tmp_path).append({"begun": begun, **made})
    first, second = run_sentences(tmp_path)
    assert first == "1 March 2026, 09:05 UTC: 1 row in 61.2 s with 2 jobs on a machine; at most 1,234 MiB resident."
    assert "2 rows in" in second


@pytest.mark.parametrize(("items", "said", "short"), [(10**7, "the paper's scale", False), (10**5, "0.01 of", True)])
def test_preface__says_at_what_scale(items: int, said: str, short: bool, tmp_path: Path) -> None:
    opening, run, tables = preface(tmp_path, Scale(items=items, repetitions=1), {})
    assert said in opening.text[0]
    assert (SHORT_STREAMS in opening.text) is short
    assert "1 repetition." in opening.text[0]
    assert any("cannot be seeded" in text for text in opening.text)
    assert (run.title, tables.title) == ("The run", "The paper's tables")


def test_tables__are_the_settings() -> None:
    one, two = paper_tables(Scale()).tables
    assert [row[0] for row in one.rows] == list(DATASETS)
    values = {row[0]: row[1] for row in two.rows}
    assert values["ε"] == ", ".join(f"{epsilon:g}" for epsilon in settings.EPSILONS)
    assert values["stream length"] == "10M, 50M, 75M, 100M"
