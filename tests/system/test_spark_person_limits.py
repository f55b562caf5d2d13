"""Streams on Spark per key: people over many batches, keys that nobody declared, and what is kept in between."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark import person_limits, stream_by_key
from dpfrugal.engines.spark.stream_checkpoint import FOLDER
from dpfrugal.engines.spark.table_by_key import Found
from dpfrugal.errors import ItemError, ParameterError, TableError
from dpfrugal.privacy import noise
from dpfrugal.storage.json_values import array_of

pytestmark = pytest.mark.spark
GUARANTEE = dpf.PureDP(epsilon=1.0)
COST = dpf.ApproxDP(epsilon=1.0, delta=1e-9)
ALMOST_EVERY_ROW = 0.999999  # a row above moves the estimate up by one step, but for one in a million


@pytest.fixture(autouse=True)
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_noise_to_many", lambda values, *_: values)
    monkeypatch.setattr(noise, "add_noise", lambda values, *_: [int(value) for value in values])


class Stream:
    """A stream of one table a batch, and what its sink was given."""

    def __init__(self, spark: Any, folder: Path, batches: list[list[tuple[Any, ...]]], schema: str) -> None:
        self._spark, self._folder, self._schema = spark, folder, schema
        for rows in batches:
            made = spark.createDataFrame(rows, schema).coalesce(1)
            made.write.mode("append").parquet(str(folder / "in"))
        self.shown: dict[int, list[dict[Any, float]]] = {}
        self.types: set[str] = set()

    def run(self, checkpoint: str = "check", dies_at: int | None = None, **options: Any) -> "Stream":
        def sink(table: Any, batch: int) -> None:
            self.types.add(table.schema[0].dataType.simpleString())
            self.shown.setdefault(batch, []).append({row[0]: row.value for row in table.collect()})
            if batch == dies_at and len(self.shown[batch]) == 1:
                raise RuntimeError("killed between the sink and Spark's commit")

        stream = self._spark.readStream.schema(self._schema).option("maxFilesPerTrigger", 1)
        common: dict[str, Any] = {"by": "key", "quantiles": ALMOST_EVERY_ROW, "guarantee": GUARANTEE, "coin_seed": 1}
        common |= {"checkpoint": str(self._folder / checkpoint), "sink": sink, "trigger": {"availableNow": True}}
        common |= {"adaptive_steps": False, **options}
        query = dps.stream_quantiles_by(stream.parquet(str(self._folder / "in")), "x", **common)
        assert isinstance(query, StreamingQuery)
        query.awaitTermination()
        return self

    def left(self, checkpoint: str = "check") -> list[str]:
        """The names of what lies beside Spark's own checkpoint, without numbers."""
        return sorted(path.name.partition("-")[0] for path in (self._folder / checkpoint / FOLDER).glob("[!.]*"))


@pytest.mark.parametrize("parts", [16, 1])
def test_spark_person_limits__bound_a_person_over_all_batches(
    parts: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_limits, "MOST_PARTS", parts)
    batches = [[("a", 1e6, person) for person in ("ann", "ann", "bob")] for _ in range(4)]
    stream = Stream(spark, tmp_path, batches, "key string, x double, person string")
    options: dict[str, Any] = {"keys": ["a"], "person": "person", "max_items_per_person": 3, "dies_at": 2}
    with suppress(StreamingQueryException):
        stream.run(**options)
    stream.run(**options)
    # Ann has her three rows in the first two batches, Bob one in each of the first three.
    assert {batch: tables[-1]["a"] for batch, tables in stream.shown.items()} == {0: 3, 1: 5, 2: 6, 3: 6}
    assert stream.shown[2][0] == stream.shown[2][1]
    assert stream.left() == ["2", "3", *["people"] * (4 if parts > 1 else 1)]
    # The leg that must fail: nobody counts people.
    assert stream.run("uncounted", keys=["a"], max_items_per_person=3).shown[3][-1] == {"a": 12}


def test_spark_person_limits__bound_the_keys_of_a_person_over_all_batches(spark: Any, tmp_path: Path) -> None:
    keys = ["a", "b", "c", "d"]
    batches = [[(key, 1e6, "ann") for key in "aab"], [(key, 1e6, "ann") for key in "bbc"], [("d", 1e6, "ann")]]
    stream = Stream(spark, tmp_path, batches, "key string, x double, person string")
    stream.run(keys=keys, person="person", max_items_per_person=2, max_keys_per_person=3)
    assert stream.shown[2] == [{"a": 2, "b": 2, "c": 1, "d": 0}]
    with pytest.raises(ParameterError, match="another query: its person was person, not None"):
        stream.run(keys=keys, max_items_per_person=2, max_keys_per_person=3)


@pytest.mark.parametrize("release_every", [1, 2])
def test_spark_stream_by_key__discovers_keys(release_every: int, spark: Any, tmp_path: Path) -> None:
    rows = [(f"k{i % 2}", 1e6) for i in range(200)] + [("rare", 1e6)] * 2
    stream = Stream(spark, tmp_path, [rows] * 6, "key string, x double")
    with suppress(StreamingQueryException):
        stream.run(discover_keys=COST, release_every=release_every, dies_at=3)
    stream.run(discover_keys=COST, release_every=release_every, dies_at=3)
    released = range(release_every - 1, 6, release_every)
    assert list(stream.shown) == list(released)
    assert stream.shown[3][0] == stream.shown[3][1]
    for turn, batch in enumerate(released):  # found at the first release, walked from then on
        expected = {f"k{k}": 100 * release_every * turn for k in range(2)} if turn else {}
        assert stream.shown[batch][-1] == expected
    assert stream.types == {"string"}
    assert stream.left() == ["4", "5"]


def test_spark_stream_by_key__makes_no_key_known_by_one_person_with_many_rows(spark: Any, tmp_path: Path) -> None:
    rows = [("own", 1e6, "ann")] * 300 + [("all", 1e6, f"p{i}") for i in range(200)]
    stream = Stream(spark, tmp_path, [rows, rows, rows], "key string, x double, person string")
    options: dict[str, Any] = {"discover_keys": COST, "max_items_per_person": 2}
    assert stream.run(person="person", **options).shown[2][-1] == {"all": 200}
    assert set(stream.run("uncounted", **options).shown[2][-1]) == {"all", "own"}  # the leg that must fail


def test_spark_person_limits__refuse_rows_without_a_person_and_missing_columns(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, [[("a", 1.0, None)]], "key string, x double, person string")
    with pytest.raises(ItemError, match="person has null ids"):
        stream.run(keys=["a"], person="person")
    with pytest.raises(TableError, match="no column 'nobody'"):
        stream.run(keys=["a"], person="nobody")
    with pytest.raises(TableError, match="no column 'nobody'"):
        stream.run(keys=["a"], order_by="nobody")
    with pytest.raises(ParameterError, match="keys or discover_keys"):
        stream.run()


def test_spark_stream_by_key__holds_nothing_raw_on_the_driver_between_releases(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[int] = []

    class Watched(Found):
        def __init__(self, table: Any) -> None:
            super().__init__(table)
            fetched.append(self.codes.size)

    states: list[dict[str, Any]] = []
    recorded = stream_by_key.KeyedStream._state

    def watched(stream: Any) -> dict[str, Any]:
        states.append(recorded(stream))
        return states[-1]

    monkeypatch.setattr(stream_by_key, "Found", Watched)
    monkeypatch.setattr(stream_by_key.KeyedStream, "_state", watched)
    batches = [[("a", 1e6), ("b", 1e6), ("b", 1e6)] for _ in range(6)]
    stream = Stream(spark, tmp_path, batches, "key string, x double").run(keys=["a", "b"], release_every=3)
    assert stream.shown == {2: [{"a": 3, "b": 6}], 5: [{"a": 6, "b": 12}]}
    assert fetched == [0, 0, 2, 0, 0, 2]
    # What the driver records between releases is the start, and then the last release.
    estimates = [array_of(state["estimator"]["estimates"], np.int64).tolist() for state in states]
    assert estimates == [[0, 0]] * 2 + [[3, 6]] * 3 + [[6, 12]]
