"""Results are whole rows, belong to one run, and are never computed twice."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dpfrugal.errors import ParameterError
from dpfrugal.paper.results import ResultsFile, claim_folder, open_folder, write_whole

COLUMNS = (("name", "number"), ("value",))


def results(folder: Path) -> ResultsFile:
    return ResultsFile(folder / "some.csv", *COLUMNS)


def test_results__read_rows_again_as_they_were(tmp_path: Path) -> None:
    one = results(tmp_path)
    one.append({"name": 'a,"b"', "number": 1, "value": 0.1})
    one.append({"name": None, "number": 2, "value": 1e-300})
    again = results(tmp_path)
    assert list(again) == list(one)
    assert [float(row["value"]) for row in again] == [0.1, 1e-300]
    assert {"name": None, "number": 2} in again
    assert {"name": None, "number": 3} not in again


def test_results__write_a_row_once(tmp_path: Path) -> None:
    one = results(tmp_path)
    for value in (1, 2):
        one.append({"name": "a", "number": 1, "value": value})
    assert (tmp_path / "some.csv").read_text(encoding="utf-8") == "name,number,value\na,1,1\n"


@pytest.mark.parametrize("cut", range(1, 7))
def test_results__drop_a_line_that_is_cut_short(tmp_path: Path, cut: int) -> None:
    one = results(tmp_path)
    for number in range(3):
        one.append({"name": "a", "number": number, "value": number})
    path = tmp_path / "some.csv"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = results(tmp_path)
    assert len(again) == 2
    again.append({"name": "a", "number": 2, "value": 2})
    assert path.read_bytes() == whole


def test_results__survive_a_header_that_is_cut_short(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_bytes(b"name,num")
    one = results(tmp_path)
    one.append({"name": "a", "number": 1, "value": 1})
    assert len(results(tmp_path)) == 1
    (tmp_path / "some.csv").write_bytes(b"name,number,value\n")
    results(tmp_path).append({"name": "a", "number": 1, "value": 1})
    assert (tmp_path / "some.csv").read_bytes() == b"name,number,value\na,1,1\n"


def test_results__leave_whole_rows_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, path, write = results(tmp_path), tmp_path / "some.csv", os.write
    one.append({"name": "a", "number": 1, "value": 1})
    before = path.read_bytes()
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:2]))
    with pytest.raises(OSError, match="No space"):
        one.append({"name": "a", "number": 2, "value": 1})
    assert path.read_bytes() == before
    assert {"name": "a", "number": 2} not in one


@pytest.mark.parametrize("content", ["another,header\n1,2\n", "name,number,value\n1,2\n", "\x00\n"])
def test_results__refuse_a_foreign_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "some.csv").write_text(content, encoding="utf-8")
    with pytest.raises(ParameterError, match=r"some\.csv is not a results file.*--fresh"):
        results(tmp_path)


def claim(folder: Path, *, fresh: bool = False, files: tuple[str, ...] = (), **settings: Any) -> None:
    claim_folder(folder, settings, fresh=fresh, files=list(files))


def test_results__refuse_those_of_other_settings(tmp_path: Path) -> None:
    claim(tmp_path, version="1", items=100)
    claim(tmp_path, version="1", items=100)
    results(tmp_path).append({"name": "a", "number": 1, "value": 1})
    with pytest.raises(ParameterError, match=r"items 100 there, 2,000 here.*--fresh") as refusal:
        claim(tmp_path, version="1", items=2000)
    assert "version" not in str(refusal.value)
    with pytest.raises(ParameterError, match="version 1 there, 2 here; items 100 there, 7 here"):
        claim(tmp_path, version="2", items=7)
    assert len(results(tmp_path)) == 1
    claim(tmp_path, fresh=True, version="2", items=7)
    assert not list(tmp_path.glob("*.csv"))
    claim(tmp_path, version="2", items=7)


def test_results__remove_only_what_was_asked_for_when_fresh(tmp_path: Path) -> None:
    claim(tmp_path, items=1)
    for name in ("1a.csv", "1b.csv"):
        (tmp_path / name).touch()
    claim(tmp_path, fresh=True, files=("1a.csv", "1a.costs.csv"), items=1)
    assert [path.name for path in tmp_path.glob("*.csv")] == ["1b.csv"]


@pytest.mark.parametrize("content", [None, "", "[]", "{", json.dumps({"items": 1})])
def test_results__refuse_a_folder_without_readable_settings(tmp_path: Path, content: str | None) -> None:
    results(tmp_path).append({"name": "a", "number": 1, "value": 1})
    if content is not None:
        (tmp_path / "settings.json").write_text(content, encoding="utf-8")
    with pytest.raises(ParameterError, match="another run"):
        claim(tmp_path, items=1)


def test_results__refuse_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="--output must be a folder that can be written to"):
        open_folder(tmp_path / "file" / "below")
    assert open_folder(tmp_path / "new" / "folder").is_dir()
    assert not list((tmp_path / "new" / "folder" / "results").iterdir())


def test_results__write_a_file_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report"
    write_whole(path, b"old")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.move", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
