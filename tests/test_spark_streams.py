"""Streams on Spark: what ends one is said in a sentence, a record is written once, a ledger is charged once."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark_files import FOLDER, Records
from dpfrugal.errors import ItemError, PrivacyError, ReplayError

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
def test_a_refusal_in_a_running_stream_is_a_sentence(keyed: bool, spark: Any, tmp_path: Path) -> None:
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


def test_an_error_of_the_sink_is_the_sinks_own(spark: Any, tmp_path: Path) -> None:
    def sink(*_: Any) -> None:
        raise KeyError("of the sink")

    stream = stream_of(spark, tmp_path / "in", batches=1)
    query = dps.stream_quantiles_by(
        *(stream, "x"), by="key", quantiles=0.5, guarantee=GUARANTEE, keys=[0], checkpoint=str(tmp_path / "c"),
        sink=sink, **ONCE,
    )  # fmt: skip
    with pytest.raises(StreamingQueryException, match="of the sink"):
        query.awaitTermination()


def test_a_driver_that_slept_while_another_went_on_releases_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked, and found no record of its batch; when it wakes, that record was written and removed again."""
    slow, fast = (Records(spark, str(tmp_path), {"column": "x"}) for _ in range(2))
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
def test_of_two_drivers_one_writes_a_batch(
    how: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked, and found no record; then both write."""
    monkeypatch.setattr(Records, "_numbers", lambda _: [])
    if how == "a rename":

        def no_links(*_: Any) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "link", no_links)
    drivers = [Records(spark, str(tmp_path), {"column": "x"}) for _ in range(2)]
    drivers[0].write(4, {"driver": 0})
    with pytest.raises(PrivacyError, match="Batch 4 has a record already"):
        drivers[1].write(4, {"driver": 1})
    monkeypatch.undo()
    assert drivers[1].newest() == (4, {"driver": 0})
    assert not list((tmp_path / FOLDER).glob("*draft*"))


def test_a_stream_per_key_is_charged_once(spark: Any, tmp_path: Path) -> None:
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
