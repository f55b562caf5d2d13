"""Key discovery on Spark: rows are counted per key beside the data, and the estimator decides which keys are shown.

Of a table, every key that occurs is counted and walked, and the driver sees all of them, as on one machine. Of a
stream, keys that are not public are counted only, from one release to the next: what is kept for ever are public keys.
So a key is walked from the release that has found it, and has its first value at the one after.
"""

from dataclasses import replace
from typing import Any, cast

import numpy as np
from pyspark.sql import functions as F  # noqa: N812

from dpfrugal.engines.spark.columns import reference
from dpfrugal.engines.spark.unordered_walk.packets import UNDECLARED
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.keys.discovery import KeyDiscovery, in_order_of_keys

MOVES = "item IS NOT NULL AND NOT isnan(item)"


def know_all_keys(estimator: KeyedDPFrugal1U, df: Any, by: str) -> None:
    """Give every key that occurs in a table a code."""
    occurring = df.where(reference(by).isNotNull()).select(reference(by).alias("key")).distinct().toArrow()
    _know(estimator, occurring.column("key"), None)


def count_known_keys(estimator: KeyedDPFrugal1U, rows: Any) -> None:
    """Count the rows that will move estimates, each person's bounded."""
    found = rows.where(f"code >= 0 AND {MOVES}").groupBy("code").count().toArrow()
    discovery = _discovery_of(estimator)
    counts = np.zeros_like(discovery.counts())
    counts[found.column("code").to_numpy()] = found.column("count").to_numpy()
    discovery.restore(counts, discovery.shown())


def counted_keys(rows: Any, partitions: int, before: Any = None) -> Any:
    """Rows since the last release of each key that is not public, as a DataFrame of key and count."""
    now = rows.where(f"code = {UNDECLARED} AND {MOVES}").select("key", F.lit(1).cast("bigint").alias("count"))
    both = now if before is None else now.unionByName(before)
    return both.repartition(partitions, "key").groupBy("key").agg(F.sum("count").alias("count"))


def release_of_public(estimator: KeyedDPFrugal1U, counted: Any) -> Any:
    """A release of the keys that were public before, after which those that it has found are public too.

    ``counted`` is what ``counted_keys`` gave, fetched. All that is not public is forgotten.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    index, before = estimator._index, estimator._index.size
    public = index.keys
    try:
        _know(estimator, counted.column("key"), counted.column("count").to_numpy())
        table = estimator.release()
        found = _discovery_of(estimator).public
        names = index.keys.take(pa.array(in_order_of_keys(index.keys, found[found >= before])))
    finally:
        index.forget(before)
    keep_public(estimator, names)
    own = pc.is_in(table.column("key"), value_set=public) if before else pa.array([False] * len(table))
    estimator._last = table.filter(own)
    return estimator._last


def keep_public(estimator: KeyedDPFrugal1U, names: Any) -> None:
    """Let the estimator know the public keys that it has had so far, and these, at their public start."""
    index, state, before = estimator._index, estimator._state, estimator._index.size
    if len(names):
        index.codes(names)
    new = KeyedState.at(
        np.full(index.size - before, estimator._first_start, dtype=np.int64), state.path, state.steps is not None
    )
    estimator._state = replace(
        state,
        estimates=np.concatenate([state.estimates[:before], new.estimates]),
        anchors=np.concatenate([state.anchors[:before], new.anchors]),
        steps=None if state.steps is None else np.concatenate([state.steps[:before], new.steps]),
    )
    _discovery_of(estimator).restore(np.zeros(index.size, dtype=np.int64), np.ones(index.size, dtype=np.bool_))


def _know(estimator: KeyedDPFrugal1U, keys: Any, counts: Any) -> None:
    """Make room for keys, and count so many rows of each."""
    discovery = _discovery_of(estimator)
    codes = estimator._index.codes(keys)
    discovery.count(codes)  # makes room
    room = np.zeros_like(discovery.counts())
    if counts is not None:
        room[codes] = counts
    discovery.restore(room, discovery.shown())
    estimator._state = estimator._state.with_room(estimator._index.size, estimator._first_start)


def _discovery_of(estimator: KeyedDPFrugal1U) -> KeyDiscovery:
    return cast(KeyDiscovery, estimator._discovery)
