"""How a table is written: the form is known before anything is released, and every form has every row."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.cli.table.table_output import SUFFIXES, Output, form_of, lines_of, writable, write
from dpfrugal.errors import ParameterError


def wanted(suffix: str | None, to: Output | None, as_json: bool) -> Output | None:
    """The form in a pipe by the documentation; None where it is refused."""
    named = to or SUFFIXES.get(suffix or "")
    if as_json:
        return Output.JSONL if named in (None, Output.JSONL) else None
    if suffix is None:
        return None if to is Output.PARQUET else to or Output.CSV
    return named


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("to", [None, *Output])
@pytest.mark.parametrize("suffix", [None, "", ".csv", ".jsonl", ".ndjson", ".parquet", ".txt", ".xlsx"])
def test_form__of_every_combination_of_options(
    suffix: str | None, to: Output | None, as_json: bool, tmp_path: Path
) -> None:
    output = None if suffix is None else tmp_path / f"table{suffix}"
    form = wanted(suffix, to, as_json)
    if form is None:
        with pytest.raises(ParameterError):
            form_of(output, to, as_json=as_json)
    else:
        assert form_of(output, to, as_json=as_json) is form


def test_form__without_a_choice_depends_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert form_of(None, None, as_json=False) is Output.CSV
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert form_of(None, None, as_json=False) is Output.TABLE


def test_output__that_cannot_be_written_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    for output, said in ((tmp_path, "a folder"), (tmp_path / "none" / "t.csv", "no such folder")):
        with pytest.raises(ParameterError, match=said):
            writable("--output", output)
    writable("--output", tmp_path / "new.csv")
    (tmp_path / "old.csv").write_text("")
    writable("--output", tmp_path / "old.csv")
    os.mkfifo(tmp_path / "pipe")
    writable("--output", tmp_path / "pipe")
    assert not (tmp_path / "new.csv").exists(), "it is only looked at"


def cells(row: dict[str, Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in row.values()]


texts = st.text(st.characters(codec="utf-8"), max_size=12)
rows = st.lists(st.tuples(texts, st.none() | st.floats(allow_nan=False), st.none() | st.integers(0, 99)), max_size=5)


def table_of(some: list[tuple[str, float | None, int | None]]) -> pa.Table:
    names, values, counts = ([row[at] for row in some] for at in range(3))
    kinds = pa.string(), pa.float64(), pa.int64()
    columns = (pa.array(column, kind) for column, kind in zip((names, values, counts), kinds, strict=True))
    return pa.table(dict(zip(("key", "value", "rows"), columns, strict=True)))


@given(rows)
def test_json_lines__are_one_object_a_row_without_infinities(some: list[tuple[str, float | None, int | None]]) -> None:
    lines = list(lines_of(table_of(some), Output.JSONL, cells))
    infinite = (float("inf"), -float("inf"))
    found = [json.loads(line) for line in lines]
    assert not any("\n" in line for line in lines)
    assert [(one["value"], one["rows"]) for one in found] == [
        (None if value in infinite else value, count) for _, value, count in some
    ]


@given(rows)
def test_csv__has_a_header_and_every_row_in_one_record(some: list[tuple[str, float | None, int | None]]) -> None:
    lines = list(lines_of(table_of(some), Output.CSV, cells))
    records = list(csv.reader(io.StringIO("".join(f"{line}\n" for line in lines)), strict=True))
    assert records[0] == ["key", "value", "rows"]
    assert [record[1:] for record in records[1:]] == [cells({"v": value, "r": count}) for _, value, count in some]
    columns = list(lines_of(table_of(some), Output.TABLE, cells))
    assert [line.count("\t") for line in columns] == [2] * (len(some) + 1)


@pytest.mark.parametrize(("form", "suffix"), [(Output.CSV, "csv"), (Output.JSONL, "jsonl"), (Output.TABLE, "txt")])
def test_write__to_a_file_is_what_a_pipe_gets(
    form: Output, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = table_of([("a", 1.5, 3), ("b\tc", None, None)])
    never: Any = lambda: pytest.fail("this is for a terminal")  # noqa: E731
    write(table, form, tmp_path / f"t.{suffix}", cells, never)
    write(table, form, None, cells, never)
    assert (tmp_path / f"t.{suffix}").read_text() == capsys.readouterr().out


def test_write__to_parquet_keeps_types_and_metadata(tmp_path: Path) -> None:
    table = table_of([("a", 1.5, 3)]).replace_schema_metadata({b"total": b"1"})
    write(table, Output.PARQUET, tmp_path / "t.parquet", cells, lambda: pytest.fail("no terminal"))
    assert pq.read_table(tmp_path / "t.parquet").equals(table, check_metadata=True)


def test_suffixes__name_every_form() -> None:
    assert set(SUFFIXES.values()) == set(Output)
