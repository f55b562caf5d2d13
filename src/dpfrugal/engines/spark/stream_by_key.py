"""Quantiles per key of a Spark stream: estimates that continue from micro-batch to micro-batch.

Between releases the estimates are raw, and so are counts of keys that are not public and of people's rows. The
executors write them to the checkpoint and read them from there; the driver sees them only to add noise, when a release
is due. A batch has one record, written before its release leaves; where Spark replays the batch after a crash, the sink
gets the recorded release again (docs/proofs.md, Theorem 13).
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from dpfrugal.budget.ledger import Ledger
from dpfrugal.engines.spark.columns import checked_frame, field, item
from dpfrugal.engines.spark.key_discovery import counted_keys
from dpfrugal.engines.spark.keys import fetched_keys, key_frame
from dpfrugal.engines.spark.person_limits import People
from dpfrugal.engines.spark.stream import Order, goes_on
from dpfrugal.engines.spark.stream_checkpoint import Records
from dpfrugal.engines.spark.streaming_query import Query, checked_sink, checked_trigger
from dpfrugal.engines.spark.table_by_key import Found, KeyedOptions, Walk, released_frame
from dpfrugal.engines.spark.worker import run
from dpfrugal.engines.two_scans import checked_options
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.estimators.keyed.state_record import release_of_record, release_to_record, restore_record, to_record
from dpfrugal.parameters import integer
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee


def stream_quantiles_by(
    df: Any,
    column: str,
    *,
    by: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    keys: Any = None,
    discover_keys: ApproxDP | None = None,
    checkpoint: str | os.PathLike[str],
    sink: Callable[[Any, int], None],
    release_every: int = 1,
    order_by: str | None = None,
    person: str | None = None,
    partitions: int | None = None,
    trigger: dict[str, Any] | None = None,
    **options: Unpack[KeyedOptions],
) -> Query:
    """Start a StreamingQuery that calls ``sink(table, batch_id)`` after every so many micro-batches.

    ``table`` is a DataFrame of key, quantile, value and α. After a restart the sink may be called again for the last
    batch, with the same table: write by ``batch_id``. Declared keys are fixed for the checkpoint's life; discovered
    ones have their first value at the release after the one that finds them. With ``person``, a person's rows are
    bounded over the whole stream, and earlier batches take precedence. The number of partitions may change.
    """
    item(checked_frame(df, streaming=True), column)
    field(df, by)
    checked_sink(sink, "a table")
    checked_trigger(trigger)
    checked_options(options, KeyedOptions)
    integer("release_every", release_every, 1)
    ledger, dataset = options.pop("ledger", None), options.pop("dataset", None)
    keys = fetched_keys(keys, by)
    estimator = KeyedDPFrugal1U(quantiles, guarantee, keys=keys, discover_keys=discover_keys, **options)
    if discover_keys is None:
        key_frame(df, by, estimator.keys)
    for other in (order_by, person):
        if other is not None:
            field(df, other)
    query = {
        "kind": "quantiles_by",
        "column": column,
        "by": by,
        "person": person,
        "types": [field(df, name).dataType.simpleString() for name in (column, by, person) if name is not None],
        "quantiles": list(estimator.quantiles),
        "guarantee": guarantee.to_record(),
        "keys": hashlib.sha256(repr(estimator.keys.to_pylist()).encode("utf-8")).hexdigest(),
        "discover_keys": None if discover_keys is None else discover_keys.to_record(),
        "release_every": release_every,
        "options": {name: value for name, value in options.items() if name != "coin_seed"},
    }
    records = Records(df.sparkSession, checkpoint, query).ready()
    if records.newest() is None:  # a stream that goes on has been charged
        options["ledger"], options["dataset"] = ledger, dataset
        estimator = KeyedDPFrugal1U(quantiles, guarantee, keys=keys, discover_keys=discover_keys, **options)
    walk = Walk(estimator, column, by, order_by, person, partitions, undeclared=discover_keys is not None)
    people = None if person is None else People(records, walk.bounds)
    stream = KeyedStream(
        estimator, walk, records, by, sink, release_every, people=people, ledger=ledger, dataset=dataset
    )
    writer = df.writeStream.option("checkpointLocation", records.checkpoint)
    return Query(writer.trigger(**trigger) if trigger else writer, stream.take)


class KeyedStream:
    """What becomes of each micro-batch."""

    def __init__(
        self,
        estimator: KeyedDPFrugal1U,
        walk: Walk,
        records: Records,
        by: str,
        sink: Callable[[Any, int], None],
        release_every: int,
        *,
        people: People | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._estimator, self._walk, self._records, self._people = estimator, walk, records, people
        self._by, self._sink, self._release_every = by, sink, release_every
        newest_batch, self._waiting = -1, 0
        self._points: str | None = None  # tables of raw state since the last release: estimates
        self._counted: str | None = None  # and the rows of keys that are not public
        self._shown: Any = None
        if estimator.discover_keys is not None:
            walk.raw.add_public_keys([])
        if (newest := records.newest()) is not None:
            newest_batch, state = newest
            self._restore(state)
            estimator.resume(goes_on(state["account"], ledger, dataset, newest_batch))
            if estimator.account.stale:
                self._waiting, self._points, self._counted = 0, None, None
        self._order = Order(newest_batch)

    def take(self, batch: Any, batch_id: int) -> None:
        """Walk through a batch and record it, then release; or, where it is recorded already, release the same."""
        with self._order.turn(batch_id) as is_new:
            if is_new:
                self._estimator.account.begin_batch(batch_id)
                self._walk_through(batch, batch_id)
            self._estimator.account.settle_batch()
        if self._shown is not None:
            self._sink(released_frame(batch, self._by, self._shown), batch_id)

    def _walk_through(self, batch: Any, batch_id: int) -> None:
        rows, discovers = self._walk.rows(batch, self._people), self._estimator.discover_keys is not None
        again = discovers or self._people is not None
        if again:  # more than one job looks at them
            rows = rows.persist()
        try:
            together = self._walk.together(rows, batch, self._frame(self._points), turn=batch_id)
            after = self._walk.walked(together, turn=batch_id)
            counted = (
                counted_keys(rows, self._walk.partitions(batch), self._frame(self._counted)) if discovers else None
            )
            if self._waiting + 1 >= self._release_every:
                self._release(after, counted)
            else:
                self._wait(after, counted, batch_id)
            if self._people is not None:
                self._people.write(rows, batch_id, self._walk.partitions(batch))
        finally:
            if again:
                rows.unpersist()
        self._records.write(batch_id, self._state(), self._tables())

    def _release(self, after: Any, counted: Any) -> None:
        """Fetch what is raw, and add noise to it."""
        found = self._walk.checked(Found(run(after.toArrow)))
        self._walk.raw.take(found.rows, found.codes, found.points)
        self._shown = None
        if self._estimator.items:
            self._shown = self._estimator.release() if counted is None else self._release_public(run(counted.toArrow))
        self._waiting, self._points, self._counted = 0, None, None

    def _release_public(self, counted: Any) -> Any:
        """A release of the public keys; it discovers more by the rows counted of the others."""
        return self._walk.raw.release_public(counted.column("key"), counted.column("count").to_numpy())

    def _wait(self, after: Any, counted: Any, batch_id: int) -> None:
        """Let executors keep what is raw; the driver looks at how many rows there were."""
        points = self._records.write_frame(f"keys-{batch_id}", after)
        found = self._walk.checked(Found(self._records.frame(points).where("code < 0").toArrow()))
        self._walk.raw.count_rows(found.rows)
        if counted is not None:
            self._counted = self._records.write_frame(f"counts-{batch_id}", counted)
        self._waiting, self._points, self._shown = self._waiting + 1, points, None

    def _frame(self, name: str | None) -> Any:
        return None if name is None else self._records.frame(name)

    def _tables(self) -> list[str]:
        """The raw tables that the next batch goes on from."""
        people = [] if self._people is None else self._people.parts
        return [name for name in (self._points, self._counted, *people) if name is not None]

    def _state(self) -> dict[str, Any]:
        """All of it is public but the key of coins and words, and what lies in the tables that it names."""
        return {
            "estimator": to_record(self._walk.raw),
            "shown": None if self._shown is None else release_to_record(self._estimator, self._shown),
            "waiting": self._waiting,
            "points": self._points,
            "counted": self._counted,
            "people": None if self._people is None else self._people.parts,
            "account": self._estimator.account.to_record(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        restore_record(self._walk.raw, state["estimator"])
        self._shown = None if state["shown"] is None else release_of_record(self._estimator, state["shown"])
        self._waiting, self._points, self._counted = state["waiting"], state["points"], state["counted"]
        if self._people is not None:
            self._people.parts = list(state["people"])
