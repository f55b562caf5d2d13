"""Text from outside in every form: it does nothing to who reads it, and different texts stay different."""

import csv
import io
import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.outside_text import MOST_NAMES, as_text, csv_line, in_csv, in_html, in_json, in_line, listed
from tests.support.command_line import run, run_here

HOSTILE = [
    "[/x]",
    "clicks [eu]",
    "a\nb",
    "a\tb",
    "\x1b[2J",
    "\\x1b[2J",
    "\\\x1b[2J",
    "\x9b31m",
    "=cmd|' /C calc'!A0",
    "'=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "-5",
    '"',
    "a,b",
    "<script>alert(1)</script>",
    "\u202etxt",
    "\r\n",
    " ",
    "\ud800",
    "C:\\new",
    "e\u0301",
]
ANY = st.lists(
    st.sampled_from(HOSTILE) | st.text() | st.text(st.sampled_from("\\nrtxu0041b=+-'\"\x1b\n\t[]")), max_size=3
).map("".join)


def without_escapes(text: str) -> str:
    """What ``in_line`` wrote, read back: the slow way, letter by letter."""
    found, at = "", 0
    while at < len(text):
        kind = text[at + 1 : at + 2]
        if text[at] != "\\" or kind not in "\\ntrxuU" or not kind:
            found, at = found + text[at], at + 1
            continue
        size = {"x": 2, "u": 4, "U": 8}.get(kind, 0)
        digits = text[at + 2 : at + 2 + size]
        if size and (len(digits) < size or set(digits) - set("0123456789abcdef")):
            found, at = found + "\\", at + 1
            continue
        found += chr(int(digits, 16)) if size else {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}[kind]
        at += 2 + size
    return found


@settings(max_examples=300)
@given(ANY)
def test_in_line__is_one_printable_line_that_can_be_read_back(text: str) -> None:
    assert in_line(text).isprintable()
    assert without_escapes(in_line(text)) == text


@settings(max_examples=200)
@given(st.lists(ANY, min_size=1, max_size=3))
def test_csv_line__is_one_row_of_as_many_cells_of_which_none_is_a_formula(cells: list[str]) -> None:
    written = [in_csv(cell) for cell in cells]
    (row,) = csv.reader(io.StringIO(csv_line(written) + "\n", newline=""))
    assert row == written
    for cell in row:
        assert all(letter.isprintable() or letter in "\t\n\r" for letter in cell)
        assert cell[:1] not in ("=", "@", "\t", "\r") or not cell
        if cell[:1] in ("+", "-"):
            assert float(cell) is not None


@given(st.lists(ANY, min_size=2, max_size=2, unique=True))
def test_forms__keep_different_texts_different(texts: list[str]) -> None:
    for form in (in_line, in_csv, in_html, in_json):
        assert form(texts[0]) != form(texts[1])


@given(ANY)
def test_in_json__is_one_printable_line_of_the_same_text(text: str) -> None:
    assert in_json({text: [text]}).isprintable()
    assert json.loads(in_json({text: [text]})) == {text: [text]}


@given(ANY)
def test_in_html__is_text_only(text: str) -> None:
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: object) -> None:
            seen.append(tag)

        def handle_data(self, data: str) -> None:
            assert data in in_line(text)

    Reader().feed(f"<p>{in_html(text)}</p>")
    assert seen == ["p"]


def test_as_text__keeps_bytes_apart_that_are_no_text() -> None:
    assert len({in_line(as_text(key)) for key in (b"\xff", b"\xfe", "\ufffd", b"?", "\\udcff")}) == 5
    assert (as_text(None), as_text(3), as_text(b"\xc3\xa9")) == ("", "3", "é")


KEYS = [key for key in HOSTILE if key not in ("\ud800", "e\u0301") and key.strip()]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "[red]rows.parquet"
    rows = {"ms [eu]": [1.0 + row % 7 for row in range(600 * len(KEYS))], "k": KEYS * 600}
    pq.write_table(pa.table(rows), path)
    pq.write_table(pa.table({"k": KEYS}), path.with_name("keys.parquet"))
    return path


def asked(table: Path, *more: object) -> list[object]:
    keys = table.with_name("keys.parquet")
    return ["quantile", table, "--column", "ms [eu]", "--by", "k", "--keys", keys, "-q", 0.5, "--epsilon", 9, *more]


@pytest.mark.parametrize("form", ["csv", "table", "jsonl"])
def test_command__writes_hostile_keys_a_row_each_in_every_form(table: Path, form: str) -> None:
    done = run_here(*asked(table, "--to", form, "--no-intervals"))
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    if form == "jsonl":
        assert [json.loads(line)["key"] for line in done.stdout.splitlines()] == KEYS
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(done.stdout, newline="")))
        assert len({len(row) for row in rows}) == 1
        assert [row[0] for row in rows[1:]] == [in_csv(key) for key in KEYS]
    else:
        lines = [line.split("\t") for line in done.stdout.split("\n")[1:-1]]
        assert [line[0] for line in lines] == [in_line(key) for key in KEYS]
        assert len({len(line) for line in lines}) == 1


def test_command__keeps_keys_apart_on_an_output_that_has_no_letters_for_them(tmp_path: Path) -> None:
    numbers = "".join(f"{key} {number}\n" for number in range(3000) for key in ("α", "β"))
    (tmp_path / "keys.txt").write_text("α\nβ\n", encoding="utf-8")
    command = ("watch", "--by", "--keys", tmp_path / "keys.txt", "-q", 0.5, "--epsilon", 1, "--every", "1h")
    done = run(
        *command, text=numbers, env=os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert {line.split("\t")[1] for line in done.stdout.splitlines()} == {"\\u03b1", "\\u03b2"}


@pytest.mark.parametrize("name", ["[/x]", "clicks [eu]", "[link=https://a]b[/link]"])
def test_command__shows_names_of_datasets_files_and_notes_as_they_are(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "[bold]x\x1b[2J"
    folder.mkdir()
    ledger = folder / "[green]b.db"
    numbers = folder / "[red].csv"
    numbers.write_text("".join(f"{number}\n" for number in range(300)))
    for command in (
        ["ledger", "add", ledger, name, "--epsilon", 9],
        ["ledger", "add", ledger, name, "--epsilon", 1, "--spent-by", f"by {name}"],
        ["quantile", numbers, "-q", 0.5, "--epsilon", 1, "--ledger", ledger, "--dataset", name],
        ["ledger", "show", ledger],
        ["ledger", "history", ledger],
        ["ledger", "verify", ledger],
    ):
        done = run_here(*command)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert dpf.Ledger(ledger).dataset(name).tally.size == 2
    refusal = run_here("quantile", folder / "none.csv", "-q", 0.5, "--epsilon", 1)
    assert (refusal.returncode, "\x1b" in refusal.stderr) == (2, False)


def test_listed__shows_the_first_names_and_counts_the_rest() -> None:
    assert listed(["a", "it's", 3]) == "'a', \"it's\", 3"
    many = [f"c{k}" for k in range(MOST_NAMES + 5)]
    assert listed(many[:MOST_NAMES]).endswith(f"'c{MOST_NAMES - 1}'")
    assert listed(many).endswith(f"'c{MOST_NAMES - 1}' and 5 more")
    assert listed([]) == ""
