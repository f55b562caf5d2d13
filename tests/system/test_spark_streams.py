"""Streams on Spark: what ends one is said in a sentence, a record is written once, a ledger is charged once."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark.stream_checkpoint import FOLDER, Records
from dpfrugal.errors import (
    ItemError,
    LedgerError,
    ParameterError,
    ParameterTypeError,
    PrivacyError,
    ReplayError,
    TableError,
)

pytestmark = pytest.mark.spark
GUARANTEE = dpf.PureDP(epsilon=1.0)
ONCE: dict[str, Any] = {"trigger": {"availableNow": True}}


def stream_of(spark: Any, folder: Path, rows: str = "cast(id % 100 as double) AS x", batches: int = 3) -> Any:
    df = spark.range(3_000).selectExpr(rows, "id % 4 AS key", "id")
    if not folder.exists():
        for part in range(batches):
            df.where(f"id % {batches} = {part}").coalesce(1).write.mode("append").parquet(str(folder))
    return spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@pytest.mark.parametrize("keyed", [False, True])
def test_spark_stream__refuses_in_a_sentence_while_it_runs(keyed: bool, spark: Any, tmp_path: Path) -> None:
    stream = stream_of(spark, tmp_path / "in", "if(id = 1500, null, 1.0D) AS x", batches=1)
    common: dict[str, Any] = {"checkpoint": str(tmp_path / "c"), "sink": lambda *_: None, **ONCE}
    if keyed:
        query = dps.stream_quantiles_by(
            stream, "x", by="key", quantiles=0.5, guarantee=GUARANTEE, keys=[0, 1], **common
        )
    else:
        query = dps.stream_private_quantiles(stream, "x", 0.5, GUARANTEE, **common)
    with pytest.raises(ItemError, match="NaN or null") as caught:
        query.awaitTermination()
    assert "\n" not in str(caught.value)
    assert isinstance(query.exception(), ItemError)
    assert not query.isActive
    assert not list((tmp_path / "c" / FOLDER).glob("[0-9]*"))  # nothing of the batch was taken


def test_spark_stream__raises_the_sinks_own_error(spark: Any, tmp_path: Path) -> None:
    def sink(*_: Any) -> None:
        raise KeyError("of the sink")

    stream = stream_of(spark, tmp_path / "in", batches=1)
    query = dps.stream_quantiles_by(
        *(stream, "x"), by="key", quantiles=0.5, guarantee=GUARANTEE, keys=[0], checkpoint=str(tmp_path / "c"),
        sink=sink, **ONCE,
    )  # fmt: skip
    with pytest.raises(StreamingQueryException, match="of the sink"):
        query.awaitTermination()


def test_spark_stream__releases_nothing_on_a_driver_that_slept_while_another_went_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked, and found no record of its batch; when it wakes, that record was written and removed again."""
    slow, fast = (Records(spark, str(tmp_path), {"column": "x"}).ready() for _ in range(2))
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


def test_spark_stream__removes_nothing_of_a_later_batch_on_a_driver_that_slept(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = (Records(spark, str(tmp_path), {"column": "x"}).ready() for _ in range(2))
    names = slow._names
    looks = 0

    def look() -> list[str]:
        nonlocal looks
        looks += 1
        if looks == 3:  # to clear away; a later record would have been noticed before
            monkeypatch.undo()
            table = fast.write_frame("people-5", spark.range(3))
            fast.write(5, {"driver": "fast"}, [table])
        return names()

    monkeypatch.setattr(slow, "_names", look)
    slow.write(4, {"driver": "slow"})
    assert fast.newest() == (5, {"driver": "fast"})
    assert [path.name[:8] for path in (tmp_path / FOLDER).glob("people-*")] == ["people-5"]
    assert (tmp_path / FOLDER / "5").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / FOLDER).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("keyed", [False, True])
def test_spark_stream_checkpoint__that_is_restored_shows_no_row_again(keyed: bool, spark: Any, tmp_path: Path) -> None:
    """All of the folder, Spark's own files included, from before a release that was shown; or only a part of it."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=GUARANTEE)
    checkpoint, copy = tmp_path / "c", tmp_path / "copy"
    shown: list[int] = []

    def run() -> None:
        def sink(_: Any, batch: int) -> None:
            if batch == 1 and not copy.exists():
                shutil.copytree(checkpoint, copy)
            shown.append(batch)

        budget: dict[str, Any] = {"ledger": ledger, "dataset": "rows", "checkpoint": checkpoint, "sink": sink, **ONCE}
        stream = stream_of(spark, tmp_path / "in")
        if keyed:
            by: dict[str, Any] = {"by": "key", "quantiles": 0.5, "guarantee": GUARANTEE, "keys": [0, 1]}
            dps.stream_quantiles_by(stream, "x", **by, **budget).awaitTermination()
        else:
            dps.stream_private_quantiles(stream, "x", 0.5, GUARANTEE, **budget).awaitTermination()

    run()
    assert shown == [0, 1, 2]
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    with pytest.raises(ReplayError, match="an older copy"):
        run()
    shutil.rmtree(checkpoint / FOLDER)
    with pytest.raises((PrivacyError, dpf.BudgetExceeded)):
        run()
    ledger = dpf.Ledger(tmp_path / "another.db", total=GUARANTEE)
    with pytest.raises(PrivacyError, match="Batch 1 came where batch 0 is next"):
        run()
    assert shown == [0, 1, 2]


def test_spark_stream__of_one_large_batch_is_as_good_as_a_table(spark: Any, tmp_path: Path) -> None:
    """What is added to the error of the exact quantile has a standard deviation below 0.3 of the unit of the bound."""
    spark.range(600_000, numPartitions=4).selectExpr("cast(id as double) AS x").write.parquet(str(tmp_path / "in"))
    shown: list[Any] = []
    stream = spark.readStream.schema("x double").parquet(str(tmp_path / "in"))
    dps.stream_private_quantiles(
        stream,
        "x",
        [0.5, 0.9],
        GUARANTEE,
        checkpoint=tmp_path / "c",
        sink=lambda release, _: shown.append(release),
        **ONCE,
    ).awaitTermination()
    (release,) = shown
    for q, value in zip(release.quantiles, release.values, strict=True):
        assert abs(value / 600_000 - q) < 3 * (q * (1 - q) / 600_000) ** 0.5
    assert release.items == 600_000


def test_spark_stream__that_cannot_start_is_refused_in_a_sentence(spark: Any, tmp_path: Path) -> None:
    stream = stream_of(spark, tmp_path / "in")
    (tmp_path / "file").write_text("", encoding="utf-8")
    by: dict[str, Any] = {"by": "key", "quantiles": 0.5, "guarantee": GUARANTEE, "keys": [0, 1]}
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TableError, "must be a folder that can be written to", {"checkpoint": tmp_path / "file"}),
        (TableError, "must be a folder that can be written to", {"checkpoint": "/proc/none"}),
        (TableError, "must be a folder that can be written to", {"checkpoint": "nowhere://host/folder"}),
        (ParameterTypeError, "sink must take two arguments, a table and a batch id", {"sink": lambda _: None}),
        (ParameterTypeError, "sink must be a function of a table", {"sink": None}),
        (ParameterTypeError, "trigger must be a dictionary", {"trigger": "10 seconds"}),
        (ParameterTypeError, "release_every must be an integer, not str", {"release_every": "3"}),
        (ParameterError, "release_every must be at least 1", {"release_every": 0}),
        (ParameterTypeError, "There is no option 'threads'; there are adaptive_steps", {"threads": 2}),
        (ParameterError, "exclude each other", {"discover_keys": dpf.ApproxDP(epsilon=1.0, delta=1e-6)}),
    ]
    for kind, sentence, given in refused:
        options: dict[str, Any] = {"checkpoint": tmp_path / "c", "sink": print, **by, **given}
        with pytest.raises(kind, match=sentence) as caught:
            dps.stream_quantiles_by(stream, "x", **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(ParameterTypeError, match="There is no option 'person'"):
        dps.private_quantiles(spark.range(3), "id", 0.5, GUARANTEE, person="id")  # type: ignore[call-arg]


def test_spark_stream__restarted_with_other_parameters_says_which(spark: Any, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=9.0))
    stream = stream_of(spark, tmp_path / "in")
    by: dict[str, Any] = {
        "by": "key",
        "quantiles": 0.5,
        "guarantee": GUARANTEE,
        "keys": [0, 1],
        "sink": lambda *_: None,
    }
    by |= {"checkpoint": tmp_path / "c", "ledger": ledger, "dataset": "rows", **ONCE}
    dps.stream_quantiles_by(stream, "x", **by).awaitTermination()
    refused: list[tuple[str, dict[str, Any]]] = [
        ("its keys are others", {"keys": [0, 2]}),
        (r"its quantiles was \[0.5\], not \[0.9\]", {"quantiles": 0.9}),
        ("its epsilon was 1.0, not 2.0", {"guarantee": dpf.PureDP(epsilon=2.0)}),
        ("its decimals was None, not 2", {"decimals": 2}),
        ("charged to the dataset 'rows'", {"dataset": "others"}),
    ]
    for sentence, given in refused:
        with pytest.raises(ParameterError, match=sentence):
            dps.stream_quantiles_by(stream, "x", **by | given)
    free = {"checkpoint": tmp_path / "free", "ledger": None, "dataset": None}
    dps.stream_quantiles_by(stream, "x", **by | free).awaitTermination()
    with pytest.raises(LedgerError, match="never charged to a ledger"):
        dps.stream_quantiles_by(stream, "x", **by | {"checkpoint": tmp_path / "free"})
    one: dict[str, Any] = {"checkpoint": tmp_path / "one", "sink": lambda *_: None, **ONCE}
    dps.stream_private_quantiles(stream, "x", 0.5, GUARANTEE, **one).awaitTermination()
    with pytest.raises(ParameterError, match=r"its quantiles was \[0.5\], not \[0.25\]"):
        dps.stream_private_quantiles(stream, "x", 0.25, GUARANTEE, **one)


@pytest.mark.parametrize("how", ["a link", "a rename"])
def test_spark_stream__lets_one_of_two_drivers_write_a_batch(
    how: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked, and found no record; then both write."""
    monkeypatch.setattr(Records, "_numbers", lambda _: [])
    if how == "a rename":

        def no_links(*_: Any) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "link", no_links)
    drivers = [Records(spark, str(tmp_path), {"column": "x"}).ready() for _ in range(2)]
    drivers[0].write(4, {"driver": 0})
    with pytest.raises(PrivacyError, match="Batch 4 has a record already"):
        drivers[1].write(4, {"driver": 1})
    monkeypatch.undo()
    assert drivers[1].newest() == (4, {"driver": 0})
    assert not list((tmp_path / FOLDER).glob("*draft*"))


def test_spark_stream_by_key__is_charged_once(spark: Any, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=1.5))
    shown: dict[int, list[Any]] = {}

    def start(checkpoint: str, **budget: Any) -> Any:
        def sink(table: Any, batch: int) -> None:
            shown.setdefault(batch, []).append([row.value for row in table.collect()])
            if batch == 1 and len(shown[1]) == 1:
                raise RuntimeError("killed between the sink and Spark's commit")

        return dps.stream_quantiles_by(
            stream_of(spark, tmp_path / "in"), "x", by="key", quantiles=0.5, guarantee=GUARANTEE, keys=[0, 1, 2],
            checkpoint=str(tmp_path / checkpoint), sink=sink, **ONCE, **budget,
        )  # fmt: skip

    budget = {"ledger": ledger, "dataset": "rows"}
    with suppress(StreamingQueryException):
        start("c", **budget).awaitTermination()
    assert ledger.left("rows") == dpf.PureDP(epsilon=0.5)
    with pytest.raises(ReplayError, match="charged to a ledger"):
        start("c")
    start("c", **budget).awaitTermination()
    assert ledger.left("rows") == dpf.PureDP(epsilon=0.5)
    assert shown.keys() == {0, 1, 2}
    assert len(shown[1]) == 2
    assert shown[1][0] == shown[1][1]  # equal by chance with a probability below 1e-2: the noise is really drawn
    with pytest.raises(dpf.BudgetExceeded):
        start("another", **budget)
