"""Spark: the same answers and the same guarantees, whatever Spark runs twice."""

import gc
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark import table
from dpfrugal.engines.spark.person_limits import Bounds
from dpfrugal.engines.spark.stream_checkpoint import FOLDER
from dpfrugal.engines.spark.unordered_walk.secret_words import word
from dpfrugal.engines.spark.unordered_walk.walker import walk_rows_plainly
from dpfrugal.engines.spark.worker import InWorker, run
from dpfrugal.errors import DPFrugalError, ItemError, ParameterError, ParameterTypeError, PrivacyError, TableError
from dpfrugal.estimators.grid import Grid
from dpfrugal.estimators.segments import planner
from dpfrugal.privacy import noise
from tests.support.repository import ROOT

pytestmark = pytest.mark.spark
GUARANTEE = dpf.PureDP(epsilon=1.0)
MISSING_MODULE = "dpfrugal_is_not_here"


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """No noise, and how many numbers asked for some: what is left is exact."""
    asked: list[int] = []

    def none(values: Any, *_: Any) -> Any:
        asked.append(len(values))
        return values if isinstance(values, np.ndarray) else [int(value) for value in values]

    monkeypatch.setattr(planner, "add_noise", none)
    monkeypatch.setattr(noise, "add_noise_to_many", none)
    monkeypatch.setattr(noise, "add_noise", none)
    return asked


@pytest.fixture
def ordered(spark: Any, tmp_path: Path) -> Any:
    """A table of 16 partitions in order of time, whose items rise with it."""
    path = str(tmp_path / "ordered")
    spark.range(400_000, numPartitions=16).selectExpr("cast(id as double) AS x", "id AS at").write.parquet(path)
    return spark.read.parquet(path)


def test_spark_table__is_as_good_in_order_of_time_as_shuffled(ordered: Any) -> None:
    # The added error has a standard deviation below 0.3 of the unit of the bound. That the stretches of time which a
    # stream would have for segments do not do is shown in test_engines.
    release = dps.private_quantiles(ordered, "x", [0.5, 0.9], GUARANTEE)
    for q, value in zip(release.quantiles, release.values, strict=True):
        assert abs(value / 400_000 - q) < 3 * (q * (1 - q) / 400_000) ** 0.5
    assert release.items == 400_000


def test_spark_table_by_key__is_walked_in_order_of_time_like_a_shuffled_one(ordered: Any) -> None:
    """The walk has a standard deviation of 316; in order of time it would go 50,000 down, and come back half of it."""
    df = ordered.selectExpr("x", "at % 2 AS key", "at")
    by: dict[str, Any] = {"by": "key", "quantiles": 0.5, "guarantee": GUARANTEE, "keys": [0, 1], "start": 200_000.0}
    assert all(abs(row.value - 200_000) < 3_000 for row in dps.quantiles_by(df, "x", **by).collect())
    in_time = dps.quantiles_by(df, "x", order_by="at", **by).collect()  # the leg that must fail
    assert all(abs(row.value - 200_000) > 3_000 for row in in_time)


def test_spark_table__is_scanned_twice_and_never_again(ordered: Any, spark: Any) -> None:
    read = spark.sparkContext.accumulator(0)

    def noted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            read.add(len(batch))
            yield batch

    dps.private_quantiles(ordered.mapInArrow(noted, ordered.schema), "x", [0.1, 0.5, 0.99], GUARANTEE)
    assert read.value == 2 * 400_000


def test_spark_table__has_every_row_in_the_sample_or_in_the_rest(ordered: Any) -> None:
    rows = table.Rows(ordered, "x")
    sample = rows.sample(20_000)
    values = np.array(sample.items.to_pylist())
    assert 15_000 < sample.size < 25_000
    assert np.unique(values).size == sample.size
    assert abs(np.corrcoef(values, np.arange(values.size))[0, 1]) < 0.1  # in no order of time: 12 standard deviations
    edges = np.arange(10_000.0, 400_000.0, 40_000.0)
    rest = rows.rest(edges)
    inside = np.histogram(values, np.array([-1.0, *edges, 4e5]))[0]
    whole = np.histogram(np.arange(400_000.0), np.array([-1.0, *edges, 4e5]))[0]
    assert np.array_equal(rest.bins + inside, whole)
    assert rest.fingerprint == sample.fingerprint != 0
    # A leg that must fail: another order of the rows is noticed.
    rows._rows = table.Rows(ordered.orderBy("x", ascending=False), "x")._rows
    assert rows.rest(edges).fingerprint != sample.fingerprint


def test_spark_table__sends_edges_to_spark_exactly(spark: Any) -> None:
    numbers = [-1e308, -1.5, 0.0, 5e-324, 0.1, 0.1 + 2**-56, 1e22, 1e300]
    df = spark.createDataFrame([(number,) for number in [*numbers, float("-inf"), float("inf")]], "x double")
    edges = np.array(numbers)
    expected = np.diff(np.searchsorted(np.sort([*numbers, -np.inf, np.inf]), edges), prepend=0, append=10)
    assert table.counts(df, "x", edges).bins.tolist() == expected.tolist()
    largest = [-(2**63), -(2**53) - 1, 0, 2**53, 2**53 + 1, 2**63 - 1]
    longs = spark.createDataFrame([(number,) for number in largest], "x bigint")
    edges = np.array([-(2.0**63), -(2.0**53), 0.5, 2.0**53 + 2, 2.0**63])
    assert table.counts(longs, "x", edges).bins.tolist() == [0, 2, 1, 2, 1, 0]


def test_spark_worker__passes_everything_on_and_sets_aside_what_is_loaded() -> None:
    class Work:
        def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
            yield from batches

    before = gc.get_freeze_count()
    try:
        assert list(InWorker(Work())(iter([3, 1, 2]))) == [3, 1, 2]
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


def failing_once(batches: Iterator[Any]) -> Iterator[Any]:
    """Passes rows on, and dies half way in every task's first attempt."""
    from pyspark import TaskContext

    for batch in batches:
        if TaskContext.get().attemptNumber() == 0:
            yield batch.slice(0, len(batch) // 2)
            raise RuntimeError("this attempt dies")
        yield batch


def test_spark_table__counts_no_row_twice_when_tasks_run_again(ordered: Any, without_noise: list[int]) -> None:
    small = ordered.where("at % 40 = 0").coalesce(2)
    small = small.selectExpr("x", "at", "at % 7 AS key")
    flaky = small.mapInArrow(failing_once, small.schema)
    options: dict[str, Any] = {"decimals": 0, "start": 100.0, "coin_seed": 5, "order_by": "at", "keys": list(range(5))}
    tables, drawn = [], []
    for df in (small, flaky):
        without_noise.clear()
        by = dps.quantiles_by(df, "x", by="key", quantiles=[0.5, 0.9], guarantee=GUARANTEE, **options)
        assert sum(without_noise) == 10  # two quantiles of five keys, once
        tables.append(sorted(by.collect()))
        assert sorted(by.collect()) == tables[-1]
        assert sum(without_noise) == 10
        drawn.append(table.counts(df, "x", np.array([1e5, 2e5])).bins.tolist())
    assert tables[0] == tables[1]
    assert drawn[0] == drawn[1] == [2500, 2500, 5000]
    assert dps.private_quantiles(flaky, "x", 0.5, GUARANTEE).items == 10_000


def test_spark_worker__loads_no_sampler(spark: Any) -> None:
    def loaded(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        import pyarrow as pa

        from dpfrugal.engines.spark.unordered_walk.walker import Walker

        for _ in batches:
            found = list(Walker((0.5,), 0, 1, np.zeros((1, 1), dtype=np.int64))(iter([])))
            yield pa.record_batch({"loaded": [len(found) != 1 or "opendp" in sys.modules]})

    assert [row.loaded for row in spark.range(1).mapInArrow(loaded, "loaded boolean").collect()] == [False]


def test_spark_table_by_key__equals_the_plain_walk(spark: Any, without_noise: list[int]) -> None:
    rows = [(f"k{i % 5}" if i % 11 else None, float(i * 7919 % 1000) if i % 13 else None, -i) for i in range(4000)]
    df = spark.createDataFrame(rows, "key string, x double, at int").repartition(3, "at")
    path = dps.quantiles_by.__globals__["KeyedDPFrugal1U"](
        [0.5, 0.9], GUARANTEE, keys=["a"], decimals=1, coin_seed=9
    )._state.path
    numbered = df.withColumn("row", F.monotonically_increasing_id()).orderBy("at").collect()
    keys = ["k3", "k0", "none of the rows has this", "k1"]
    estimates = np.full((4, 2), Grid(1).start(400.0), dtype=np.int64)
    for row in numbered:
        if row.key in keys and row.x is not None:
            own = np.array([word(path.key, row.row)], dtype=np.uint64)
            walk_rows_plainly(
                estimates, None, own, np.array([keys.index(row.key)], dtype=np.int32), np.array([row.x]), path
            )
    options: dict[str, Any] = {"decimals": 1, "start": 400.0, "coin_seed": 9, "nan_policy": "omit", "null_keys": "drop"}
    found = dps.quantiles_by(
        df, "x", by="key", quantiles=[0.5, 0.9], guarantee=GUARANTEE, keys=keys, order_by="at", **options
    )
    assert found.columns == ["key", "quantile", "value", "alpha"]
    values = {(row.key, row["quantile"]): row.value for row in found.collect()}
    expected = {(key, q): estimates[i, k] / 10 for i, key in enumerate(keys) for k, q in enumerate((0.5, 0.9))}
    assert values == expected
    assert not np.array_equal(estimates, np.full((4, 2), 4000))


def test_spark_person_limits__hold_for_the_rows_of_a_person(spark: Any) -> None:
    columns = ("cast(id % 4 - 1 as int) AS code", "id AS row", "id % 3 AS person", "id % 4 AS key")
    rows = spark.range(600).selectExpr(*columns)
    once = Bounds(5, None, 7).bounded(rows, 2)
    assert once.where("code >= 0").count() == 15
    assert once.count() == 600
    kept = Bounds(2, 2, 7).bounded(rows, 2).where("code >= 0").groupBy("person", "code").count()
    assert sorted(row["count"] for row in kept.collect()) == [2] * 6
    assert Bounds(5, None, 7, undeclared=True).bounded(rows, 2).where("code >= -1").count() == 15


def test_spark_person_limits__do_not_depend_on_other_keys(spark: Any) -> None:
    """A key that another person brings changes codes; the keys that were chosen for this one must stay."""

    def chosen(code: str) -> set[int]:
        columns = (f"cast({code} as int) AS code", "id AS row", "1 AS person", "id % 20 AS key")
        kept = Bounds(2, 3, 7).bounded(spark.range(200).selectExpr(*columns), 2).where("code >= 0")
        return {row.key for row in kept.select("key").distinct().collect()}

    assert len(chosen("id % 20")) == 3
    assert chosen("id % 20") == chosen("id % 20 + 1") == chosen("19 - id % 20")


@pytest.mark.parametrize("order_by", [None, "at"])
def test_spark_table_by_key__walks_a_row_in_one_round(
    order_by: str | None, spark: Any, without_noise: list[int]
) -> None:
    """A row above almost always moves its estimate by one step up, so that the estimate counts rows."""
    df = spark.range(9_000, numPartitions=3).selectExpr("1e6D AS x", "id % 3 AS key", "-id AS at")
    by: dict[str, Any] = {"by": "key", "quantiles": 0.999999, "guarantee": GUARANTEE, "keys": [0, 1], "coin_seed": 1}
    by |= {"order_by": order_by, "adaptive_steps": False}
    for rounds in (1, 2, 7):
        without_noise.clear()
        found = dps.quantiles_by(df, "x", rounds=rounds, **by)
        assert [row.value for row in found.collect()] == [3000, 3000]
        assert without_noise == [2] * rounds
    one = df.limit(1)
    assert dps.quantiles_by(one, "x", rounds=5, **by).count() == 2
    with pytest.raises(ItemError, match="no rows"):
        dps.quantiles_by(df.limit(0), "x", rounds=5, **by)
    with pytest.raises(ItemError, match="NaN or null"):
        dps.quantiles_by(df.withColumn("x", F.when(df["at"] < 0, df.x)), "x", rounds=5, **by)
    with pytest.raises(ParameterError, match="rounds must be at least 1"):
        dps.quantiles_by(df, "x", rounds=0, **by)


def test_spark_table_by_key__adapts_steps_over_rounds(spark: Any) -> None:
    df = spark.range(60_000, numPartitions=2).selectExpr("50000 + 100 * randn(1) AS x", "id % 3 AS key")
    by: dict[str, Any] = {"by": "key", "quantiles": 0.5, "guarantee": GUARANTEE}
    once = dps.quantiles_by(df, "x", keys=[0, 1, 2], **by)
    assert max(row.value for row in once.collect()) < 21_000  # a step a row
    cost = dpf.ApproxDP(epsilon=1.0, delta=1e-9)
    found = dps.quantiles_by(df, "x", rounds=25, discover_keys=cost, **by).collect()
    assert [row.key for row in found] == [0, 1, 2]  # wrong with probability below 3e-9
    assert all(abs(row.value - 50_000) < 500 for row in found)  # below 60 in forty runs


def test_spark_table_by_key__does_not_gather_rows_again_that_are_lost_between_rounds(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losing(values: Any, *_: Any) -> Any:
        for held in spark.sparkContext._jsc.getPersistentRDDs().values():
            held.unpersist()
        return values

    monkeypatch.setattr(noise, "add_noise_to_many", losing)
    df = spark.range(100).selectExpr("cast(id as double) AS x", "id % 3 AS key")
    with pytest.raises(TableError, match="lost between two rounds") as caught:
        dps.quantiles_by(df, "x", by="key", quantiles=0.5, guarantee=GUARANTEE, keys=[0], rounds=2)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_spark_key_discovery__finds_keys(spark: Any) -> None:
    df = spark.range(20_000).selectExpr("if(id = 7, 'rare', concat('k', id % 3)) AS key", "id % 100 AS x")
    cost = dpf.ApproxDP(epsilon=1.0, delta=1e-9)
    found = dps.quantiles_by(df, "x", by="key", quantiles=0.5, guarantee=GUARANTEE, discover_keys=cost)
    assert sorted(row.key for row in found.collect()) == ["k0", "k1", "k2"]  # wrong with probability below 2e-9


def test_spark_key_discovery__makes_no_key_known_by_one_person_with_many_rows(
    spark: Any, without_noise: list[int]
) -> None:
    """Without noise the threshold is exact: 3 rows of each of 40 people are enough, 200 rows of one are not."""
    rows = [(f"k{i % 2}", i % 50, f"p{i % 40}") for i in range(400)] + [("own", 5, "p40")] * 200 + [(None, 5, "p41")]
    df = spark.createDataFrame(rows, "key string, x int, person string").repartition(3)
    by: dict[str, Any] = {"by": "key", "quantiles": 0.5, "guarantee": GUARANTEE, "null_keys": "drop"}
    by |= {"discover_keys": dpf.ApproxDP(epsilon=1.0, delta=1e-3), "max_items_per_person": 3}
    bounded = dps.quantiles_by(df, "x", person="person", **by)
    assert sorted(row.key for row in bounded.collect()) == ["k0", "k1"]
    # The leg that must fail: nobody counts people.
    assert sorted(row.key for row in dps.quantiles_by(df, "x", **by).collect()) == ["k0", "k1", "own"]
    cost = dpf.ApproxDP(epsilon=1.0, delta=1e-6)  # a threshold of 28, and 20 people with a row each for a key
    one = {"max_items_per_person": 1, "max_keys_per_person": 1, "discover_keys": cost}
    assert dps.quantiles_by(df, "x", person="person", **by | one).count() == 0
    nobody = df.withColumn("person", F.when(df.x != 5, df.person))
    with pytest.raises(ItemError, match="person has null ids"):
        dps.quantiles_by(nobody, "x", person="person", **by)
    with pytest.raises(ItemError, match="no rows"):
        dps.quantiles_by(df.limit(0), "x", person="person", **by)


def batches_of(spark: Any, folder: Path) -> Any:
    df = spark.range(30_000).selectExpr("cast(id % 1000 as double) AS x", "id % 4 AS key")
    if not folder.exists():
        for part in range(6):
            df.where(f"id % 6 = {part}").coalesce(1).write.mode("append").parquet(str(folder))
    return spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


@pytest.mark.parametrize("keyed", [False, True])
def test_spark_stream__gives_a_replayed_batch_the_release_it_had(
    keyed: bool, spark: Any, tmp_path: Path, without_noise: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "secrets", SimpleNamespace(token_hex=lambda size: "5a" * size))

    def run(checkpoint: str, dies_at: int | None) -> dict[int, list[Any]]:
        shown: dict[int, list[Any]] = {}

        def sink(release: Any, batch_id: int) -> None:
            seen = release.values if not keyed else tuple(row.value for row in release.collect())
            shown.setdefault(batch_id, []).append(seen)
            if batch_id == dies_at and len(shown[batch_id]) == 1:
                raise RuntimeError("killed between the sink and Spark's commit")

        for _ in range(2 if dies_at is not None else 1):
            stream = batches_of(spark, tmp_path / "in")
            common: dict[str, Any] = {"checkpoint": checkpoint, "sink": sink, "trigger": {"availableNow": True}}
            if keyed:
                options: dict[str, Any] = {
                    "keys": [0, 1, 2],
                    "release_every": 2,
                    "coin_seed": 3,
                    "start": 400.0,
                    **common,
                }
                query = dps.stream_quantiles_by(stream, "x", by="key", quantiles=0.5, guarantee=GUARANTEE, **options)
            else:
                query = dps.stream_private_quantiles(stream, "x", [0.5, 0.9], GUARANTEE, **common)
            with suppress(StreamingQueryException):
                query.awaitTermination()
        return shown

    calm = run(str(tmp_path / "calm"), None)
    drawn = sum(without_noise)
    without_noise.clear()
    shaken = run(str(tmp_path / "shaken"), 3)
    assert set(calm) == set(shaken) == ({1, 3, 5} if keyed else {0, 1, 2, 3, 4, 5})
    assert len(shaken[3]) == 2
    assert all(set(shaken[batch]) == set(calm[batch]) for batch in calm)
    assert sum(without_noise) == drawn
    newest = max(int(path.name) for path in (tmp_path / "calm" / FOLDER).iterdir() if path.name.isdigit())
    assert newest == 5


def test_spark_stream_checkpoint__of_another_query_or_a_damaged_one_is_refused(spark: Any, tmp_path: Path) -> None:
    from dpfrugal.engines.spark.stream_checkpoint import Records

    records = Records(spark, str(tmp_path), {"column": "x"}).ready()
    records.write(0, {"a": 1})
    records.write(1, {"a": 2})
    assert Records(spark, str(tmp_path), {"column": "x"}).ready().newest() == (1, {"a": 2})
    with pytest.raises(PrivacyError, match="has a record already"):
        records.write(1, {"a": 3})
    with pytest.raises(ParameterError, match="another query: its column was x, not y"):
        Records(spark, str(tmp_path), {"column": "y"}).newest()
    shutil.rmtree(tmp_path / FOLDER)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "4").write_text("torn", encoding="utf-8")
    with pytest.raises(TableError, match="damaged"):
        records.newest()


def test_spark__refuses_in_sentences(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1.0, "a", 1), (None, None, 2)], "x double, key string, number int")
    stream = batches_of(spark, tmp_path / "in")
    by: dict[str, Any] = {"quantiles": 0.5, "guarantee": GUARANTEE}
    streamed: dict[str, Any] = {"checkpoint": str(tmp_path / "c"), "sink": print}
    refused: list[tuple[type[DPFrugalError], str, Any]] = [
        (TableError, "no column 'y'", lambda: dps.private_quantiles(df, "y", 0.5, GUARANTEE)),
        (TableError, "must hold numbers; it holds string", lambda: dps.private_quantiles(df, "key", 0.5, GUARANTEE)),
        (ItemError, "NaN or null", lambda: dps.private_quantiles(df, "x", 0.5, GUARANTEE)),
        (ItemError, "no rows", lambda: dps.private_quantiles(df.limit(0), "x", 0.5, GUARANTEE)),
        (ParameterTypeError, "is a streaming", lambda: dps.private_quantiles(stream, "x", 0.5, GUARANTEE)),
        (
            ParameterTypeError,
            "Spark DataFrame, not builtins.list",
            lambda: dps.private_quantiles([], "x", 0.5, GUARANTEE),
        ),
        (
            ParameterTypeError,
            "belongs to Spark Connect",
            lambda: dps.private_quantiles(SimpleNamespace(isStreaming=False, schema=df.schema), "x", 0.5, GUARANTEE),
        ),
        (
            ParameterTypeError,
            "is not a streaming",
            lambda: dps.stream_private_quantiles(df, "x", 0.5, GUARANTEE, **streamed),
        ),
        (
            ParameterTypeError,
            "sink must be",
            lambda: dps.stream_private_quantiles(stream, "x", 0.5, GUARANTEE, checkpoint="c", sink=3),  # type: ignore[arg-type]
        ),
        (
            ParameterError,
            "checkpoint must be",
            lambda: dps.stream_private_quantiles(stream, "x", 0.5, GUARANTEE, checkpoint="", sink=print),
        ),
        (ParameterError, "keys or discover_keys", lambda: dps.quantiles_by(df, "x", by="key", **by)),
        (ParameterTypeError, "cannot be compared", lambda: dps.quantiles_by(df, "x", by="key", keys=[1, 2], **by)),
        (ParameterError, "same key twice", lambda: dps.quantiles_by(df, "x", by="key", keys=["a", "a"], **by)),
        (ItemError, "null keys", lambda: dps.quantiles_by(df, "x", by="key", keys=["a"], **by)),
        (
            ItemError,
            "NaN or null items",
            lambda: dps.quantiles_by(df, "x", by="key", keys=["a"], null_keys="drop", **by),
        ),
        (
            ParameterError,
            "keys has several columns, and none of them is 'key'",
            lambda: dps.quantiles_by(df, "x", by="key", keys=df.toDF("a", "b", "c"), **by),
        ),
        (ParameterError, "partitions", lambda: dps.quantiles_by(df, "x", by="key", keys=["a"], partitions=0, **by)),
        (
            ParameterTypeError,
            "cannot be compared",
            lambda: dps.stream_quantiles_by(stream, "x", by="key", keys=["a"], **by, **streamed),
        ),
    ]
    for kind, sentence, action in refused:
        with pytest.raises(kind, match=sentence) as caught:
            action()
        assert "Py4J" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_spark_worker__without_the_package_is_reported_in_a_sentence(spark: Any) -> None:
    def lacks(batches: Iterator[Any]) -> Iterator[Any]:
        __import__(MISSING_MODULE)
        yield from batches

    with pytest.raises(TableError, match="install dpfrugal") as caught:
        run(spark.range(1).mapInArrow(lacks, "id long").collect)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("module", ["numba", "dpfrugal"])
def test_spark_worker__that_lacks_a_module_is_reported_in_a_sentence(
    module: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of another Python, which has all but that module."""
    lacks = f'raise ModuleNotFoundError("No module named {module!r}", name={module!r})'
    (tmp_path / f"{module}.py").write_text(lacks, encoding="utf-8")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    df = spark.range(10).selectExpr("cast(id as double) AS x", "id AS key")
    with pytest.raises(TableError, match=f"Python has no module {module}: install dpfrugal.* PYSPARK_PYTHON") as caught:
        dps.quantiles_by(df, "x", by="key", quantiles=0.5, guarantee=GUARANTEE, keys=[1])
    assert "\n" not in str(caught.value)
    assert dps.private_quantiles(df, "x", 0.5, GUARANTEE).items == 10  # counting needs no Python there


def test_spark_notebook__runs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = ROOT / "examples"
    monkeypatch.syspath_prepend(str(examples))
    cells = json.loads((examples / "request_logs.ipynb").read_text(encoding="utf-8"))["cells"]
    shown: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), shown)  # noqa: S102
    assert list(shown["endpoints"].endpoint) == ["/home", "/search", "/pay", "/login", "/help"]
    assert shown["endpoints"].value.gt(50).all()  # from 100: far more than the noise
    assert [hour for hour, _ in shown["hours"]] == [0, 6, 12, 18]
    assert (shown["folder"] / "latency.png").stat().st_size > 10_000
    shutil.rmtree(shown["folder"])


def test_spark_keys__that_a_column_cannot_tell_apart_are_refused(spark: Any) -> None:
    """404 and "404" are two keys in Python; in a column they are one text, and a row would move both estimates."""
    df = spark.range(10).selectExpr("cast(id as double) AS x", "'404' AS code")
    with pytest.raises(ParameterError, match="the same once they are of one type"):
        dps.quantiles_by(df, "x", by="code", quantiles=0.5, guarantee=GUARANTEE, keys=[404, "404"])
