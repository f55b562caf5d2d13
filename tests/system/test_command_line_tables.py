"""``dpfrugal quantile`` on tables: files of every kind, every form of output, refusals before anything is spent."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from tests.support import command_line
from tests.support.command_line import run_here as run

ROWS = 60_000
_rng = np.random.default_rng(3)
# In order of time and rising: what an estimator that trusts the order of rows cannot take.
MS = np.sort(_rng.integers(10, 1000, ROWS))
TABLE = pa.table(
    {
        "time": pa.array(np.datetime64("2026-03-01T00:00:00", "s") + np.arange(ROWS).astype("timedelta64[s]")),
        "endpoint": np.array(["/a", "/[b]", "/rare"])[np.where(np.arange(ROWS) < 5, 2, np.arange(ROWS) % 2)].tolist(),
        "region": np.array(["eu", "us"])[np.arange(ROWS) // 2 % 2].tolist(),
        "ms": MS,
        "load": MS / 8,
        "who": np.arange(ROWS) // 3,
    }
)
ASK = ("--column", "ms", "-q", "0.5,0.9", "--epsilon", 1)
KEYS = ("--by", "endpoint", "--keys", "endpoints.txt")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    pq.write_table(TABLE, folder / "requests.parquet")
    text = folder / "requests.csv"
    pa.csv.write_csv(TABLE, text)
    (folder / "requests.csv.gz").write_bytes(gzip.compress(text.read_bytes()))
    (folder / "semicolons.csv").write_text(text.read_text().replace(",", ";"))
    (folder / "parts").mkdir()
    for at in range(3):
        pq.write_table(TABLE.slice(at * 20_000, 20_000), folder / "parts" / f"{at}.parquet")
    (folder / "bare.txt").write_text("".join(f"{ms}\n" for ms in MS))
    (folder / "endpoints.txt").write_text("/a\n/[b]\n/rare\n")
    (folder / "pairs.csv").write_text("region,endpoint\neu,/a\nus,/a\neu,/nowhere\n")
    pq.write_table(pa.table({"ms": [1, None, 3]}), folder / "nulls.parquet")
    pq.write_table(TABLE.slice(0, 20), folder / "few.parquet")
    return folder


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def near(stdout: str, tolerance: float = 0.01) -> None:
    """Each value is within 600 of 60,000 rows of its rank: a choice is that far off with probability e^-100."""
    for line in stdout.splitlines():
        q, value, low, high = map(float, line.split("\t"))
        assert low <= value <= high
        assert abs((value >= MS).mean() - q) < tolerance


@pytest.mark.parametrize(
    "files",
    [
        ("requests.parquet",),
        ("requests.csv",),
        ("requests.csv.gz",),
        ("semicolons.csv",),
        ("parts",),
        ("parts/*.parquet",),
        ("parts/0.parquet", "parts/1.parquet", "parts/2.parquet"),
    ],
)
def test_quantile_command__reads_rows_in_any_order_from_files_of_every_kind(folder: Path, files: tuple[str]) -> None:
    done = run("quantile", *files, *ASK)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["0.5", "0.9"]
    near(done.stdout)
    assert "ε=1 per row replaced; 60,000 rows" in done.stderr


def test_quantile_command__reads_files_again_that_do_not_fit_its_memory(folder: Path) -> None:
    wide = folder / "wide.parquet"
    pq.write_table(pa.table({"ms": np.tile(MS, 4)}), wide)
    near(run("quantile", wide, "-q", 0.5, "--epsilon", 1, "--memory", "1MB").stdout)


def test_quantile_command__prints_whole_numbers_as_whole_numbers_and_times_as_times(folder: Path) -> None:
    done = run("quantile", "requests.parquet", *ASK)
    assert "." not in done.stdout.replace("0.5", "").replace("0.9", "")
    done = run("quantile", "requests.parquet", "--column", "time", "-q", 0.5, "--epsilon", 1)
    assert all(cell.startswith("2026-03-01T0") for cell in done.stdout.split()[1:])


def test_quantile_command__takes_every_option_of_a_table(folder: Path) -> None:
    more = ("--neighbours", "add-remove", "--person", "who", "--max-items-per-person", 2, "--no-intervals", "--json")
    answer = json.loads(run("quantile", "requests.parquet", *ASK, *more, "--low", 0, "--high", 2000).stdout)
    assert (answer["items"], answer["neighbours"]) == (None, "add-or-remove-one")
    assert answer["unit"] == "person of ≤ 2 rows"
    assert "intervals" not in answer
    assert all(0 <= value <= 2000 for value in answer["values"])
    hints = ("--confidence", 0.9, "--interval-of", "table", "--decimals", 3, "--json")
    answer = json.loads(run("quantile", "requests.csv", "--column", "load", "-q", 0.5, "--epsilon", 1, *hints).stdout)
    assert (answer["confidence"], answer["interval_of"]) == (0.9, "table")
    assert answer["intervals"][0][0] <= answer["value"] <= answer["intervals"][0][1]


def test_quantile_command__shows_a_reason_instead_of_a_number_where_rows_are_few(folder: Path) -> None:
    done = run("quantile", "few.parquet", *ASK)
    assert done.stdout == "0.5\t\t\t\n0.9\t\t\t\n"
    assert "note: too few rows for q=0.5" in done.stderr
    assert "weaker" not in done.stderr
    answer = json.loads(run("quantile", "few.parquet", *ASK, "--json").stdout)
    assert answer["values"] == [None, None]
    assert answer["intervals"] == [[None, None], [None, None]]
    assert all("too few rows" in reason for reason in answer["reasons"])


def test_quantile_command__takes_a_bare_column_without_a_header_and_loses_no_row(folder: Path) -> None:
    assert "60,000 rows" in run("quantile", "bare.txt", "-q", 0.5, "--epsilon", 1).stderr
    assert "60,000 rows" in run("quantile", "bare.txt", "-q", 0.5, "--epsilon", 1, "--no-header").stderr
    assert "59,999 rows" in run("quantile", "bare.txt", "-q", 0.5, "--epsilon", 1, "--header").stderr
    said = run("quantile", "requests.csv", "-q", 0.5, "--epsilon", 1).stderr
    assert "choose a column with --column" in said
    assert "endpoint" not in said, "the first line may be data"


def test_quantile_command__holds_standard_input_and_samples_it_where_it_is_long(folder: Path) -> None:
    text = (folder / "bare.txt").read_text()
    for name in ("-", "/dev/stdin"):
        done = command_line.run("quantile", name, "-q", "0.5,0.9", "--epsilon", 1, text=text)
        near(done.stdout)
        assert "60,000 rows" in done.stderr
    ask = ("quantile", "-", "-q", 0.5, "--epsilon", 1, "--memory", "1MB")
    done = command_line.run(*ask, "--json", text=text)
    answer = json.loads(done.stdout)
    assert (answer["items"], answer["sample_of_rows"]) == (31_250, 60_000)
    assert "a uniform random sample of 31,250" in done.stderr
    assert abs((answer["value"] >= MS).mean() - 0.5) < 0.03  # ten standard deviations of the sample, and its noise
    for more in (("--neighbours", "add-remove"), ("--interval-of", "table")):
        assert "needs all rows" in command_line.refused(*ask, *more, text=text)


def test_quantile_command__reads_a_table_from_standard_input(folder: Path) -> None:
    text = (folder / "requests.csv").read_text()
    near(command_line.run("quantile", "-", *ASK, text=text).stdout)
    done = command_line.run("quantile", "/dev/stdin", *ASK, *KEYS, text=text)
    assert [row["key"] for row in csv.DictReader(done.stdout.splitlines())][::2] == ["/a", "/[b]", "/rare"]


def rows_of(done: Any) -> list[dict[str, str]]:
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines()))


@pytest.mark.parametrize("file", ["requests.parquet", "requests.csv", "parts"])
def test_quantile_by_command__shows_values_intervals_rows_and_reasons(folder: Path, file: str) -> None:
    rows = rows_of(run("quantile", file, *ASK, *KEYS))
    assert [(row["key"], row["quantile"]) for row in rows][::2] == [("/a", "0.5"), ("/[b]", "0.5"), ("/rare", "0.5")]
    for row in rows[:4]:
        assert float(row["lower"]) <= float(row["value"]) <= float(row["upper"])
        assert abs((float(row["value"]) >= MS).mean() - float(row["quantile"])) < 0.03
        assert abs(int(row["rows"]) - 30_000) < 1_000
        assert row["reason"] == ""
    for row in rows[4:]:
        assert row["value"] == row["lower"] == row["upper"] == ""
        assert "too few rows" in row["reason"]


def test_quantile_by_command__takes_keys_of_several_columns(folder: Path) -> None:
    by = ("--by", "region", "--by", "endpoint")
    rows = rows_of(run("quantile", "requests.parquet", *ASK, *by, "--keys", "pairs.csv", "--no-counts"))
    assert [(row["region"], row["endpoint"]) for row in rows][::2] == [("eu", "/a"), ("us", "/a"), ("eu", "/nowhere")]
    assert "rows" not in rows[0]
    rows = rows_of(run("quantile", "requests.csv", *ASK, *by, "--discover-keys", "--delta", 1e-6))
    assert len({(row["region"], row["endpoint"]) for row in rows}) == 4, "two regions of two endpoints; /rare is rare"


def test_quantile_by_command__puts_other_keys_into_one_group(folder: Path) -> None:
    (folder / "one.txt").write_text("/a\n")
    rows = rows_of(
        run("quantile", "requests.parquet", *ASK, "--by", "endpoint", "--keys", "one.txt", "--other", "rest")
    )
    assert [row["key"] for row in rows] == ["/a", "/a", "rest", "rest"]
    assert abs(int(rows[-1]["rows"]) - 30_000) < 1_000
    (folder / "ids.txt").write_text("1\n2\n")
    by = ("requests.parquet", *ASK, "--by", "who", "--keys", "ids.txt")
    assert [row["key"] for row in rows_of(run("quantile", *by, "--other", "-1"))][-1] == "-1"
    assert "--other must be a key of the type" in run("quantile", *by, "--other", "rest").stderr


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "txt"])
def test_quantile_by_command__writes_files(folder: Path, suffix: str) -> None:
    path = folder / f"out.{suffix}"
    done = run("quantile", "requests.parquet", *ASK, *KEYS, "--output", path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    if suffix == "parquet":
        keys = pq.read_table(path)["key"].to_pylist()
    elif suffix == "jsonl":
        keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    else:
        delimiter = "," if suffix == "csv" else "\t"
        keys = [row["key"] for row in csv.DictReader(path.read_text().splitlines(), delimiter=delimiter)]
    assert keys == ["/a", "/a", "/[b]", "/[b]", "/rare", "/rare"]


def test_quantile_by_command__answers_times_in_every_form(folder: Path) -> None:
    ask = ("quantile", "requests.parquet", "--column", "time", "-q", 0.5, "--epsilon", 1, *KEYS)
    assert rows_of(run(*ask))[0]["value"].startswith("2026-03-01T0")
    assert json.loads(run(*ask, "--json").stdout.splitlines()[0])["value"].startswith("2026-03-01T0")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("requests.parquet", *ASK, "--start", 4), "--start is for --algorithm"),
        (("requests.parquet", *ASK, "--calibration", "classic", "--delta", 0.1), "--calibration is for --algorithm"),
        (("requests.parquet", *ASK, *KEYS, "--rounds", 2), "--rounds is for --algorithm dp-frugal-1u"),
        (("requests.parquet", *ASK, "--keys", "endpoints.txt"), "--keys is for --by"),
        (("requests.parquet", *ASK, "--no-counts"), "--counts is for --by"),
        (("requests.parquet", *ASK, "--other", "x"), "--other is for --by"),
        (("requests.parquet", *ASK, "--output", "x.csv"), "--output is for --by"),
        (("requests.parquet", *ASK, "--algorithm", "private-quantile", "--no-intervals"), "--intervals is for tables"),
        (("requests.parquet", *ASK, "--algorithm", "dp-frugal-1u", "--person", "who"), "--person is for tables"),
        (("requests.parquet", "x", *ASK, "--algorithm", "dp-frugal-1u"), "reads one file"),
        (("parts", *ASK, "--algorithm", "dp-frugal-1u"), "these are 3 files"),
        (("requests.parquet", *ASK, *KEYS, "--by", "region", "--algorithm", "dp-frugal-1u"), "takes one --by"),
        (("requests.parquet", *ASK, "--memory", "lots"), "--memory must be a size"),
        (("requests.parquet", *ASK, "--low", "x"), "--low must be a value of the column"),
        (("requests.parquet", *ASK, "--low", "nan"), "--low must be a value of the column"),
        (("requests.parquet", *ASK, "--low", 5, "--high", 4), "--low and --high must leave something"),
        (("requests.parquet", *ASK, "--confidence", 1.5), "--confidence must lie strictly"),
        (("requests.parquet", *ASK, "--decimals", 2), "--decimals is for columns of floats"),
        (("requests.parquet", *ASK, "--person", "nobody"), "there is no column 'nobody'"),
        (("requests.parquet", *ASK, "--header"), "header is for CSV files"),
        (("requests.parquet", "-q", 0.5, "--epsilon", 1), "choose a column with --column; there are 'time'"),
        (("requests.parquet", "--column", "endpoint", "-q", 0.5, "--epsilon", 1), "the column holds string"),
        (("requests.parquet", "--column", "nope", "-q", 0.5, "--epsilon", 1), "there are 'time', 'endpoint'"),
        (("requests.parquet", *ASK, "--by", "endpoint"), "either --keys FILE or --discover-keys"),
        (("requests.parquet", *ASK, "--by", "ms", "--keys", "endpoints.txt"), "must name different columns"),
        (("requests.parquet", *ASK, *KEYS, "--by", "nope"), "no column 'nope'"),
        (("requests.parquet", "-q", 0.5, "--epsilon", 1, *KEYS), "--by needs --column"),
        (("requests.parquet", *ASK, "--by", "region", "--by", "endpoint", "--keys", "endpoints.txt"), "no column"),
        (
            ("requests.csv", "--column", "nope", "-q", 0.5, "--epsilon", 1),
            "must be the header; --header shows its names",
        ),
        (("requests.csv", "--column", "nope", "-q", 0.5, "--epsilon", 1, "--header"), "there are 'time', 'endpoint'"),
        (("requests.csv", "--column", "nope", "-q", 0.5, "--epsilon", 1, *KEYS, "--header"), "there are 'time'"),
        (("requests.csv", *ASK, "--no-header"), "a file without a header has no column"),
        (("nulls.parquet", "-q", 0.5, "--epsilon", 1), "use --nan-policy omit"),
        (("nowhere.parquet", *ASK), "nowhere.parquet: there is no such file"),
        (("nowhere*", *ASK), "nowhere*: there are no files"),
        (("s3://bucket/x.parquet", *ASK), "s3://bucket/x.parquet: this is an address"),
        (("s3://bucket/x.parquet", *ASK, "--algorithm", "dp-frugal-1u"), "s3://bucket/x.parquet: this is an address"),
        (("-", "requests.parquet", "-q", 0.5, "--epsilon", 1), "Standard input is read by itself"),
    ],
)
def test_quantile_command__refuses_in_a_sentence_and_spends_nothing(
    folder: Path, tmp_path: Path, arguments: tuple[object, ...], sentence: str
) -> None:
    ledger = dpf.Ledger(tmp_path / "b.db", total=dpf.PureDP(epsilon=1.0))
    ledger.open("requests", dpf.PureDP(epsilon=1.0))
    done = run("quantile", *arguments, "--ledger", tmp_path / "b.db", "--dataset", "requests")
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert ledger.dataset("requests").spends == ()


def test_quantile_command__spends_once_and_says_what_is_left(folder: Path, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "b.db", total=dpf.PureDP(epsilon=1.5))
    ledger.open("requests", dpf.PureDP(epsilon=1.5))
    budget = ("--ledger", tmp_path / "b.db", "--dataset", "requests")
    assert "requests: ε=0.5 is left" in run("quantile", "requests.parquet", *ASK, *budget).stderr
    assert run("quantile", "requests.parquet", *ASK, *KEYS, *budget).returncode == 2
    (spend,) = ledger.dataset("requests").spends
    assert (spend.asked["column"], spend.asked["source"]) == ("ms", "requests.parquet")


def test_terminal__shows_markup_in_names_as_it_is(tmp_path: Path) -> None:
    name = tmp_path / "[red]x[bold].parquet"
    pq.write_table(pa.table({"[b]": [1, 2, 3]}), name)
    assert str(name) in run("quantile", name, "--column", "nope", "-q", 0.5, "--epsilon", 1).stderr
    done = run("describe", name, "--epsilon", 1)
    assert "note: [b]: too few rows" in done.stderr


def test_describe_command__shows_no_first_line_of_a_file_without_a_header(tmp_path: Path) -> None:
    """Its cells may be data: neither released as names of columns nor listed as those left out."""
    (tmp_path / "bare.csv").write_text("".join(f"{k}.25,secret{k}\n" for k in range(3000)))
    done = run("describe", tmp_path / "bare.csv", "--epsilon", 1)
    assert (done.returncode, done.stdout) == (2, "")
    assert "looks like data" in done.stderr
    assert "secret" not in done.stderr
    assert "0.25" not in done.stderr
    (tmp_path / "words.csv").write_text("".join(f"word{k},secret{k}\n" for k in range(3000)))
    done = run("describe", tmp_path / "words.csv", "--epsilon", 1)
    assert "no column has numbers enough" in done.stderr
    assert "secret" not in done.stdout + done.stderr
    assert "has no columns to describe" in run("describe", tmp_path / "bare.csv", "--epsilon", 1, "--no-header").stderr
    assert run("describe", tmp_path / "bare.csv", "--epsilon", 1, "--header").returncode == 0
