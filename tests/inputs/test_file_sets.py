"""Sets of files: folders, patterns, lists; what changes between two readings is refused."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpfrugal.errors import TableError
from dpfrugal.inputs.file_sets import FileSet, paths_of


def rows_of(files: FileSet) -> list[float]:
    return [value for array in files.arrays(None) for value in array.to_pylist()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden.txt", "_SUCCESS"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{ord(name[-5])}\n")
    return tmp_path


def test_file_set__of_folders_patterns_and_lists(folder: Path) -> None:
    assert rows_of(FileSet.of(folder)) == [97, 98, 99]
    assert rows_of(FileSet.of(str(folder / "*.txt"))) == [97, 98]
    assert rows_of(FileSet.of(str(folder / "**" / "*.txt"))) == [97, 98, 99]
    assert rows_of(FileSet.of([folder / "b.txt", str(folder / "deep")])) == [98, 99]
    odd = folder / "[1].txt"
    odd.write_text("5\n")
    assert rows_of(FileSet.of(str(odd))) == [5], "a file that exists is no pattern"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing*.csv", "there are no files"),
        ("s3://bucket/x", "s3://bucket/x: this is an address"),
        ("nowhere.csv", "no such file"),
    ],
)
def test_file_set__refuses_what_is_not_there(name: str, sentence: str) -> None:
    with pytest.raises(TableError, match=sentence):
        FileSet.of(name)


def test_file_set__refuses_a_file_that_changes_between_two_readings(folder: Path) -> None:
    files = FileSet.of(folder)
    assert rows_of(files) == rows_of(files)
    (folder / "a.txt").write_text("1\n2\n3\n")
    with pytest.raises(TableError, match=r"a.txt: the file changed while it was read"):
        rows_of(files)
    (folder / "a.txt").unlink()
    with pytest.raises(TableError, match="changed"):
        rows_of(files)


def test_paths_of__an_empty_folder_has_no_files(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there are no files"):
        paths_of(str(tmp_path))


def test_file_sets__take_a_format_and_tell_their_progress(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "b.dat").write_text("x,y\n4,d\n")
    files = FileSet.of(tmp_path / "b.dat")
    with pytest.raises(TableError, match="--format"):
        list(files.arrays("x"))
    files.file_format = "csv"
    assert [value for array in files.arrays("x") for value in array.to_pylist()] == [4]
    told: list[tuple[int, int]] = []
    whole = FileSet.of(tmp_path / "a.parquet")
    whole.progress = lambda size, rows: told.append((size, rows))
    list(whole.batches("x", ("y",)))
    assert told == [(whole.size, 3)]
    assert FileSet.of(whole) is whole
    assert (whole.name, FileSet.of(tmp_path).name) == ("a.parquet", "2 files")
