"""A quantile per key on the command line: files, lines, every form of output; refusals in one sentence, status 2."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.keys.person_limits import RowPriorities
from tests.support import command_line
from tests.support.command_line import run_here as run

ROWS = 30_000
CARRIERS = ["AA", "UA", "DL"]
_order = np.random.default_rng(5).permutation(ROWS)
DELAYS = {"AA": 5, "UA": 1005, "DL": 2005}  # each uniform over ten units around it
TABLE = pa.table(
    {
        "carrier": np.array(CARRIERS)[_order % 3].tolist(),
        "delay": (_order % 3) * 1000 + _order // 3 % 11,
        "number": _order % 3 + 7,
        "pilot": _order % 500,
    }
)


WALK = ("--algorithm", "dp-frugal-1u")
ASK = ("--column", "delay", "-q", 0.5, "--epsilon", 1, *WALK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("by")
    pq.write_table(TABLE, folder / "flights.parquet")
    pa.csv.write_csv(TABLE, folder / "flights.csv")
    (folder / "flights.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    with pa.ipc.new_file(folder / "flights.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=7000)
    (folder / "carriers.txt").write_text("AA\nUA\nDL\n")
    (folder / "numbers.txt").write_text("7\n8\n9")
    (folder / "carriers.csv").write_text("carrier\nAA\nUA\nDL\n")
    pq.write_table(pa.table({"carrier": CARRIERS, "name": ["x"] * 3}), folder / "carriers.parquet")
    return folder


def near(rows: list[dict[str, Any]], names: list[Any] = CARRIERS) -> None:
    """Noise of scale 2, or of 4 where steps have doubled, and a jitter of one or two steps: 150 is 1e-15 off."""
    assert [row["key"] for row in rows] == names
    for row, middle in zip(rows, DELAYS.values(), strict=True):
        assert abs(float(row["value"]) - middle) < 150
        assert float(row["quantile"]) == 0.5


@pytest.mark.parametrize("file", ["flights.parquet", "flights.csv", "flights.jsonl", "flights.arrow"])
def test_quantile_by_command__reads_files_of_every_kind(folder: Path, file: str) -> None:
    done = run("quantile", folder / file, *ASK, "--by", "carrier", "--keys", folder / "carriers.txt")
    assert done.returncode == 0, done.stderr
    near(list(csv.DictReader(done.stdout.splitlines())))
    assert "ε=1 per item (replace-one), 30,000 items, 3 keys" in done.stderr


@pytest.mark.parametrize("keys", ["carriers.csv", "carriers.parquet"])
def test_quantile_by_command__reads_files_of_keys(folder: Path, keys: str) -> None:
    done = run("quantile", folder / "flights.parquet", *ASK, "--by", "carrier", "--keys", folder / keys, "--json")
    near([json.loads(line) for line in done.stdout.splitlines()])


def test_quantile_by_command__has_keys_of_the_type_of_the_column(folder: Path) -> None:
    done = run(
        "quantile",
        folder / "flights.parquet",
        *ASK,
        "--by",
        "number",
        "--keys",
        folder / "numbers.txt",
        "--to",
        "jsonl",
    )
    near([json.loads(line) for line in done.stdout.splitlines()], [7, 8, 9])


def test_quantile_by_command__writes_output_files(folder: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.txt"):
        path = tmp_path / name
        done = run(
            "quantile", folder / "flights.parquet", *ASK, "--by", "carrier", "--keys", folder / "carriers.txt",
            "--output", path, "--rounds", 3,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "")
        if name == "a.parquet":
            near(pq.read_table(path).to_pylist())
            assert pq.read_schema(path).metadata[b"guarantee"].decode() == "ε=1"
        elif name == "a.jsonl":
            near([json.loads(line) for line in path.read_text().splitlines()])
        else:
            near(list(csv.DictReader(path.read_text().splitlines(), delimiter="," if name == "a.csv" else "\t")))


def test_quantile_by_command__charges_for_discovered_keys_what_was_said(folder: Path) -> None:
    done = run(
        "quantile", folder / "flights.parquet", *ASK, "--by", "carrier", "--discover-keys", "--delta", 1e-6,
        "--person", "pilot", "--max-items-per-person", 2, "--max-keys-per-person", 2,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    # 500 pilots, 4 rows each: some 660 rows a key, against noise of scale 16 and a threshold under 300
    assert [row["key"] for row in csv.DictReader(done.stdout.splitlines())] == sorted(CARRIERS)
    assert "ε=1, δ=1e-06 per person of ≤ 2 items in each of ≤ 2 keys" in done.stderr
    assert "Not for publication: 28,000 rows exceeded the limit per person and were dropped." in done.stderr


def test_quantile_by_command__shows_no_key_of_few_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["a", "b"], "x": [1, 2]}), tmp_path / "few.parquet")
    done = run(
        "quantile", tmp_path / "few.parquet", "--column", "x", "--by", "key", "-q", 0.5, "--epsilon", 1,
        "--discover-keys", "--delta", 1e-12, *WALK,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "key,quantile,value,alpha\n")
    assert "no key has rows enough" in done.stderr


def test_watch_by_command__releases_a_table_per_period(folder: Path) -> None:
    text = "".join(f"{key} {delay}\n" for key, delay in zip(*TABLE.select([0, 1]).to_pydict().values(), strict=True))
    ask = ("watch", "--by", "-q", 0.5, "--epsilon", 1, "--every", 10_000, *WALK)
    done = command_line.run(*ask, "--keys", folder / "carriers.txt", text=text)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [[str(n), key] for n in (10_000, 20_000, 30_000) for key in CARRIERS]
    assert all(abs(float(value) - DELAYS[key]) < 200 for _, key, value in lines[-3:])
    done = command_line.run(*ask, "--discover-keys", "--delta", 1e-6, "--json", text=text)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["items"], row["key"]) for row in found][:3] == [(10_000, key) for key in sorted(CARRIERS)]


FLIGHTS = ("quantile", "flights.parquet", *ASK)
BY = ("--by", "carrier", "--keys", "carriers.txt")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*FLIGHTS, "--by", "carrier"), "either --keys FILE or --discover-keys"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "carriers.txt", "--discover-keys"), "either --keys FILE or"),
        ((*FLIGHTS, "--by", "carrier", "--discover-keys"), "--discover-keys needs --epsilon and --delta"),
        ((*FLIGHTS, "--by", "airline", "--keys", "carriers.txt"), "no column 'airline'"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "nowhere.txt"), "no such file of keys"),
        ((*FLIGHTS, "--by", "number", "--keys", "carriers.txt"), "the keys must be int64"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "blank.txt"), "line 2 is blank"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "twice.txt"), "same key twice"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "binary.txt"), "not a readable file of keys"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "empty.txt"), "no keys in it"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "carriers.txt", "--output", "no/a.csv"), "no such folder"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "carriers.txt", "--output", "a.xyz"), "choose --to"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "carriers.txt", "--to", "parquet"), "needs --output"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "carriers.txt", "--rounds", 0), "--rounds must be at least 1"),
        ((*FLIGHTS, "--by", "carrier", "--keys", "carriers.txt", "--person", "nobody"), "no column 'nobody'"),
        ((*FLIGHTS, "--by", "delay", "--keys", "carriers.txt"), "must name different columns"),
        ((*FLIGHTS, "--keys", "carriers.txt"), "--keys is for --by"),
        ((*FLIGHTS, "--null-keys", "drop"), "--null-keys is for --by"),
        ((*FLIGHTS[:-1], "private-quantile", *BY), "leave out --algorithm private-quantile"),
        ((*FLIGHTS, *BY, "--json", "--output", "a.csv"), "--json writes JSON Lines, not csv"),
        ((*FLIGHTS, *BY, "--json", "--to", "parquet", "--output", "a.x"), "--json writes JSON Lines, not parquet"),
        ((*FLIGHTS, *BY, "--calibration", "classic"), "--calibration is for --epsilon with --delta"),
        ((*FLIGHTS, "--calibration", "classic"), "--calibration is for --epsilon with --delta"),
        (
            (*FLIGHTS, "--by", "carrier", "--discover-keys", "--delta", 1e-6, "--calibration", "analytic"),
            "--calibration is for Gaussian noise",
        ),
        ((*FLIGHTS, *BY, "--output", "."), "this is a folder"),
        ((*FLIGHTS, *BY, "--max-keys-per-person", 0), "dpfrugal: --max-keys-per-person must be"),
        (("quantile", "blank.csv", *ASK, *BY), "--null-keys drop"),
        (("quantile", "blank.csv", *ASK, *BY, "--null-keys", "drop", "--person", "pilot"), "person has null ids"),
        (("watch", "--by", "-q", 2, "--epsilon", 1, "--every", 9, "--keys", "carriers.txt"), "--quantile must lie"),
        (
            ("watch", *BY[2:], "--by", "-q", 0.5, "--epsilon", 1, "--every", 9, "--algorithm", "private-quantile"),
            "leave out --algorithm",
        ),
        (("quantile", "flights.csv", *ASK, "--by", "carrier", "--keys", "carriers.txt", "--rounds", 2), "--rounds is"),
        (("quantile", "-", *ASK, "--by", "carrier", "--keys", "carriers.txt"), "dpfrugal watch --by"),
        (("quantile", "nulls.parquet", *ASK, "--by", "carrier", "--keys", "carriers.txt"), "--null-keys drop"),
        (("quantile", "nothing.parquet", *ASK, "--by", "carrier", "--keys", "carriers.txt"), "there are no items"),
        (("watch", "--by", "-q", 0.5, "--epsilon", 1, "--every", 10), "either --keys FILE or --discover-keys"),
        (("watch", "-q", 0.5, "--epsilon", 1, "--every", 10, "--discover-keys"), "are for --by"),
    ],
)
def test_quantile_by_command__refuses_in_sentences(
    folder: Path, arguments: tuple[object, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "blank.txt").write_text("AA\n\nUA\n")
    (folder / "twice.txt").write_text("AA\nUA\nAA\n")
    (folder / "binary.txt").write_bytes(b"\xfe\xff\x00")
    (folder / "empty.txt").write_text("")
    pq.write_table(pa.table({"carrier": ["AA", None], "delay": [1, 2]}), folder / "nulls.parquet")
    pq.write_table(TABLE.slice(0, 0), folder / "nothing.parquet")
    (folder / "blank.csv").write_text("carrier,delay,pilot\nAA,1,7\n,2,7\nUA,3,\n")
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_quantile_by_command__takes_keys_of_a_csv_as_text_and_empty_ones_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NA is a country and an airline; 1.5 and 1.50 are two texts."""
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("key,x\n" + "NA,1\n1.5,1\n1.50,1\n,1\n" * 100)
    ask = ("quantile", "rows.csv", "--column", "x", "--by", "key", "-q", 0.5, "--epsilon", 2000, "--delta", 1e-6, *WALK)
    done = run(*ask, "--discover-keys", "--null-keys", "drop")
    assert [row["key"] for row in csv.DictReader(done.stdout.splitlines())] == ["1.5", "1.50", "NA"]
    assert "ε=2000, δ=1e-06 per item" in done.stderr
    assert "Of that, ε=1000 for the values; ε=1000, δ=1e-06 for discovering keys." in done.stderr


def test_quantile_by_command__says_one_key_and_two_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("key,x\na,1\n")
    Path("keys.txt").write_text("a\n")
    ask = ("quantile", "rows.csv", "--column", "x", "-q", 0.5, "--epsilon", 1)
    assert "1 item, 1 key;" in run(*ask, "--by", "key", "--keys", "keys.txt", "--algorithm", "dp-frugal-1u").stderr
    assert run(*ask, "--algorithm", "dp-frugal-1u").stderr.splitlines()[0].endswith(", 1 item")


def test_watch_by_command__refuses_lines_that_are_no_key_and_number(folder: Path) -> None:
    ask = ("watch", "--by", "-q", 0.5, "--epsilon", 1, "--every", 10, "--keys", folder / "carriers.txt", *WALK)
    said = command_line.refused(*ask, text="AA 1\nsecret\n")
    assert "a line must be a key and a number" in said
    assert "secret" not in said
    done = command_line.run(*ask, "--nan-policy", "omit", text="AA 1\nsecret\n\nUA 3\n")
    assert done.stdout.splitlines()[-1].startswith("4\tDL\t")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_quantile_by_command__lets_no_cell_decide_which_rows_of_others_count(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers cut by bytes, and writers of Parquet cut row groups by bytes: one long key moves all that follows it.

    A person's rows are chosen by priorities over the whole table, and rounds end after so many rows.
    """
    # The priorities of both runs are the same.
    monkeypatch.setattr(RowPriorities, "__init__", lambda self: setattr(self, "_words", np.random.PCG64(1)))
    taken: list[list[bool]] = []
    update = KeyedDPFrugal1U._update_chosen

    def noting(self: Any, keys: Any, values: Any, chosen: Any) -> None:
        taken.append(chosen.tolist())
        update(self, keys, values, chosen)

    monkeypatch.setattr(KeyedDPFrugal1U, "_update_chosen", noting)
    (tmp_path / "keys.txt").write_text("a\n")
    runs, rows = [], 30_000
    for key in ("b", "b" * 400):
        table = pa.table(
            {"key": ["a"] * 10 + [key] + ["a"] * (rows - 11), "x": [1] * rows, "who": [row // 4 for row in range(rows)]}
        )
        path = tmp_path / f"t.{kind}"
        if kind == "csv":
            pa.csv.write_csv(table, path)
        elif kind == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        else:
            with pq.ParquetWriter(path, table.schema) as writer:  # as one that cuts by bytes
                writer.write_table(table.slice(0, 20_000 - len(key)))
                writer.write_table(table.slice(20_000 - len(key)))
        rounds = ("--rounds", 3) if kind == "parquet" else ()
        done = run(
            "quantile", path, "--column", "x", "--by", "key", "--keys", tmp_path / "keys.txt", "-q", 0.5,
            "--epsilon", 1, "--person", "who", *rounds, *WALK,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        runs.append(taken.copy())
        taken.clear()
    whole = [[row for batch in batches for row in batch] for batches in runs]
    assert whole[0] == whole[1]
    assert sum(whole[0]) == rows // 4
    if kind == "parquet":
        assert [len(batch) for batch in runs[0]] == [len(batch) for batch in runs[1]] == [10_000] * 3
