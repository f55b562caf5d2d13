"""Private quantiles of the windows of a Spark stream, of all rows or for each key.

Each row is in one window, so all windows together cost one guarantee (docs/proofs.md, Theorem 13).
"""

import hashlib
import os
from collections.abc import Sequence
from typing import Any

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.engines.spark.batch import fetched_keys
from dpfrugal.engines.spark.columns import arrow_type, checked_frame, kind_of_values, type_of
from dpfrugal.engines.spark.stream_answers import Answers, ColumnAnswers, KeyedAnswers, Sink
from dpfrugal.engines.spark.stream_batches import Batches, goes_on
from dpfrugal.engines.spark.stream_checkpoint import Records
from dpfrugal.engines.spark.stream_windows import Windows, windows_of
from dpfrugal.engines.spark.streaming_query import Query, checked_sink, checked_trigger
from dpfrugal.estimators.keyed.release_table import total_cost
from dpfrugal.estimators.table.base.kinds import hinted
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.private_quantiles import interval_rule
from dpfrugal.keys.columns import KeyColumns
from dpfrugal.keys.discovery import declared_or_discovered
from dpfrugal.keys.index import MOST_KEYS
from dpfrugal.parameters import NanPolicy, Neighbours, NullKeys
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee, checked_guarantee


def stream_private_quantiles(
    df: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    checkpoint: str | os.PathLike[str],
    sink: Sink,
    window: str | None = None,
    time: str | None = None,
    watermark: str | None = None,
    person: str | None = None,
    max_items_per_person: int = 1,
    windows: int | None = None,
    neighbours: Neighbours = "replace",
    intervals: bool = True,
    confidence: float = 0.95,
    interval_of: IntervalOf = "population",
    low: Any = None,
    high: Any = None,
    decimals: int | None = None,
    nan_policy: NanPolicy = "raise",
    ledger: Ledger | None = None,
    dataset: str | None = None,
    trigger: dict[str, Any] | None = None,
) -> Query:
    """Start a StreamingQuery that calls ``sink(release, batch_id)`` for every window that has ended.

    A window is so long (``window="1 minute"``) by the column ``time``, and ends once rows that are later by
    ``watermark`` have come: Spark leaves out what comes later still. Without ``time`` each micro-batch is a window.
    A ``StreamRelease`` has ``start`` and ``end``. ``checkpoint`` is Spark's checkpoint folder. After a restart the sink
    may be called again for the last batch, with the same releases: write under ``start``, or ``batch_id``. The other
    options are those of ``WindowQuantile``; ``trigger`` is Spark's, such as ``{"processingTime": "10 seconds"}``.

    >>> import tempfile, dpfrugal as dpf
    >>> from dpfrugal.engines.spark import local_session, stream_private_quantiles
    >>> folder, spark = tempfile.mkdtemp(), local_session()
    >>> rows = spark.range(9_000).selectExpr("id % 2 AS route", "7 AS ms")
    >>> rows.write.parquet(f"{folder}/in")
    >>> stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/in")
    >>> shown = []
    >>> query = stream_private_quantiles(
    ...     stream,
    ...     "ms",
    ...     0.5,
    ...     dpf.PureDP(epsilon=1.0),
    ...     checkpoint=f"{folder}/checkpoint",
    ...     sink=lambda release, batch_id: shown.append(release),
    ...     trigger={"availableNow": True},
    ... )
    >>> query.awaitTermination()
    >>> [release.value for release in shown]
    [7]
    """
    checked_frame(df, streaming=True)
    cut = windows_of(df, column, (), person, time, window, watermark)
    per_person = parameters.max_items_per_person(max_items_per_person)
    asked = _asked(
        quantiles, guarantee, neighbours, per_person, windows, intervals, confidence, interval_of, grouped=False
    )
    kind = kind_of_values(df, column)
    answers = ColumnAnswers(
        plan_of(asked), parameters.quantiles(quantiles), kind, hinted(kind, low, high, decimals),
        person, per_person, parameters.nan_policy(nan_policy),
    )  # fmt: skip
    hints = [low, high, decimals]
    return _started(
        df, cut, answers, {"hints": hints}, checkpoint, sink, "a release", trigger, windows, ledger, dataset
    )


def stream_quantiles_by(
    df: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    by: str | Sequence[str],
    checkpoint: str | os.PathLike[str],
    sink: Sink,
    window: str | None = None,
    time: str | None = None,
    watermark: str | None = None,
    keys: Any = None,
    discover_keys: ApproxDP | None = None,
    other: Any = None,
    null_keys: NullKeys = "raise",
    person: str | None = None,
    max_items_per_person: int = 1,
    max_keys_per_person: int | None = None,
    windows: int | None = None,
    neighbours: Neighbours = "replace",
    intervals: bool = True,
    confidence: float = 0.95,
    interval_of: IntervalOf = "population",
    counts: bool = True,
    low: Any = None,
    high: Any = None,
    decimals: int | None = None,
    nan_policy: NanPolicy = "raise",
    max_keys: int = MOST_KEYS,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    trigger: dict[str, Any] | None = None,
) -> Query:
    """Start a StreamingQuery that calls ``sink(table, batch_id)`` with the windows that a micro-batch has ended.

    ``table`` is a DataFrame: ``window_start`` and ``window_end`` where there is a ``time``, then the keys under their
    own names, quantile, value, lower, upper, rows and reason, as in ``dpf.quantiles_by``. Every window has every
    declared key; keys that are discovered are those of each window by itself. After a restart the sink may be called
    again for the last batch, with the same table: write under the window, or ``batch_id``. Windows are those of
    ``stream_private_quantiles``; the other options are those of ``KeyedWindowQuantile``.

    >>> import tempfile, dpfrugal as dpf
    >>> from dpfrugal.engines.spark import local_session, stream_quantiles_by
    >>> folder, spark = tempfile.mkdtemp(), local_session()
    >>> rows = spark.range(9_000).selectExpr("id % 2 AS route", "7 AS ms")
    >>> rows.write.parquet(f"{folder}/in")
    >>> stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/in")
    >>> shown = []
    >>> query = stream_quantiles_by(
    ...     stream,
    ...     "ms",
    ...     0.5,
    ...     dpf.PureDP(epsilon=1.0),
    ...     by="route",
    ...     keys=[0, 1],
    ...     checkpoint=f"{folder}/checkpoint",
    ...     sink=lambda table, batch_id: shown.extend(table.collect()),
    ...     trigger={"availableNow": True},
    ... )
    >>> query.awaitTermination()
    >>> [(row.route, row.value) for row in shown]
    [(0, 7), (1, 7)]
    """
    checked_frame(df, streaming=True)
    names = (by,) if isinstance(by, str) else tuple(by)
    cut = windows_of(df, column, names, person, time, window, watermark)
    per_person = parameters.max_items_per_person(max_items_per_person)
    keys_per_person = parameters.max_keys_per_person(max_keys_per_person)
    asked = _asked(
        quantiles, guarantee, neighbours, per_person * (keys_per_person or 1), windows, intervals, confidence,
        interval_of, grouped=True, counts=counts,
    )  # fmt: skip
    keys = fetched_keys(keys, list(names))
    declared_or_discovered(keys, discover_keys)
    index = KeyColumns(names, keys, max_keys=max_keys, typed=keys is None)
    if keys is not None:
        index.codes([cut.empty.column(name) for name in names])  # of the column's type
    kind = kind_of_values(df, column)
    options = {
        "keys": keys, "other": other, "null_keys": parameters.null_keys(null_keys), "max_keys": max_keys,
        "windows": asked.windows,
    }  # fmt: skip
    answers = KeyedAnswers(
        plan_of(asked), parameters.quantiles(quantiles), kind, hinted(kind, low, high, decimals),
        person, per_person, parameters.nan_policy(nan_policy), names,
        tuple(arrow_type(type_of(df, name)) for name in names), keys_per_person, discover_keys, options,
    )  # fmt: skip
    digest = None
    if keys is not None:
        declared = repr([column.to_pylist() for column in index.columns().values()])
        digest = hashlib.sha256(declared.encode("utf-8")).hexdigest()
    public = {
        "by": list(names), "keys": digest, "other": repr(other), "null_keys": null_keys, "max_keys": max_keys,
        "discover_keys": None if discover_keys is None else discover_keys.to_record(),
        "max_keys_per_person": keys_per_person, "hints": [low, high, decimals],
    }  # fmt: skip
    return _started(df, cut, answers, public, checkpoint, sink, "a table", trigger, windows, ledger, dataset)


def _asked(
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    neighbours: Neighbours,
    rows_per_person: int,
    windows: int | None,
    intervals: bool,
    confidence: float,
    interval_of: IntervalOf,
    *,
    grouped: bool,
    counts: bool = False,
) -> Asked:
    """What every window shall hold: public, and the same for all."""
    return Asked(
        tuple(sorted(map(parameters.exact, parameters.quantiles(quantiles)))),
        checked_guarantee(guarantee),
        parameters.neighbours(neighbours),
        grouped=grouped,
        rows_per_person=rows_per_person,
        intervals=interval_rule(intervals, confidence, interval_of),
        counts=parameters.truth("counts", counts),
        windows=1 if windows is None else parameters.integer("windows", windows, 1, 10**9),
    )


def _started(
    df: Any,
    cut: Windows,
    answers: Answers,
    public: dict[str, Any],
    checkpoint: str | os.PathLike[str],
    sink: Sink,
    of: str,
    trigger: dict[str, Any] | None,
    windows: int | None,
    ledger: Ledger | None,
    dataset: str | None,
) -> Query:
    """The query, charged to the ledger, or going on where it stopped."""
    checked_sink(sink, of)
    checked_trigger(trigger)
    asked = answers.plan.asked
    names = [cut.value, *cut.by, *([] if cut.person is None else [cut.person])]
    query = public | {
        "column": cut.value, "person": cut.person, "time": cut.time, "window": cut.length, "watermark": cut.watermark,
        "types": [type_of(df, name).simpleString() for name in names], "quantiles": list(answers.quantiles),
        "guarantee": asked.guarantee.to_record(), "neighbours": asked.neighbours, "counts": asked.counts,
        "intervals": None if asked.intervals is None else [asked.intervals.confidence, asked.intervals.of],
        "max_items_per_person": answers.max_items_per_person, "windows": windows,
        "nan_policy": answers.nan_policy,
    }  # fmt: skip
    records = Records(df.sparkSession, checkpoint, {name: _plain(value) for name, value in query.items()}).ready()
    newest = records.newest()
    if newest is None:
        discover_keys = answers.discover_keys if isinstance(answers, KeyedAnswers) else None
        account = Account.opened(
            *(ledger, dataset, asked.guarantee if ledger is None else total_cost(asked.guarantee, discover_keys)),
            by="stream_quantiles_by" if asked.grouped else "stream_private_quantiles",
            max_items_per_person=answers.max_items_per_person,
            neighbours=asked.neighbours,
            asked={"column": cut.value, "quantiles": list(answers.quantiles), "windows": windows}
            | ({"by": list(cut.by)} if cut.by else {}),
        )
    else:
        account = goes_on(newest[1]["account"], ledger, dataset, newest[0])
    batches = Batches(cut, answers, records, sink, account.held(), windows, None if newest is None else newest[1])
    writer = cut.of(df).writeStream.option("checkpointLocation", records.checkpoint)
    return Query(writer.trigger(**trigger) if trigger else writer, batches.take)


def _plain(value: Any) -> Any:
    """A hint as a text."""
    return (
        [each if each is None or isinstance(each, str | int | float) else str(each) for each in value]
        if isinstance(value, list)
        else value
    )
