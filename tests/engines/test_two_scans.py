"""One stream through numba, DuckDB, Polars and Spark: the same edges, the same counts. And each engine by itself."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import dpfrugal as dpf
from dpfrugal.budget.ledger import Ledger
from dpfrugal.engines import duckdb as dpd
from dpfrugal.engines import polars as dpp
from dpfrugal.engines import two_scans
from dpfrugal.engines.spark import stream
from dpfrugal.engines.two_scans import Counts, Sample, private_quantiles
from dpfrugal.errors import ItemError, ParameterTypeError, PrivacyError, ReplayError, TableError
from dpfrugal.estimators.segments import planner

GUARANTEE = dpf.PureDP(epsilon=1.0)


def shared_stream() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    floats = rng.lognormal(3, 2, 6_000) * rng.choice([-1.0, 1.0], 6_000)
    floats[::97], floats[1::89], floats[2::83], floats[3::79] = np.nan, np.inf, -np.inf, -0.0
    integers = rng.integers(-(2**63), 2**63 - 1, 6_000)
    integers[::3] = 2**53 + np.arange(integers[::3].size) % 5
    return {"float": floats, "integer": integers, "place": np.arange(6_000)}


@pytest.mark.spark
@pytest.mark.parametrize("column", ["float", "integer"])
def test_two_scans__give_the_same_answer_everywhere(column: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    from dpfrugal.engines.spark import table as spark_table

    monkeypatch.setattr(planner, "add_noise", lambda values, *_: [int(value) + 1 for value in values])
    data = shared_stream()
    table, frame = duckdb.from_df(pd.DataFrame(data)), pl.DataFrame(data)
    df = spark.createDataFrame(pd.DataFrame(data)).repartition(3).cache()
    machines = {
        name: dpf.PrivateQuantile([0.25, 0.9], GUARANTEE, nan_policy="omit")
        for name in ("numba", "duckdb", "polars", "spark")
    }
    first, segments = 0, 0
    while first < 6_000:
        last = min(6_000, first + machines["numba"].segment_length)
        edges = {name: machine.edges for name, machine in machines.items()}
        assert all(np.array_equal(edges["numba"], other) for other in edges.values())
        whole = (first, last)
        counts = {
            "duckdb": dpd.counts(table.filter(f"place >= {first} AND place < {last}"), column, edges["duckdb"]),
            "polars": dpp.counts(
                frame.filter(pl.col("place").is_between(*whole, closed="left")), column, edges["polars"]
            ),
            "spark": spark_table.counts(df.where(f"place >= {first} AND place < {last}"), column, edges["spark"]),
        }
        machines["numba"].update_many(data[column][first:last])
        for name, found in counts.items():
            assert (
                found.missing
                == counts["duckdb"].missing
                == np.isnan(data["float"][first:last]).sum() * (column == "float")
            )
            assert np.array_equal(found.bins, counts["duckdb"].bins), name
            machines[name].absorb(found.bins, missing=found.missing)
        first, segments = last, segments + 1
    assert segments > 4
    releases = [machine.release(close=True) for machine in machines.values()]
    assert all(release == releases[0] for release in releases)
    df.unpersist()


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_two_scans__are_as_good_on_a_table_in_order_of_time_as_on_a_shuffled_one(engine: str) -> None:
    # The added error has a standard deviation below 0.3 of the unit of the bound.
    count = 600_000
    ordered = np.arange(count, dtype=np.float64)
    table = (
        duckdb.from_arrow(pl.DataFrame({"x": ordered}).to_arrow())
        if engine == "duckdb"
        else pl.DataFrame({"x": ordered})
    )
    release = (dpd if engine == "duckdb" else dpp).private_quantiles(table, "x", [0.5, 0.9], GUARANTEE)
    for q, value in zip(release.quantiles, release.values, strict=True):
        assert abs(value / count - q) < 3 * (q * (1 - q) / count) ** 0.5
    assert release.items == count
    # A leg that must fail: segments that are stretches of time.
    p = dpf.PrivateQuantile(0.5, GUARANTEE)
    p.update_many(ordered)
    assert abs(p.release().value / count - 0.5) > 3 * (0.25 / count) ** 0.5


class Moved:
    """A table whose rows change places between two scans."""

    def sample(self, wanted: int) -> Sample:
        return Sample(np.arange(1000.0), 1000, 2000, 7)

    def rest(self, edges: Any) -> Counts:
        return Counts(np.ones(edges.size + 1, dtype=np.int64), 0, 8)


def test_two_scans__notice_rows_that_change_places() -> None:
    with pytest.raises(PrivacyError, match="did not keep their order"):
        private_quantiles(Moved(), 0.5, GUARANTEE, {})


@pytest.mark.parametrize("engine", [dpd, dpp])
def test_two_scans__refuse_in_sentences(engine: Any) -> None:
    frame = pl.DataFrame({"x": [1.0, None, 3.0], "text": ["a", "b", "c"]})
    table, empty = frame, frame.clear()
    if engine is dpd:
        table, empty = duckdb.from_arrow(table.to_arrow()), duckdb.from_arrow(empty.to_arrow())
    with pytest.raises(TableError, match="no column 'y'"):
        engine.private_quantiles(table, "y", 0.5, GUARANTEE)
    with pytest.raises(TableError, match="must hold numbers"):
        engine.private_quantiles(table, "text", 0.5, GUARANTEE)
    with pytest.raises(ItemError, match="NaN or null"):
        engine.private_quantiles(table, "x", 0.5, GUARANTEE)
    with pytest.raises(ItemError, match="no rows"):
        engine.private_quantiles(empty, "x", 0.5, GUARANTEE)
    assert engine.private_quantiles(table, "x", 0.5, GUARANTEE, nan_policy="omit").items == 3
    with pytest.raises(ParameterTypeError, match="guarantee"):
        engine.private_quantiles(table, "x", 0.5, 1.0)
    for other in ([1.0], {"x": [1.0]}, "table.parquet", frame.to_arrow(), frame.to_pandas(), None):
        with pytest.raises(ParameterTypeError, match=r"table must be a (DuckDB relation|polars\.DataFrame)"):
            engine.private_quantiles(other, "x", 0.5, GUARANTEE)


def test_two_scans__charge_a_ledger_once_for_a_table(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "budget.db", total=dpf.PureDP(epsilon=1.5))
    frame = pl.DataFrame({"x": np.arange(200_000.0)})
    dpp.private_quantiles(frame, "x", 0.5, GUARANTEE, ledger=ledger, dataset="rows")
    assert ledger.left("rows") == dpf.PureDP(epsilon=0.5)
    with pytest.raises(dpf.BudgetExceeded):
        dpp.private_quantiles(frame, "x", 0.5, GUARANTEE, ledger=ledger, dataset="rows")


class Kept:
    """Records of a stream, in memory, as JSON."""

    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []

    def newest(self) -> tuple[int, dict[str, Any]] | None:
        return (self.texts[-1][0], json.loads(self.texts[-1][1])) if self.texts else None

    def write(self, batch: int, state: dict[str, Any]) -> None:
        self.texts.append((batch, json.dumps(state)))


def test_two_scans__go_on_with_a_stream_from_its_record_under_the_spend_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts(batch: Any, column: str, edges: Any) -> Counts:
        return dpp.counts(pl.DataFrame({column: batch}), column, edges)

    monkeypatch.setattr(stream, "counts", counts)
    monkeypatch.setattr(two_scans, "SAMPLE", 0)
    ledger, kept, shown = dpf.Ledger(tmp_path / "b.db", total=GUARANTEE), Kept(), []

    def sink(release: dpf.SegmentRelease, batch: int) -> None:
        shown.append((batch, release.values, release.items))

    bare = dpf.PrivateQuantile(0.5, GUARANTEE)
    charged = dpf.PrivateQuantile(0.5, GUARANTEE, ledger=ledger, dataset="d")
    first_stream = stream.Segments(charged, "x", kept, sink, ledger)  # type: ignore[arg-type]
    batches = [np.random.default_rng(batch).normal(7, 1, 500) for batch in range(6)]
    for batch in range(3):
        first_stream.take(batches[batch], batch)
    again = stream.Segments(bare, "x", kept, sink, ledger)  # type: ignore[arg-type]
    again.take(batches[2], 2)
    assert shown[-1] == shown[-2]
    again.take(batches[3], 3)
    assert again._estimator.items == 2000
    assert ledger.left("d") is None or ledger.left("d") == dpf.PureDP(epsilon=0.0)
    for other in (1, 5):
        with pytest.raises(PrivacyError, match=f"Batch {other} came where batch 4 is next"):
            again.take(batches[1], other)
    # The ledger moves and the driver dies before the record: what waited is forgotten, nothing is counted twice.
    older = kept.texts.copy()
    with monkeypatch.context() as dying:
        dying.setattr(kept, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            again.take(np.tile(batches[4], 20), 4)
        with pytest.raises(PrivacyError, match="ended this stream in the middle"):
            again.take(np.tile(batches[4], 20), 4)
    third = stream.Segments(bare, "x", kept, sink, ledger)  # type: ignore[arg-type]
    assert third._estimator.account.stale
    third.take(np.tile(batches[4], 20), 4)
    assert third._estimator.items <= 12_000
    # Between the record and its note in the ledger: nothing was shown, and the next driver notes it.
    before = len(shown)
    with monkeypatch.context() as dying:
        dying.setattr(Ledger, "settle", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            third.take(np.tile(batches[5], 40), 5)
    assert len(shown) == before
    fourth = stream.Segments(bare, "x", kept, sink, ledger)  # type: ignore[arg-type]
    assert not fourth._estimator.account.stale
    fourth.take(np.tile(batches[5], 40), 5)
    assert len(shown) == before + 1
    # Two drivers go on from one record. The second claims what the first took noise for, so the first shows nothing.
    first = stream.Segments(bare, "x", kept, sink, ledger)  # type: ignore[arg-type]
    settle, before = Ledger.settle, len(shown)

    def late(*arguments: Any) -> None:
        with monkeypatch.context() as again:
            again.setattr(Ledger, "settle", settle)
            stream.Segments(bare, "x", kept, sink, ledger).take(batches[0], 6)  # type: ignore[arg-type]
        settle(*arguments)

    with monkeypatch.context() as sleeping:
        sleeping.setattr(Ledger, "settle", late)
        with pytest.raises(ReplayError, match="Another driver has continued"):
            first.take(np.tile(batches[0], 80), 6)
    assert len(shown) == before + 1
    stream.Segments(bare, "x", kept, sink, ledger).take(batches[0], 6)  # type: ignore[arg-type]
    assert shown[-1] == shown[-2]
    # A checkpoint from before a release that was shown: its rows would be shown again.
    kept.texts = older
    with pytest.raises(ReplayError, match="an older copy"):
        stream.Segments(bare, "x", kept, sink, ledger)  # type: ignore[arg-type]
