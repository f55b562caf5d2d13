"""Private quantiles of DataFrames: answers and keys as DataFrames, tasks that run twice, refusals in sentences."""

import json
import shutil
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.errors import DPFrugalError, ItemError, ParameterError, ParameterTypeError, TableError
from tests.engines.holders import check, codes_by_key, grouped, opened, typed
from tests.support.repository import ROOT

pytestmark = pytest.mark.spark
GUARANTEE = dpf.PureDP(epsilon=1.0)


def failing_once(batches: Iterator[Any]) -> Iterator[Any]:
    """Passes rows on, and dies half way in every task's first attempt."""
    from pyspark import TaskContext

    for batch in batches:
        if TaskContext.get().attemptNumber() == 0:
            yield batch.slice(0, len(batch) // 2)
            raise RuntimeError("this attempt dies")
        yield batch


def test_spark__counts_no_row_twice_when_tasks_run_again(spark: Any) -> None:
    rows = typed()
    frame = spark.createDataFrame(rows).coalesce(2)
    flaky = frame.mapInArrow(failing_once, frame.schema)
    names, _, sizes, found = grouped(opened(flaky, "integer", ("key",)), ("key",))
    check(found, names, sizes, codes_by_key(rows, "integer", ("key",)))


def test_spark__answers_with_a_frame_under_the_names_of_the_keys(spark: Any) -> None:
    df = spark.range(60_000).selectExpr(
        "id % 100 AS x", "concat('k', id % 3) AS route", "cast(id % 2 as int) AS quantile"
    )
    declared = spark.createDataFrame([("k0",), ("k2",)], "name string")
    table = dps.quantiles_by(df, "x", by="route", quantiles=[0.5, 0.9], guarantee=GUARANTEE, keys=declared)
    assert table.columns == ["route", "quantile", "value", "lower", "upper", "rows", "reason"]
    shown = table.collect()
    assert shown == table.collect()  # released numbers: nothing is drawn again
    assert [(row.route, row["quantile"]) for row in shown] == [(k, q) for k in ("k0", "k2") for q in (0.5, 0.9)]
    assert all(abs(row.value - 100 * row["quantile"]) <= 2 for row in shown)
    assert isinstance(shown[0].value, int)
    pairs = spark.createDataFrame([(1, "k0"), (0, "k1")], "quantile int, route string")
    several = dps.quantiles_by(df, "x", 0.5, GUARANTEE, by=["route", "quantile"], keys=pairs)
    assert several.columns[:3] == ["route", "key_quantile", "quantile"]
    assert [row[:2] for row in several.collect()] == [("k0", 1), ("k1", 0)]
    assert dps.private_quantiles(df, "x", 0.5, GUARANTEE, neighbours="add-remove").items is None


def test_spark__hides_a_person_and_charges_the_ledger(spark: Any, tmp_path: Any) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.ApproxDP(epsilon=3.0, delta=1e-5))
    df = spark.range(40_000).selectExpr(
        "id % 100 AS x", "if(id < 3000, 'own', concat('k', id % 3)) AS key", "id % 4000 AS u"
    )
    df = df.selectExpr("x", "key", "if(key = 'own', -1, u) AS who")  # a key that one person has by himself
    options: dict[str, Any] = {"by": "key", "discover_keys": dpf.ApproxDP(epsilon=1.0, delta=1e-6)}
    options |= {"ledger": ledger, "dataset": "rows"}
    bounded = dps.quantiles_by(df, "x", 0.5, GUARANTEE, person="who", max_items_per_person=2, **options)
    assert [row.key for row in bounded.collect()] == ["k0", "k1", "k2"]
    left = ledger.left("rows")
    assert left is not None
    with pytest.raises(dpf.BudgetExceeded):
        dps.quantiles_by(df, "x", 0.5, dpf.PureDP(epsilon=2.0), **options)
    assert ledger.left("rows") == left


def test_spark__refuses_in_sentences_and_says_nothing_else(spark: Any, tmp_path: Any, capfd: Any) -> None:
    df = spark.createDataFrame([(1.0, "a", 1), (None, None, 2)], "x double, key string, number int")
    stream = spark.readStream.format("rate").load()
    failing = df.selectExpr("cast(raise_error('secret') as int) AS x")
    by: dict[str, Any] = {"quantiles": 0.5, "guarantee": GUARANTEE, "by": "key"}
    refused: list[tuple[type[DPFrugalError], str, Any]] = [
        (TableError, "no column 'y'", lambda: dps.private_quantiles(df, "y", 0.5, GUARANTEE)),
        (dpf.ItemTypeError, "must be numbers", lambda: dps.private_quantiles(df, "key", 0.5, GUARANTEE)),
        (ItemError, "NaN or null", lambda: dps.private_quantiles(df, "x", 0.5, GUARANTEE)),
        (ItemError, "no rows", lambda: dps.private_quantiles(df.limit(0), "x", 0.5, GUARANTEE)),
        (ParameterTypeError, "is a streaming", lambda: dps.private_quantiles(stream, "value", 0.5, GUARANTEE)),
        (ParameterTypeError, "is a streaming", lambda: dpf.private_quantiles(stream, 0.5, GUARANTEE, column="value")),
        (
            ParameterTypeError,
            "is a streaming",
            lambda: dpf.quantiles_by(stream, "value", 0.5, GUARANTEE, by="value", keys=[1]),
        ),
        (ParameterTypeError, "not builtins.list", lambda: dps.private_quantiles([], "x", 0.5, GUARANTEE)),
        (
            ParameterTypeError,
            "belongs to Spark Connect",
            lambda: dps.stream_private_quantiles(
                SimpleNamespace(isStreaming=True, schema=df.schema), "x", 0.5, GUARANTEE, checkpoint="c", sink=print
            ),
        ),
        (ParameterError, "keys or discover_keys", lambda: dps.quantiles_by(df, "x", **by)),
        (DPFrugalError, "keys", lambda: dps.quantiles_by(df, "number", keys=[1, 2], **by)),
        (ParameterError, "same key twice", lambda: dps.quantiles_by(df, "x", keys=["a", "a"], **by)),
        (ItemError, "null keys", lambda: dps.quantiles_by(df, "number", keys=["a"], **by)),
        (
            ParameterError,
            "keys has no column 'key'",
            lambda: dps.quantiles_by(df, "x", keys=df.toDF("a", "b", "c"), **by),
        ),
        (ParameterTypeError, "keys must not be a streaming", lambda: dps.quantiles_by(df, "x", keys=stream, **by)),
        (TableError, "plan of the table fails", lambda: dps.private_quantiles(failing, "x", 0.5, GUARANTEE)),
    ]
    for kind, sentence, action in refused:
        with pytest.raises(kind, match=sentence) as caught:
            action()
        assert "Py4J" not in str(caught.value)
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
    said = capfd.readouterr()
    assert "secret" not in said.err + said.out
    assert "at org.apache" not in said.err + said.out


def test_spark__a_table_whose_rows_change_between_two_scans_is_refused(spark: Any, tmp_path: Any) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=GUARANTEE)
    ledger.open("rows", GUARANTEE)

    def some(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch.slice(0, len(batch) - time.time_ns() // 1000 % 100)

    moving = spark.range(400_000, numPartitions=4).mapInArrow(some, "id bigint")
    with pytest.raises(TableError, match="changed while it was read") as caught:
        dps.private_quantiles(moving, "id", 0.5, GUARANTEE, ledger=ledger, dataset="rows")
    assert "Nothing was spent" in caught.value.__notes__[0]
    assert ledger.left("rows") == GUARANTEE


def test_spark__executors_need_no_python(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python")
    df = spark.range(300_000).selectExpr("cast(id as double) AS x", "id % 3 AS key")
    assert abs(dps.private_quantiles(df, "x", 0.5, GUARANTEE).value - 150_000) < 100
    assert dps.quantiles_by(df, "x", 0.5, GUARANTEE, by="key", keys=[1]).count() == 1


def test_spark_notebook__runs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = ROOT / "examples"
    monkeypatch.syspath_prepend(str(examples))
    cells = json.loads((examples / "request_logs.ipynb").read_text(encoding="utf-8"))["cells"]
    shown: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), shown)  # noqa: S102
    assert list(shown["endpoints"].endpoint) == ["/home", "/search", "/pay", "/login", "/help"]
    assert np.all(np.diff(shown["endpoints"].value) > 0)
    assert [hour for hour, _ in shown["hours"]] == [0, 6, 12, 18]
    assert (shown["folder"] / "latency.png").stat().st_size > 10_000
    shutil.rmtree(shown["folder"])
