"""Every numeric column at once: which ones there are, how the guarantee is divided, and when it is spent."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.choices.group_answers import noisy_rows
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.describe import QUANTILES, share_of
from dpfrugal.estimators.table.sources.table_schemas import numeric_columns
from dpfrugal.privacy.zcdp_conversions import epsilon_of_zcdp
from tests.support.command_line import run_here as run

ONE = dpf.PureDP(epsilon=1.0)
ROWS = 30_000
TABLE = pa.table(
    {
        "age": np.arange(ROWS) % 101,
        "name": ["secret"] * ROWS,
        "height": np.arange(ROWS) % 1001 / 8,
        "alive": [True] * ROWS,
        "born": pa.array(np.datetime64("1990-01-01") + np.arange(ROWS) % 1001),
        "who": np.arange(ROWS) // 2,
    }
)
NUMERIC = ["age", "height", "born", "who"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("describe")
    pq.write_table(TABLE, folder / "people.parquet")
    pa.csv.write_csv(TABLE, folder / "people.csv")
    with pa.ipc.new_stream(folder / "people.arrows", TABLE.schema) as writer:
        writer.write_table(TABLE)
    return folder


@pytest.mark.parametrize(
    "made",
    [
        lambda _: TABLE,
        lambda _: TABLE.to_reader(),
        lambda _: ds.dataset(TABLE),
        lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
        lambda _: pl.from_arrow(TABLE),
        lambda _: pl.from_arrow(TABLE).lazy(),
        lambda folder: folder / "people.parquet",
        lambda folder: str(folder / "*.parquet"),
        lambda folder: folder / "people.arrows",
    ],
)
def test_describe__finds_the_numeric_columns_of_whatever_has_types(folder: Path, made: Any) -> None:
    found = dpf.describe(made(folder), ONE)
    assert list(found.columns) == NUMERIC
    assert found["age"].quantiles == QUANTILES
    for q, value in zip(QUANTILES, found["age"].values, strict=True):
        assert abs(value - 100 * q) <= 4  # 1,000 rows: a choice is that far off with probability e^-20
    assert str(found["born"].values[2]).startswith("1991")


def test_describe__looks_at_no_row_to_find_columns() -> None:
    """A column of Python objects and one of text that looks like numbers state no type of numbers."""
    frame = pd.DataFrame({"x": [1, 2], "o": np.array([1, 2], dtype=object), "t": ["1", "2"], "b": [True, False]})
    assert numeric_columns(frame) == ["x"]


def test_describe__asks_for_the_names_of_fields_of_json_lines(tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text('{"age": 1}\n')
    with pytest.raises(dpf.ParameterError, match="columns must name those to describe"):
        dpf.describe(tmp_path / "people.jsonl", ONE)


def test_describe__of_a_csv_file_shows_the_columns_with_enough_numbers(folder: Path) -> None:
    """Every column has its part, whatever its cells hold, so one cell more or less decides nothing but by noise."""
    found = dpf.describe(folder / "people.csv", ONE)
    assert list(found.columns) == ["age", "height", "who"]
    assert set(found.left_out) == set(TABLE.column_names) - set(found.columns)
    assert found.share.size <= ONE.size / len(TABLE.column_names)
    assert found["age"].shares == {"values": 0.86, "rows": 0.1, "pilot": 0.04}
    assert abs(found["age"].values[2] - 50) <= 4
    assert f"for each of {len(TABLE.column_names)} columns" in found.split
    named = dpf.describe(folder / "people.csv", ONE, columns=["height", "age"])
    assert (list(named.columns), named.left_out) == (["height", "age"], ())


def test_describe__of_a_csv_file_leaves_out_what_is_no_number_and_says_which_quantiles_have_too_few(
    tmp_path: Path,
) -> None:
    """40 numbers among 1,000 cells: enough for a median, not for the outer quantiles. The noise is off by 1 at most."""
    cells = ["4.5" if at % 25 == 0 else "none" for at in range(1000)]
    (tmp_path / "cells.csv").write_text("\n".join(["x,y", *(f"{cell},a" for cell in cells)]))
    found = dpf.describe(tmp_path / "cells.csv", dpf.PureDP(epsilon=400.0), quantiles=[0.5, 0.999])
    assert found.left_out == ("y",)
    assert found["x"].values[0] == 4.5
    assert found["x"].reasons[0] is None
    assert "there are about 40" in str(found["x"].reasons[1])
    assert found.to_dict()["left_out"] == ["y"]


def test_describe__of_a_csv_file_pays_for_the_noisy_numbers(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The slope of the noise is what a tenth of the column's part allows; a plan without them has no noise to draw."""
    asked = Asked((Fraction(1, 2),), dpf.PureDP(epsilon=1.0), counts=True)
    assert plan_of(asked).counts_slope == Fraction(1, 10)
    assert plan_of(asked).slope == Fraction(9, 40)
    sizes = np.array([1000] * 4000)
    moved = noisy_rows(sizes, plan_of(asked))
    assert moved is not None
    # The mean of |k| of discrete Laplace noise of ε = 1/10 is 10 ± 0.16 (4,000 draws); ε = 1 would have 0.85.
    assert abs(np.abs(moved - 1000).mean() - 9.98) < 1.0


@pytest.mark.parametrize("guarantee", [dpf.PureDP(epsilon=0.1), dpf.ZCDP(rho=0.7), ONE])
@pytest.mark.parametrize("parts", [2, 3, 7, 49])
def test_shares__never_add_up_to_more_than_the_whole(guarantee: dpf.Guarantee, parts: int) -> None:
    share = share_of(Asked((Fraction(1, 2),), guarantee), parts)
    assert type(share) is type(guarantee)
    assert Fraction(share.size) * parts <= Fraction(guarantee.size)
    assert share.size * parts == pytest.approx(guarantee.size)


@pytest.mark.parametrize("parts", [12, 40])
def test_shares__of_epsilon_and_delta_compose_to_it_and_beat_smaller_ones(parts: int) -> None:
    asked = Asked(tuple(Fraction(repr(q)) for q in QUANTILES), dpf.ApproxDP(epsilon=1.0, delta=1e-6))
    share = share_of(asked, parts)
    assert share.implied_rho is not None
    assert epsilon_of_zcdp(float(share.implied_rho) * parts, 1e-6) <= 1.0
    pure = plan_of(Asked(asked.quantiles, dpf.PureDP(epsilon=1 / parts)))
    assert max(plan_of(Asked(asked.quantiles, share)).errors) < max(pure.errors)
    assert share_of(asked, 2) == dpf.PureDP(epsilon=0.5), "two choices: ε alone is worth more"
    few = Asked(asked.quantiles, dpf.ApproxDP(epsilon=1.0, delta=1e-300))
    assert share_of(few, 2) == dpf.PureDP(epsilon=0.5), "such a δ has little room: ε alone is worth more"


def test_describe__spends_once_and_only_after_every_column_was_read(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "b.db", total=ONE)
    ledger.open("people", ONE)
    budget: dict[str, Any] = {"ledger": ledger, "dataset": "people"}
    holes = TABLE.append_column("hole", pa.array([None, *range(1, ROWS)], pa.int64()))
    with pytest.raises(dpf.ItemError, match="hole: The data has NaN or null rows"):
        dpf.describe(holes, ONE, **budget)
    with pytest.raises(dpf.TableError, match="no column 'nope'"):
        dpf.describe(TABLE, ONE, columns=["age", "nope"], **budget)
    assert not ledger.dataset("people").spends
    dpf.describe(holes, ONE, nan_policy="omit", **budget)
    (spend,) = ledger.dataset("people").spends
    assert (spend.by, spend.guarantee) == ("describe", ONE)
    with pytest.raises(dpf.BudgetExceeded):
        dpf.describe(TABLE, ONE, **budget)


def test_describe__counts_at_most_so_many_rows_of_a_person() -> None:
    found = dpf.describe(TABLE, dpf.PureDP(epsilon=8.0), person="who", max_items_per_person=1, intervals=True)
    assert list(found.columns) == NUMERIC[:-1], "ids of persons are not described"
    assert found["age"].unit == "person of ≤ 1 row"
    assert all(
        low <= value <= high for value, (low, high) in zip(found["age"].values, found["age"].intervals(), strict=True)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": []}, "columns must name at least one"),
        ({"columns": ["age", "age"]}, "none of them twice"),
        ({"columns": ["name"]}, "the column holds"),
        ({"quantiles": [0.5, 0.5]}, "same quantile twice"),
        ({"neighbours": "friends"}, "neighbours must be"),
        ({"memory": 0}, "memory must be at least 1"),
        ({"dataset": "x"}, "ledger"),
    ],
)
def test_describe__refuses_in_sentences(options: dict[str, Any], words: str) -> None:
    with pytest.raises(dpf.DPFrugalError, match=words):
        dpf.describe(TABLE, ONE, **options)


@pytest.mark.parametrize("data", [pa.table({"name": ["x"]}), 5, [], "nowhere.parquet"])
def test_describe__refuses_what_is_no_table_of_numbers(data: Any) -> None:
    with pytest.raises(dpf.DPFrugalError):
        dpf.describe(data, ONE)


def test_describe_command__shows_every_column_and_draws_a_picture(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    done = run("describe", folder / "people.parquet", "--epsilon", 1, "--picture", picture)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert list(dict.fromkeys(row[0] for row in rows)) == NUMERIC
    assert [row[1] for row in rows[:5]] == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert "ε=1 in all, ε=0.25 for each of 4 columns" in done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_describe_command__has_intervals_json_and_few_rows(folder: Path, tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 9), tmp_path / "few.parquet")
    done = run(
        "describe", tmp_path / "few.parquet", "--rho", 0.1, "--intervals", "--picture", tmp_path / "few.svg"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "age\t0.05\t\t\t"
    assert "too few rows" in done.stderr
    assert (tmp_path / "few.svg").is_file()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--picture", "x.gif"), "--picture must name a .png"),
        (("--picture", "nowhere/x.png"), "there is no such folder"),
        (("--memory", "0"), "--memory must be a size"),
        (("--column", "name"), "name: data must be numbers"),
        (("--ledger", "x.db"), "--ledger and --dataset belong together"),
    ],
)
def test_describe_command__refuses_in_sentences(folder: Path, more: tuple[str, ...], sentence: str) -> None:
    done = run("describe", folder / "people.parquet", "--epsilon", 1, *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    left = run("describe", folder / "people.csv", "--epsilon", ONE.size)
    assert left.returncode == 0
    assert "left out, as too few of their cells are numbers: name" in left.stderr
