"""Streams on Spark: a window is released once, a replay shows the same, the ledger counts it once; refusals."""

import datetime
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from dpfrugal.engines.spark.stream_checkpoint import FOLDER
from dpfrugal.errors import (
    ItemError,
    LedgerError,
    ParameterError,
    ParameterTypeError,
    PrivacyError,
    ReplayError,
    TableError,
)
from tests.engines.holders import flights
from tests.engines.spark.streams import GUARANTEE, ONCE, Stream

pytestmark = pytest.mark.spark
START = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
MINUTES: dict[str, Any] = {"window": "1 minute", "time": "at", "watermark": "30 seconds"}


def batches(*seconds: tuple[int, int], value: float = 0.0) -> list[pa.Table]:
    """A table for each stretch of seconds: ten rows a second, of four keys; items rise from minute to minute."""
    found = []
    for first, last in seconds:
        at = np.repeat(np.arange(first, last), 10)
        found.append(
            pa.table(
                {
                    "x": value + at // 60 * 1000.0 + np.arange(at.size) % 10,
                    "key": [f"k{each % 4}" for each in range(at.size)],
                    "at": pa.array([START + datetime.timedelta(seconds=int(each)) for each in at]),
                    "who": np.arange(at.size) % 10,
                }
            )
        )
    return found


def test_stream__releases_each_window_of_time_once_when_it_has_ended(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, batches((0, 90), (90, 200), (200, 320))).run(quantiles=[0.5, 0.9], **MINUTES)
    releases = [release for _, release in stream.shown]
    assert [release.start for release in releases] == [START + datetime.timedelta(minutes=k) for k in range(4)]
    assert [release.end - release.start for release in releases] == [datetime.timedelta(minutes=1)] * 4
    assert [release.items for release in releases] == [600] * 4
    assert [release.window for release in releases] == [1, 2, 3, 4]
    assert [int(release.values[0]) // 1000 for release in releases] == [0, 1, 2, 3]
    assert releases[0].to_dict()["start"] == START.isoformat()
    assert releases[0].unit == "item"


def test_stream__drops_rows_that_come_later_than_the_watermark(spark: Any, tmp_path: Path) -> None:
    late = batches((0, 200), (200, 210), (10, 40), (210, 300), (300, 310))
    stream = Stream(spark, tmp_path, late).run(**MINUTES)
    assert [release.items for _, release in stream.shown] == [600] * 4


def test_stream__without_time_has_a_window_for_each_micro_batch(spark: Any, tmp_path: Path) -> None:
    rows = flights().select(["arr_delay", "carrier"])
    parts = [rows.slice(first, 20_000) for first in (0, 100_000, 200_000)]
    stream = Stream(spark, tmp_path, parts).run("arr_delay", [0.5, 0.9], nan_policy="omit")
    assert [batch for batch, _ in stream.shown] == [0, 1, 2]
    for (_, release), part in zip(stream.shown, parts, strict=True):
        there = np.sort(part.column("arr_delay").drop_null().to_numpy())
        assert release.items == 20_000
        assert release.start is release.end is None
        for q, value in zip((0.5, 0.9), release.values, strict=True):
            assert np.searchsorted(there, value, "left") - 60 <= q * there.size
            assert q * there.size <= np.searchsorted(there, value, "right") + 60


def test_stream_by_key__has_every_declared_key_in_every_window(spark: Any, tmp_path: Path) -> None:
    stream = Stream(spark, tmp_path, batches((0, 90), (90, 200))).run_by(
        keys=["k1", "none"], other="rest", guarantee=dpf.PureDP(epsilon=4.0), **MINUTES
    )
    rows = [row for _, table in stream.shown for row in table]
    assert [row["key"] for row in rows] == ["k1", "none", "rest"] * 2
    assert {row["window_end"] - row["window_start"] for row in rows} == {datetime.timedelta(minutes=1)}
    assert [row["reason"] is None for row in rows] == [True, False, True] * 2
    assert [row["value"] is None for row in rows] == [False, True, False] * 2


def test_stream_by_key__discovers_keys_and_limits_persons_in_each_window(spark: Any, tmp_path: Path) -> None:
    parts = batches((0, 90), (90, 130))
    own = pa.table({"x": [1.0] * 300, "key": ["own"] * 300, "at": [START] * 300, "who": [77] * 300})
    parts[0] = pa.concat_tables([parts[0], own.cast(parts[0].schema)])
    cost = dpf.ApproxDP(epsilon=5.0, delta=1e-3)
    stream = Stream(spark, tmp_path, parts).run_by(
        person="who", max_items_per_person=2, max_keys_per_person=2, discover_keys=cost,
        guarantee=dpf.PureDP(epsilon=100.0), **MINUTES,
    )  # fmt: skip
    ((_, table),) = stream.shown
    assert "own" not in {row["key"] for row in table}  # one person's 300 rows are two
    for row in table:
        assert row["rows"] <= 40  # of ten persons two rows each, with noise
    free = Stream(spark, tmp_path / "free", parts).run_by(discover_keys=cost, **MINUTES)
    assert [row["key"] for row in free.shown[0][1]] == ["k0", "k1", "k2", "k3", "own"]  # the leg that must fail


@pytest.mark.parametrize("keyed", [False, True])
def test_stream__add_remove_shows_windows_without_rows_and_no_number_of_rows(
    keyed: bool, spark: Any, tmp_path: Path
) -> None:
    parts = batches((0, 50), (190, 250), (400, 500))
    stream = Stream(spark, tmp_path, parts)
    if keyed:
        stream.run_by(keys=["k0"], neighbours="add-remove", **MINUTES)
        starts = [row["window_start"] for _, table in stream.shown for row in table]
        assert len(starts) == len(set(starts)) == 7
    else:
        stream.run(neighbours="add-remove", **MINUTES)
        assert [release.start.minute for _, release in stream.shown] == [0, 1, 2, 3, 4, 5, 6]
        assert all(release.items is None for _, release in stream.shown)
        again = Stream(spark, tmp_path / "replace", parts).run(**MINUTES)
        assert [release.start.minute for _, release in again.shown] == [0, 3, 4, 6]


@pytest.mark.parametrize("keyed", [False, True])
def test_stream__gives_a_replayed_batch_the_releases_it_had(keyed: bool, spark: Any, tmp_path: Path) -> None:
    """Equal by chance with a probability below 1e-6: noise is really drawn."""
    stream = Stream(spark, tmp_path, batches((0, 130), (130, 260), (260, 400)))

    def run(dies_at: int | None) -> None:
        if keyed:
            stream.run_by(quantiles=[0.3, 0.7], keys=["k0", "k1"], dies_at=dies_at, **MINUTES)
        else:
            stream.run(quantiles=[0.3, 0.7], dies_at=dies_at, **MINUTES)

    with suppress(StreamingQueryException):
        run(1)
    before = [found for batch, found in stream.shown if batch == 1]
    run(None)
    replayed = [found for batch, found in stream.shown if batch == 1][len(before) :]
    assert before
    assert replayed[: len(before)] == before
    starts = [
        row["window_start"] if keyed else row.start
        for _, found in stream.shown
        for row in (found if keyed else [found])
    ]
    assert len(set(starts)) == 6


def test_stream__keeps_nothing_raw_beside_sparks_own_state(spark: Any, tmp_path: Path) -> None:
    Stream(spark, tmp_path, batches((0, 90), value=0.123456789)).run(intervals=False, **MINUTES)
    records = [path.read_text(encoding="utf-8") for path in (tmp_path / "check" / FOLDER).glob("[0-9]*")]
    for record in records:
        state = json.loads(record.partition("\n")[2])["state"]
        assert set(state) == {"account", "batch", "last", "released", "shown"}
        assert all(set(each["record"]) == {"values", "items", "lower", "upper"} for each in state["shown"])


def test_stream__is_charged_once_and_again_after_so_many_windows(spark: Any, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=4.5))
    books: dict[str, Any] = {"ledger": ledger, "dataset": "rows", **MINUTES}
    parts = batches((0, 130), (130, 260), (260, 400))
    stream = Stream(spark, tmp_path / "one", parts)
    with suppress(StreamingQueryException):
        stream.run(dies_at=1, **books)
    assert ledger.left("rows") == dpf.PureDP(epsilon=3.5)
    with pytest.raises(ReplayError, match="charged to a ledger"):
        stream.run(**MINUTES)
    stream.run(**books)
    assert ledger.left("rows") == dpf.PureDP(epsilon=3.5)
    Stream(spark, tmp_path / "terms", parts).run_by(keys=["k0"], windows=2, person="who", **books)  # six windows
    assert ledger.left("rows") == dpf.PureDP(epsilon=0.5)
    with pytest.raises(dpf.BudgetExceeded):
        Stream(spark, tmp_path / "another", parts).run(**books)


@pytest.mark.parametrize("dies", ["before the first record", "before a later record"])
def test_stream__that_dies_before_a_record_draws_anew_and_spends_once(
    dies: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpfrugal.engines.spark.stream_checkpoint import Records

    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=9.0))
    stream = Stream(spark, tmp_path / "s", batches((0, 10), (10, 20), (20, 30)))
    books: dict[str, Any] = {"ledger": ledger, "dataset": "rows", "windows": 2}
    write, dying = Records.write, 0 if dies == "before the first record" else 2

    def dead(records: Records, batch: int, state: dict[str, Any]) -> None:
        if batch == dying:
            raise MemoryError("the driver is gone")
        write(records, batch, state)

    monkeypatch.setattr(Records, "write", dead)
    with pytest.raises(StreamingQueryException):
        stream.run(**books)
    spent = ledger.dataset("rows").used
    monkeypatch.undo()
    stream.run(**books)
    assert [batch for batch, _ in stream.shown] == [0, 1, 2]
    assert ledger.dataset("rows").used == 2.0
    assert spent == (1.0 if dying == 0 else 2.0)


@pytest.mark.parametrize("keyed", [False, True])
def test_stream_checkpoint__that_is_restored_shows_no_row_again(keyed: bool, spark: Any, tmp_path: Path) -> None:
    """All of the folder, Spark's own files included, from before a release that was shown; or only a part of it."""
    ledger = dpf.Ledger(tmp_path / "budget.db", total=GUARANTEE)
    stream, copy = Stream(spark, tmp_path, batches((0, 10), (10, 20), (20, 30))), tmp_path / "copy"
    checkpoint = tmp_path / "check"

    def run(books: dpf.Ledger) -> None:
        def sink(_: Any, batch: int) -> None:
            if batch == 1 and not copy.exists():
                shutil.copytree(checkpoint, copy)
            stream.shown.append((batch, None))

        options: dict[str, Any] = {"sink": sink, "ledger": books, "dataset": "rows"}
        if keyed:
            stream.run_by(keys=["k0"], **options)
        else:
            stream.run(**options)

    run(ledger)
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    with pytest.raises(ReplayError, match="an older copy"):
        run(ledger)
    shutil.rmtree(checkpoint / FOLDER)
    with pytest.raises((PrivacyError, dpf.BudgetExceeded)):
        run(ledger)
    with pytest.raises(PrivacyError, match="Batch 1 came where batch 0 is next"):
        run(dpf.Ledger(tmp_path / "another.db", total=GUARANTEE))
    assert [batch for batch, _ in stream.shown] == [0, 1, 2]


def test_stream__refuses_in_a_sentence_while_it_runs(spark: Any, tmp_path: Path, capfd: Any) -> None:
    parts = batches((0, 130))
    hole = parts[0].set_column(0, "x", pa.array([None, *parts[0].column("x").to_pylist()[1:]]))
    nobody = parts[0].set_column(3, "who", pa.array([None, *parts[0].column("who").to_pylist()[1:]]))
    no_key = parts[0].set_column(1, "key", pa.array([None, *parts[0].column("key").to_pylist()[1:]]))
    cases: list[tuple[pa.Table, str, dict[str, Any]]] = [
        (hole, "NaN or null rows", {"keys": ["k0"]}),
        (nobody, "person has null ids", {"keys": ["k0"], "person": "who"}),
        (no_key, "null keys", {"keys": ["k0"]}),
    ]
    shown: list[Any] = []
    for k, (table, said, options) in enumerate(cases):
        ledger = dpf.Ledger(tmp_path / f"{k}.db", total=GUARANTEE)
        ledger.open("rows", GUARANTEE)
        books: dict[str, Any] = {"ledger": ledger, "dataset": "rows"}
        stream = Stream(spark, tmp_path / str(k), [table])
        query = dps.stream_quantiles_by(
            stream.frame, "x", 0.5, GUARANTEE, by="key", checkpoint=tmp_path / f"c{k}",
            sink=lambda table, _: shown.append(table), **options, **ONCE, **books, **MINUTES,
        )  # fmt: skip
        with pytest.raises(ItemError, match=said) as caught:
            query.awaitTermination()
        assert "\n" not in str(caught.value)
        assert isinstance(query.exception(), ItemError)
        assert not query.isActive
        assert not shown
        assert ledger.left("rows") == GUARANTEE
    assert "at org.apache" not in capfd.readouterr().err


def test_stream__raises_the_sinks_own_error(spark: Any, tmp_path: Path) -> None:
    def sink(*_: Any) -> None:
        raise KeyError("of the sink")

    with pytest.raises(StreamingQueryException, match="of the sink"):
        Stream(spark, tmp_path, batches((0, 10))).run(sink=sink)


def test_stream__that_cannot_start_is_refused_in_a_sentence(spark: Any, tmp_path: Path) -> None:
    frame = Stream(spark, tmp_path, batches((0, 10))).frame
    (tmp_path / "file").write_text("", encoding="utf-8")
    refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TableError, "must be a folder that can be written to", {"checkpoint": tmp_path / "file"}),
        (TableError, "must be a folder that can be written to", {"checkpoint": "/proc/none"}),
        (TableError, "must be a folder that can be written to", {"checkpoint": "nowhere://host/folder"}),
        (ParameterError, "checkpoint must be", {"checkpoint": ""}),
        (ParameterTypeError, "sink must take two arguments, a table and a batch id", {"sink": lambda _: None}),
        (ParameterTypeError, "sink must be a function of a table", {"sink": None}),
        (ParameterTypeError, "trigger must be a dictionary", {"trigger": "10 seconds"}),
        (ParameterError, "exclude each other", {"discover_keys": dpf.ApproxDP(epsilon=1.0, delta=1e-6)}),
        (ParameterError, "window needs time=", {"window": "1 minute"}),
        (ParameterError, "watermark needs time=", {"watermark": "1 minute"}),
        (ParameterError, "time needs window=", {"time": "at"}),
        (ParameterError, "window must be a length of time", {"time": "at", "window": "soon"}),
        (ParameterTypeError, "window must be a text", {"time": "at", "window": 60}),
        (ParameterError, "longer than nothing", {"time": "at", "window": "0 seconds"}),
        (ParameterError, "watermark must be a length", {"time": "at", "window": "1 minute", "watermark": "-1 s"}),
        (ParameterTypeError, "time must be a column of type timestamp", {"time": "x", "window": "1 minute"}),
        (TableError, "there is no column 'when'", {"time": "when", "window": "1 minute"}),
        (TableError, "there is no column 'nobody'", {"person": "nobody"}),
        (TableError, "there is no column 'none'", {"by": "none"}),
        (ParameterError, "windows must be between 1 and", {"windows": 0}),
        (ParameterError, "null_keys must be", {"null_keys": "group"}),
        (dpf.ItemTypeError, "keys must be integers, as declared; these are strings", {"keys": [1, 2]}),
        (ParameterTypeError, "df is not a streaming DataFrame", {"df": spark.range(3)}),
        (TableError, "there is no column 'y'", {"column": "y"}),
        (dpf.ItemTypeError, "data must be numbers", {"column": "key"}),
    ]
    for kind, sentence, given in refused:
        options: dict[str, Any] = {"df": frame, "column": "x", "quantiles": 0.5, "guarantee": GUARANTEE, "by": "key"}
        options |= {"checkpoint": tmp_path / "c", "sink": lambda *_: None, "keys": ["k0"], **given}
        with pytest.raises(kind, match=sentence) as caught:
            dps.stream_quantiles_by(**options)
        assert "\n" not in str(caught.value)
        assert "Py4J" not in str(caught.value)


def test_stream__restarted_with_other_parameters_says_which(spark: Any, tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=9.0))
    stream = Stream(spark, tmp_path, batches((0, 130)))
    books: dict[str, Any] = {"ledger": ledger, "dataset": "rows", **MINUTES}
    stream.run_by(keys=["k0"], **books)
    refused: list[tuple[str, dict[str, Any]]] = [
        ("its keys are others", {"keys": ["k1"]}),
        (r"its quantiles was \[0.5\], not \[0.9\]", {"quantiles": 0.9}),
        ("its epsilon was 1.0, not 2.0", {"guarantee": dpf.PureDP(epsilon=2.0)}),
        ("its window was 1 minute, not 2 minutes", {"window": "2 minutes"}),
        ("charged to the dataset 'rows'", {"dataset": "others"}),
    ]
    for sentence, given in refused:
        with pytest.raises(ParameterError, match=sentence):
            stream.run_by(**({"keys": ["k0"]} | books | given))
    with pytest.raises(ParameterError, match="another query"):
        stream.run(**books)
    free = Stream(spark, tmp_path / "free", batches((0, 10))).run()
    with pytest.raises(LedgerError, match="never charged to a ledger"):
        free.run(ledger=ledger, dataset="rows")


def test_stream__takes_columns_of_any_name_and_any_type(spark: Any, tmp_path: Path) -> None:
    table = batches((0, 130))[0]
    hostile = ["x`; DROP", "a.b", "dpfrugal_times", 'w"ho']
    times = [START + datetime.timedelta(seconds=k) for k in range(table.num_rows)]
    table = table.rename_columns(hostile).append_column("money", table.column(0).cast(pa.decimal128(12, 2)))
    table = table.append_column("when", pa.array(times)).append_column("date", pa.array(times).cast(pa.date32()))
    stream = Stream(spark, tmp_path, [table])
    options: dict[str, Any] = {
        "time": "when",
        "window": "1 minute",
        "by": ["a.b", 'w"ho'],
        "keys": [("k0", 0), ("k1", 9)],
    }
    stream.run_by(hostile[0], neighbours="add-remove", **options)
    assert {"a.b", 'w"ho', "window_start"} <= stream.shown[0][1][0].keys()
    assert stream.shown[0][1][0]["window_start"].minute == 0
    stream.run("money", checkpoint=tmp_path / "m", time="dpfrugal_times", window="1 minute")
    assert str(stream.shown[-1][1].value)[-3] == "."
    stream.run("date", checkpoint=tmp_path / "d")
    assert str(stream.shown[-1][1].value) == "2024-05-01"
