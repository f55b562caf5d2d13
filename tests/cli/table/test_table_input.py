"""What a table is read from: one set of files, or standard input, of which a sample is taken only where it may be."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpfrugal.cli.table.table_input import (
    BYTES_PER_SAMPLED_ROW,
    STDIN,
    Numbers,
    file_set,
    numbers_of,
    one_path,
    reading,
)
from dpfrugal.cli.table.table_options import LEAST_MEMORY, TableOptions
from dpfrugal.errors import ParameterError
from dpfrugal.inputs.file_sets import FileSet

real = FileSet.of
ROOM = LEAST_MEMORY // BYTES_PER_SAMPLED_ROW


@contextmanager
def standard_input(rows: int, path: Path) -> Iterator[None]:
    """In here it has the numbers from 0 on."""
    path.write_text("".join(f"{number}\n" for number in range(rows)))
    with path.open() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", file)
        yield


def read(rows: int, path: Path, **options: Any) -> Numbers:
    with standard_input(rows, path):
        return numbers_of(["-"], None, None, TableOptions(memory="1MB", **options), omit_bad=False)


def test_standard_input__that_fits_is_held_whole(tmp_path: Path) -> None:
    found = read(ROOM, tmp_path / "in")
    assert np.array_equal(np.sort(found.data), np.arange(ROOM))
    assert (found.of, found.more) == (None, {})


def test_standard_input__that_does_not_fit_is_a_sample_of_distinct_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = read(ROOM + 5_000, tmp_path / "in")
    assert len(found.data) <= ROOM
    assert np.unique(found.data).size == len(found.data)
    assert np.isin(found.data, np.arange(ROOM + 5_000)).all()
    assert found.more == {"sample_of_rows": ROOM + 5_000}
    found.explain()
    assert re.search(r"uniform random sample of\s+[\d,]+ of them", capsys.readouterr().err)


@pytest.mark.parametrize(
    "options", [{"neighbours": "add-remove"}, {"interval_of": "table"}], ids=lambda options: next(iter(options))
)
def test_standard_input__is_not_sampled_where_the_guarantee_or_the_interval_needs_all_rows(
    options: dict[str, Any], tmp_path: Path
) -> None:
    assert read(ROOM, tmp_path / "in", **options).of is None
    with pytest.raises(ParameterError, match="needs all rows"):
        read(ROOM + 1, tmp_path / "in", **options)


def test_standard_input__is_sampled_for_a_table_without_intervals(tmp_path: Path) -> None:
    assert read(ROOM + 1, tmp_path / "in", interval_of="table", intervals=False).of == ROOM + 1


def test_standard_input__is_read_by_itself(tmp_path: Path) -> None:
    with standard_input(3, tmp_path / "in"):
        with pytest.raises(ParameterError, match="read by itself"):
            numbers_of(["-", "x.csv"], None, None, TableOptions(), omit_bad=False)
        with pytest.raises(ParameterError, match="name --column"):
            numbers_of(["-"], None, None, TableOptions(person="who"), omit_bad=False)


@pytest.mark.parametrize("asked", [("ms", None, None), (None, "csv", None), (None, None, True)], ids=str)
def test_standard_input__with_columns_is_a_file(
    asked: tuple[Any, Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("ms\n1\n")
    paths = {name: str(tmp_path / "in") for name in STDIN}
    monkeypatch.setattr(FileSet, "of", lambda names, most: real([paths[name] for name in names], most))
    column, form, header = asked
    found = numbers_of(["-"], column, form, TableOptions(header=header), omit_bad=False)
    assert isinstance(found.data, FileSet)
    assert (found.files, found.data.file_format, found.data.header) == (found.data, form, header)


def test_one_path__is_of_one_file(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1\n")
    assert one_path(str(tmp_path / "a.csv")) == tmp_path / "a.csv"
    with pytest.raises(ParameterError, match="these are 2 files"):
        one_path(str(tmp_path / "*.csv"))


def test_reading__shows_how_far_files_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    files = file_set([str(tmp_path / "a.csv")], None, 10**9)
    before = files.progress
    with reading(files):
        assert files.progress is not before
    with reading(None):
        pass
