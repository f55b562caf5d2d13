"""Two scans of a table, and a stream that goes on from its record."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.budget.ledger import Ledger
from dpfrugal.engines import two_scans
from dpfrugal.engines.spark import stream
from dpfrugal.engines.two_scans import Counts, Sample, private_quantiles
from dpfrugal.errors import PrivacyError, ReplayError

GUARANTEE = dpf.PureDP(epsilon=1.0)


class Moved:
    """A table whose rows change places between two scans."""

    def sample(self, wanted: int) -> Sample:
        return Sample(np.arange(1000.0), 1000, 2000, 7)

    def rest(self, edges: Any) -> Counts:
        return Counts(np.ones(edges.size + 1, dtype=np.int64), 0, 8)


def test_two_scans__notice_rows_that_change_places() -> None:
    with pytest.raises(PrivacyError, match="did not keep their order"):
        private_quantiles(Moved(), 0.5, GUARANTEE, {})


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
        return Counts(np.bincount(np.searchsorted(edges, batch, "right"), minlength=edges.size + 1), 0)

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
