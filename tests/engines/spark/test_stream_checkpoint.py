"""Records of a Spark stream: each is written once, by one driver, and read again only by the same query."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpfrugal.engines.spark.stream_checkpoint import FOLDER, Records
from dpfrugal.errors import ParameterError, PrivacyError, TableError

pytestmark = pytest.mark.spark


def records_of(spark: Any, folder: Path, column: str = "x") -> Records:
    return Records(spark, str(folder), {"column": column}).ready()


def test_stream_checkpoint__of_another_query_or_a_damaged_one_is_refused(spark: Any, tmp_path: Path) -> None:
    records = records_of(spark, tmp_path)
    for batch in (-1, 0, 1):
        records.write(batch, {"a": batch})
    assert records_of(spark, tmp_path).newest() == (1, {"a": 1})
    with pytest.raises(PrivacyError, match="has a record already"):
        records.write(1, {"a": 3})
    with pytest.raises(ParameterError, match="another query: its column was x, not y"):
        records_of(spark, tmp_path, "y").newest()
    shutil.rmtree(tmp_path / FOLDER)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "4").write_text("torn", encoding="utf-8")
    with pytest.raises(TableError, match="damaged"):
        records.newest()


def test_stream_checkpoint__keeps_two_records_and_nothing_that_a_kill_has_left(spark: Any, tmp_path: Path) -> None:
    records = records_of(spark, tmp_path)
    records.write(-1, {})
    (tmp_path / FOLDER / "draft-1-abc").write_text("half", encoding="utf-8")
    for batch in range(4):
        records.write(batch, {})
    assert sorted(path.name for path in (tmp_path / FOLDER).glob("[!.]*")) == ["2", "3"]
    assert (tmp_path / FOLDER / "3").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / FOLDER).stat().st_mode & 0o777 == 0o700


def test_stream_checkpoint__releases_nothing_on_a_driver_that_slept_while_another_went_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked, and found no record of its batch; when it wakes, that record was written and removed again."""
    slow, fast = (records_of(spark, tmp_path) for _ in range(2))
    looked: Iterator[list[int]] = iter([[]])
    numbers = slow._numbers

    def look() -> list[int]:
        before = next(looked, None)
        if before is None:
            return numbers()
        for batch in (4, 5, 6):
            fast.write(batch, {"driver": "fast"})
        return before

    monkeypatch.setattr(slow, "_numbers", look)
    with pytest.raises(PrivacyError, match="Batch 4 had a record already"):
        slow.write(4, {"driver": "slow"})
    assert fast.newest() == (6, {"driver": "fast"})


@pytest.mark.parametrize("how", ["a link", "a rename"])
def test_stream_checkpoint__lets_one_of_two_drivers_write_a_batch(
    how: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked, and found no record; then both write."""
    monkeypatch.setattr(Records, "_numbers", lambda _: [])
    if how == "a rename":

        def no_links(*_: Any) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "link", no_links)
    drivers = [records_of(spark, tmp_path) for _ in range(2)]
    drivers[0].write(4, {"driver": 0})
    with pytest.raises(PrivacyError, match="Batch 4 has a record already"):
        drivers[1].write(4, {"driver": 1})
    monkeypatch.undo()
    assert drivers[1].newest() == (4, {"driver": 0})
    assert not list((tmp_path / FOLDER).glob("*draft*"))
