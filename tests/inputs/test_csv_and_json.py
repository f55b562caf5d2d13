"""Columns of CSV and JSON Lines files as a caller reads them: items, what lies beside them, and the line at fault."""

import gzip
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from dpfrugal.errors import TableError
from dpfrugal.inputs.csv_and_json import csv_column, header_of
from dpfrugal.inputs.file_source import FileSource
from dpfrugal.inputs.files import open_column, open_source


def read(path: Path, column: str | None = None, beside: tuple[str, ...] = ()) -> list[Any]:
    return [row for batch, _ in open_column(path, column, beside=beside).batches for row in batch.to_pylist()]


def written(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz"])
def test_csv_column__reads_items_and_what_lies_beside_them_as_text(name: str, tmp_path: Path) -> None:
    text = 'who,ms,page\n007,1.5,"a b"\n,-2,\n1e3,,NA\n'
    path = written(tmp_path / name, text.replace(",", "\t") if "tsv" in name else text)
    assert read(path, "ms") == [1.5, -2.0, None]
    assert read(path, "ms", ("who", "page")) == [
        {"ms": 1.5, "who": "007", "page": "a b"},
        {"ms": -2.0, "who": None, "page": None},
        {"ms": None, "who": "1e3", "page": "NA"},
    ]


def test_csv_column__divided_by_semicolons_may_have_decimal_commas(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "who;eur;n\nann;-28,38;1\nbob; 4.5 ;2\n;1,5e3;\neve;;3\nmax;NA;3\n")
    assert read(path, "eur") == [-28.38, 4.5, 1500.0, None, None]
    assert read(path, "eur", ("who",))[1:3] == [{"eur": 4.5, "who": "bob"}, {"eur": 1500.0, "who": None}]
    (texts,) = (batch for batch, _ in csv_column(FileSource(path), "eur", any_text=True).batches)
    assert texts.to_pylist() == [-28.38, None, 1500.0, None, None]
    for thousands in ("1,234.5", "1,234,567", "1.234,5"):
        path = written(tmp_path / "b.csv", f"who;eur\nann;1,5\nbob;{thousands}\n")
        with pytest.raises(TableError, match="line 3, column 'eur': not a number") as refused:
            read(path, "eur")
        assert thousands not in str(refused.value)
    with pytest.raises(TableError, match="line 2, column 'eur': not a number"):
        read(written(tmp_path / "c.csv", 'who,eur\nann,"1,5"\n'), "eur")  # elsewhere a comma is none


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz"])
def test_ndjson_column__reads_items_and_fields_beside_them_in_their_own_type(name: str, tmp_path: Path) -> None:
    lines = ['{"ms": 1, "who": "007", "n": 3, "ok": true}', '{"n": null, "ms": -2.5}', '{"who": "x", "other": [1]}']
    path = written(tmp_path / name, "\n".join(lines) + "\n")
    assert read(path, "ms") == [1.0, -2.5, None]
    assert read(path, "ms", ("who", "n", "ok")) == [
        {"ms": 1.0, "who": "007", "n": 3, "ok": True},
        {"ms": -2.5, "who": None, "n": None, "ok": None},
        {"ms": None, "who": "x", "n": None, "ok": None},
    ]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "ms,b\n1,x\n2\n", "line 3 has 1 fields"),
        ("a.csv", 'ms,b\n1,"two\nlines"\nsecret,x\n', "line 4, column 'ms': not a number"),
        ("a.csv.gz", "ms,b\n1,x\nsecret,x\n", "line 3, column 'ms': not a number"),
        ("a.ndjson", '{"ms": 1}\n\n{"ms": "secret"}\n', "line 3, column 'ms': not a number"),
        ("a.ndjson", '{"ms": 1}\n["secret"]\n', "line 2 is not a JSON object"),
    ],
)
def test_csv_and_json__name_the_line_at_fault_and_show_none_of_it(
    name: str, text: str, line: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError) as refused:
        read(written(tmp_path / name, text), "ms")
    assert line in str(refused.value)
    assert "secret" not in str(refused.value)


def test_ndjson_column__refuses_fields_beside_it_that_are_no_keys_or_change_their_type(tmp_path: Path) -> None:
    path = written(tmp_path / "a.ndjson", '{"ms": 1, "who": "a", "where": [1]}\n{"ms": 2, "who": 7}\n')
    with pytest.raises(TableError, match="'where' must hold strings, integers or truth values"):
        read(path, "ms", ("where",))
    with pytest.raises(TableError, match="line 2 has another type of 'who'"):
        read(path, "ms", ("who",))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.ndjson"])
def test_csv_and_json__count_their_progress_in_bytes_on_disk(name: str, tmp_path: Path) -> None:
    row = '{"ms": 12345.5}\n' if "json" in name else "12345.5\n"
    path = written(tmp_path / name, ("" if "json" in name else "ms\n") + row * 300_000)
    column = open_column(path, "ms")
    made = [size for _, size in column.batches]
    assert len(made) > 1
    assert (column.unit, column.total, sum(made)) == ("bytes", path.stat().st_size, path.stat().st_size)


def test_csv_column__of_any_text_has_nulls_for_what_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    cells = ["1", "-2.5", "1e3", ".5", "5.", "", "x", "1,5", "nan", "0x1", "1 2", "--1", "1e", "1_0"]
    path.write_text("x;y\n" + "".join(f"{cell};{cell}\n" for cell in cells))
    (batch, _), *_ = csv_column(FileSource.of(path), "x", ("y",), True, any_text=True).batches
    assert batch.column("x").to_pylist() == [1.0, -2.5, 1000.0, 0.5, 5.0, None, None, 1.5, *[None] * 6]
    assert header_of(FileSource.of(path)) == ["x", "y"]
    path.write_text("x,x\n1,2\n")
    with pytest.raises(TableError, match="none of them twice"):
        header_of(FileSource.of(path))


@pytest.mark.parametrize("line", ["62.8,secret", "alice,7", "2024-01-31,secret", "12:30:05,x", "31/1/2024,x", "-1e5,x"])
def test_header_of__shows_no_first_line_that_may_be_data(line: str, tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text(f"{line}\n1,2\n")
    source = FileSource.of(tmp_path / "bare.csv")
    with pytest.raises(TableError, match="looks like data") as caught:
        header_of(source, stated=False)
    assert not any(cell in str(caught.value).removeprefix(str(source.path)) for cell in line.split(","))
    assert header_of(source) == line.split(",")


def of_any_type(path: Path) -> list[Any]:
    return [
        row for batch, _ in open_source(FileSource.of(path), "at", any_type=True).batches for row in batch.to_pylist()
    ]


NOON = datetime(2026, 3, 1, 12)


@pytest.mark.parametrize(
    ("cells", "items"),
    [
        (["2026-03-01", "1969-12-31"], [date(2026, 3, 1), date(1969, 12, 31)]),
        (["2026-03-01 12:00", "2026-03-01T12:00:00.5"], [NOON, NOON.replace(microsecond=500_000)]),
        (["2026-03-01T12:00:00Z", "2026-03-01T14:00:00+02:00"], [NOON.replace(tzinfo=UTC)] * 2),
        (["", "2026-03-01T12:00:00"], [None, NOON]),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.ndjson"])
def test_csv_and_json__read_dates_and_timestamps_in_their_type(
    name: str, cells: list[str], items: list[Any], tmp_path: Path
) -> None:
    if "csv" in name:
        text = "k,at\n" + "".join(f"a,{cell}\n" for cell in cells)
    else:
        text = "".join(f'{{"at": "{cell}"}}\n' if cell else '{"at": null}\n' for cell in cells)
    assert of_any_type(written(tmp_path / name, text)) == items


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("2026-03-01", "2026-03-01 12:00:00", "not a date in the form of the first one"),
        ("2026-03-01 12:00:00", "2026-03-01 12:00:00Z", "not a timestamp in the form of the first one"),
        ("2026-03-01 12:00:00", "2026-13-01 12:00:00", "not a timestamp in the form of the first one"),
        ("2026-03-01", "20260301", "not a date in the form of the first one"),
        ("20260301", "2026-03-01", "not a number"),
        ("01.03.2026", "02.03.2026", "not a number"),
    ],
)
def test_csv_column__of_two_kinds_of_cells_is_refused_so_that_no_row_chooses_its_type(
    first: str, second: str, wanted: str, tmp_path: Path
) -> None:
    for one, other in ((first, second), (second, first)):  # whichever comes first
        path = written(tmp_path / "a.csv", f"k,at\na,{one}\nb,{other}\n")
        with pytest.raises(TableError, match="not a ") as refused:
            of_any_type(path)
        assert "2026" not in str(refused.value)
    path = written(tmp_path / "a.csv", f"k,at\na,{first}\nb,{second}\n")
    with pytest.raises(TableError, match=wanted):
        of_any_type(path)


@pytest.mark.parametrize("length", [131_073, 1_000_000])
def test_csv_column__beside_a_cell_as_long_as_a_line_may_be_is_read(length: int, tmp_path: Path) -> None:
    path = written(tmp_path / "long.csv.gz", "note,ms\n" + f"{'a' * length},5\n" * 3)
    assert read(path, "ms") == [5.0, 5.0, 5.0]
    with pytest.raises(TableError, match=r"line 2 is longer than 1,048,576 bytes, which is the limit"):
        read(written(tmp_path / "longer.csv.gz", "note,ms\n" + f"{'a' * (3 << 20)},5\n"), "ms")
