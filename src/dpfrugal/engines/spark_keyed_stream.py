"""Quantiles per key of a Spark stream: a walk that goes on from micro-batch to micro-batch.

Between releases the estimates are raw. The executors write them to the checkpoint and read them from there; the driver
sees them only to add noise, when a release is due. A batch has one record, written before its release leaves; where
Spark replays the batch after a crash, the sink gets the recorded release again (docs/proofs.md, Theorem 13).
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from dpfrugal.engines.spark_columns import checked_frame, field, item
from dpfrugal.engines.spark_files import FOLDER, Records
from dpfrugal.engines.spark_keyed import Found, KeyedOptions, Walk, released_frame, run, take
from dpfrugal.engines.spark_keys import declared_keys, key_frame
from dpfrugal.engines.spark_query import Query
from dpfrugal.engines.spark_stream import goes_on
from dpfrugal.errors import ParameterError, ParameterTypeError, PrivacyError
from dpfrugal.guarantees import Guarantee
from dpfrugal.keyed import KeyedDPFrugal1U
from dpfrugal.ledger import Ledger
from dpfrugal.records import of_guarantee


def stream_quantiles_by(
    df: Any,
    column: str,
    *,
    by: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    keys: Any,
    checkpoint: str,
    sink: Callable[[Any, int], None],
    release_every: int = 1,
    order_by: str | None = None,
    partitions: int | None = None,
    trigger: dict[str, Any] | None = None,
    **options: Unpack[KeyedOptions],
) -> Query:
    """Start a StreamingQuery that calls ``sink(table, batch_id)`` after every so many micro-batches.

    ``table`` is a DataFrame of key, quantile, value and α. After a restart the sink may be called again for the last
    batch, with the same table: write by ``batch_id``. The keys are declared, and fixed for the checkpoint's
    life; the number of partitions is not.
    """
    item(checked_frame(df, streaming=True), column)
    field(df, by)
    if not callable(sink):
        raise ParameterTypeError(f"sink must be a function of a table and a batch id, not {type(sink).__name__}.")
    if isinstance(release_every, bool) or not isinstance(release_every, int) or release_every < 1:
        raise ParameterError(f"release_every must be a whole number above 0; {release_every} is not.")
    ledger, dataset = options.pop("ledger", None), options.pop("dataset", None)
    keys = declared_keys(keys, by)
    estimator = KeyedDPFrugal1U(quantiles, guarantee, keys=keys, **options)
    key_frame(df, by, estimator.keys)
    query = {
        "kind": "quantiles_by",
        "column": column,
        "by": by,
        "quantiles": list(estimator.quantiles),
        "guarantee": of_guarantee(guarantee),
        "keys": hashlib.sha256(repr(estimator.keys.to_pylist()).encode("utf-8")).hexdigest(),
        "release_every": release_every,
        "options": {name: value for name, value in options.items() if name != "coin_seed"},
    }
    records = Records(df.sparkSession, checkpoint, query)
    if records.newest() is None:  # a stream that goes on has been charged
        options["ledger"], options["dataset"] = ledger, dataset
        estimator = KeyedDPFrugal1U(quantiles, guarantee, keys=keys, **options)
    walk = Walk(estimator, column, by, order_by, None, partitions)
    stream = KeyedStream(
        *(df.sparkSession, estimator, walk, records, f"{checkpoint}/{FOLDER}", by, sink, release_every),
        ledger=ledger,
    )
    writer = df.writeStream.option("checkpointLocation", checkpoint)
    return Query(writer.trigger(**trigger) if trigger else writer, stream.take)


class KeyedStream:
    """What becomes of each micro-batch."""

    def __init__(
        self,
        spark: Any,
        estimator: KeyedDPFrugal1U,
        walk: Walk,
        records: Records,
        folder: str,
        by: str,
        sink: Callable[[Any, int], None],
        release_every: int,
        ledger: Ledger | None = None,
    ) -> None:
        self._spark, self._estimator, self._walk, self._records = spark, estimator, walk, records
        self._folder, self._by, self._sink, self._release_every = folder, by, sink, release_every
        self._batch, self._waiting, self._open = -1, 0, False
        self._shown: tuple[list[float], list[float]] | None = None
        if (newest := records.newest()) is not None:
            self._batch, state = newest
            self._restore(state)
            estimator._account = goes_on(state["account"], ledger)
            if estimator._account.stale:
                self._waiting, self._open = 0, False

    def take(self, batch: Any, batch_id: int) -> None:
        """Walk through a batch and record it, then release; or, where it is recorded already, release the same."""
        if batch_id < self._batch:
            raise PrivacyError(f"Batch {batch_id} came after batch {self._batch}; its rows may be counted already.")
        if batch_id > self._batch:
            self._walk_through(batch, batch_id)
        if self._shown is not None:
            self._sink(released_frame(self._spark, self._by, self._table()), batch_id)

    def _walk_through(self, batch: Any, batch_id: int) -> None:
        before = self._spark.read.parquet(self._path(self._batch)) if self._open else None
        # Each batch has coins of its own: a row's position starts anew with each.
        after = self._walk.frame(batch, before, turn=batch_id)
        due = self._waiting + 1 >= self._release_every
        self._shown = None
        if due:
            found = self._walk.checked(Found(run(after.toArrow)))
            take(self._estimator, found)
            if self._estimator.items:
                table = self._estimator.release()
                self._shown = table.column("value").to_pylist(), table.column("alpha").to_pylist()
        else:
            run(lambda: after.write.mode("overwrite").parquet(self._path(batch_id)))
            summary = self._spark.read.parquet(self._path(batch_id)).where("code < 0").toArrow()
            found = self._walk.checked(Found(summary))
            clock = np.array([self._estimator.items + found.rows], dtype=np.int64)
            self._estimator._state = replace(self._estimator._state, clock=clock)
        self._waiting, self._open = (0, False) if due else (self._waiting + 1, True)
        self._records.write(batch_id, self._state())
        self._records.remove(self._raw(self._batch))  # nothing goes on from there any more
        self._batch = batch_id

    def _raw(self, batch_id: int) -> str:
        """The name of the folder that the executors write a batch's estimates to."""
        return f"keys-{batch_id}"

    def _path(self, batch_id: int) -> str:
        return f"{self._folder}/{self._raw(batch_id)}"

    def _state(self) -> dict[str, Any]:
        """All of it is public but the number of the batch whose raw estimates go on."""
        own = self._estimator._state
        return {
            "estimates": own.estimates.tolist(),
            "steps": None if own.steps is None else own.steps.tolist(),
            "anchors": np.asarray(own.anchors).tolist(),
            "clock": own.items,
            "released_at": own.released_at,
            "farthest": own.farthest,
            "widest": own.widest,
            "coin_key": own.path.key,
            "waiting": self._waiting,
            "open": self._open,
            "shown": self._shown,
            "account": self._estimator._account.to_record(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        own = self._estimator._state
        self._estimator._state = replace(
            own,
            path=replace(own.path, key=state["coin_key"]),
            estimates=np.array(state["estimates"], dtype=np.int64),
            steps=None if state["steps"] is None else np.array(state["steps"], dtype=np.uint8),
            anchors=np.array(state["anchors"], dtype=np.float64),
            clock=np.array([state["clock"]], dtype=np.int64),
            released_at=state["released_at"],
            farthest=state["farthest"],
            widest=state["widest"],
        )
        self._waiting, self._open = state["waiting"], state["open"]
        self._shown = None if state["shown"] is None else tuple(state["shown"])

    def _table(self) -> Any:
        """The recorded release."""
        import pyarrow as pa

        values, alphas = self._shown or ([], [])
        quantiles = self._estimator.quantiles
        keys = self._estimator.keys
        count = len(keys)
        names = keys.take(pa.array(np.repeat(np.arange(count), len(quantiles))))
        of = pa.array(np.tile(np.array(quantiles), count))
        return pa.table({"key": names, "quantile": of, "value": pa.array(values), "alpha": pa.array(alphas)})
