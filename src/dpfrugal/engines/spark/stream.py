"""Global quantiles of a Spark stream: a micro-batch is counted by Spark and is, or joins, a segment.

The first batches, up to some hundred thousand rows, are taken in as a table is: one large batch is as good as many.

A batch's state is on disk before its release leaves: one record per batch, written once. A batch that Spark replays
after a crash is not counted again, and what the sink gets for it is the release that was recorded. So no two releases
with different noise show the same items (docs/proofs.md, Theorem 13).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.engines import two_scans
from dpfrugal.engines.spark.columns import checked_frame, item, reference
from dpfrugal.engines.spark.stream_checkpoint import Records
from dpfrugal.engines.spark.streaming_query import Query, checked_sink, checked_trigger
from dpfrugal.engines.spark.table import Rows, counts
from dpfrugal.engines.two_scans import Options, checked_options
from dpfrugal.errors import ParameterError, PrivacyError, ReplayError
from dpfrugal.estimators.base import estimator_of_raw, raw_contents, resume
from dpfrugal.estimators.releases import SegmentRelease
from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.storage.checkpoint_file import Contents

Sink = Callable[[SegmentRelease, int], None]


def stream_private_quantiles(
    df: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    checkpoint: str | os.PathLike[str],
    sink: Sink,
    trigger: dict[str, Any] | None = None,
    **options: Unpack[Options],
) -> Query:
    """Start a StreamingQuery that calls ``sink(release, batch_id)`` after every micro-batch, once there is a release.

    ``checkpoint`` is Spark's checkpoint folder; it holds raw state besides. After a restart the sink may be called
    again for the last batch, with the same release: write by ``batch_id``. ``trigger`` is Spark's, such as
    ``{"processingTime": "10 seconds"}``.
    """
    item(checked_frame(df, streaming=True), column)
    checked_sink(sink, "a release")
    checked_trigger(trigger)
    checked_options(options, Options)
    ledger, dataset = options.pop("ledger", None), options.pop("dataset", None)
    estimator = PrivateQuantile(quantiles, guarantee, **options)
    query = {"kind": "private_quantiles", "column": column, "parameters": estimator.parameters()}
    records = Records(df.sparkSession, checkpoint, query).ready()
    if records.newest() is None:  # a stream that goes on has been charged
        options["ledger"], options["dataset"] = ledger, dataset
        estimator = PrivateQuantile(quantiles, guarantee, **options)
    segments = Segments(estimator, column, records, sink, ledger, dataset)
    writer = df.writeStream.option("checkpointLocation", records.checkpoint)
    return Query(writer.trigger(**trigger) if trigger else writer, segments.take)


class Segments:
    """What becomes of each micro-batch."""

    def __init__(
        self,
        estimator: PrivateQuantile,
        column: str,
        records: Records,
        sink: Sink,
        ledger: Ledger | None = None,
        dataset: str | None = None,
    ) -> None:
        self._estimator, self._column, self._records, self._sink = estimator, column, records, sink
        newest_batch = -1
        if (newest := records.newest()) is not None:
            newest_batch, record = newest
            contents = Contents(type(estimator).__name__, estimator.parameters(), record["state"])
            self._estimator = estimator_of_raw(PrivateQuantile, contents)
            resume(self._estimator, goes_on(record["account"], ledger, dataset, newest_batch))
        self._order = Order(newest_batch)

    def take(self, batch: Any, batch_id: int) -> None:
        """Count a batch and record it, then release; or, where it is recorded already, release the same again."""
        with self._order.turn(batch_id) as is_new:
            if is_new:
                self._estimator.account.begin_batch(batch_id)
                self._count(batch)
                state, account = raw_contents(self._estimator).state, self._estimator.account.to_record()
                self._records.write(batch_id, {"state": state, "account": account})
            self._estimator.account.settle_batch()
        if self._estimator.completed_items:  # a segment is complete: nothing is drawn for this release
            self._sink(self._estimator.release(), batch_id)

    def _count(self, batch: Any) -> None:
        """The first rows of a stream are looked at one by one, as those of a table: nothing is known of them yet."""
        if self._estimator.items < two_scans.SAMPLE:
            held = batch.select(reference(self._column)).persist()  # behind a shuffle, two scans would differ
            try:
                two_scans.take(self._estimator, Rows(held, self._column))
            finally:
                held.unpersist()
            return
        found = counts(batch, self._column, self._estimator.edges)
        if found.bins.sum() + found.missing:
            self._estimator.absorb(found.bins, missing=found.missing, whole=False)


class Order:
    """Which batch of a stream may come: the one after the last, or the last one again, which has its record."""

    def __init__(self, newest: int) -> None:
        self._newest, self._failed = newest, False

    @contextmanager
    def turn(self, batch: int) -> Iterator[bool]:
        """Whether the batch is new; it is the newest one afterwards. What failed half way must be started again."""
        if self._failed:
            raise PrivacyError("An error has ended this stream in the middle of a batch; start it again.")
        if batch not in (self._newest, self._newest + 1):
            raise PrivacyError(
                f"Batch {batch} came where batch {self._newest + 1} is next: its rows may be counted already. The raw "
                "state in this checkpoint does not belong to Spark's own files beside it; begin with a new folder."
            )
        self._failed = True
        yield batch > self._newest
        self._newest, self._failed = batch, False


def goes_on(record: dict[str, Any], ledger: Ledger | None, dataset: str | None, newest: int) -> Account:
    """The account of a stream that is started again after the batch ``newest``.

    A driver that dies after the ledger has moved and before the batch has a record has shown nothing: what waited in
    the open segment is forgotten then, and the batch is counted anew. Where a later batch may have been shown, the
    checkpoint is an older copy, and refused.
    """
    if record["ledger"] is not None and ledger is None:
        raise ReplayError("The checkpoint of this stream is charged to a ledger: give ledger= and dataset= again.")
    account = Account.of_record(record, ledger)
    account.prove_batch_fresh(newest)
    if dataset not in (None, account.dataset):
        raise ParameterError(f"The checkpoint of this stream is charged to the dataset {account.dataset!r}.")
    return account
