"""Quantiles per key of a Spark table: the walk runs beside the data, the noise is drawn on the driver, once.

Spark sends all rows of a key to one task, where the compiled walk reads them as Arrow; one integer per key and quantile
comes back. Whatever task Spark runs twice, the driver takes one result of each and releases once; the DataFrame
that it returns holds released values, and computing it again draws nothing (docs/proofs.md, Theorem 13).
"""

import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as F  # noqa: N812

from dpfrugal import coins
from dpfrugal.engines.spark_columns import checked_frame, field, item, reference
from dpfrugal.engines.spark_keys import (
    RESULT,
    bounded,
    checked_kind,
    coded,
    declared_keys,
    gathered,
    in_order,
    key_frame,
    partitions_for,
)
from dpfrugal.engines.spark_worker import InWorker
from dpfrugal.errors import ItemError, TableError
from dpfrugal.frugal import NanPolicy
from dpfrugal.guarantees import ApproxDP, Guarantee
from dpfrugal.key_index import NullKeys
from dpfrugal.keyed import KeyedDPFrugal1U
from dpfrugal.ledger import Ledger
from dpfrugal.packets import COUNTS
from dpfrugal.scattered import Walker

log = logging.getLogger(__name__)


class KeyedOptions(TypedDict, total=False):
    """What ``KeyedDPFrugal1U`` takes besides the quantiles, the guarantee and the keys."""

    decimals: int
    start: float | Sequence[float]
    max_items_per_person: int
    max_keys_per_person: int | None
    adaptive_steps: bool
    nan_policy: NanPolicy
    null_keys: NullKeys
    max_keys: int
    coin_seed: int | None
    ledger: Ledger | None
    dataset: str | None


def quantiles_by(
    df: Any,
    column: str,
    *,
    by: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    keys: Any = None,
    discover_keys: ApproxDP | None = None,
    order_by: str | None = None,
    person: str | None = None,
    partitions: int | None = None,
    **options: Unpack[KeyedOptions],
) -> Any:
    """Private quantiles of ``column`` for every key of ``by``: a DataFrame of key, quantile, value and α.

    ``keys`` are declared as a DataFrame, an array or a list; or ``discover_keys`` says what finding them may cost. The
    rows of a key are walked in the order of ``order_by`` where it is given; the guarantee needs no order. With
    ``person``, rows beyond a person's bounds are set aside. The other options are those of ``KeyedDPFrugal1U``.
    """
    item(checked_frame(df, streaming=False), column)
    field(df, by)
    estimator = KeyedDPFrugal1U(
        quantiles, guarantee, keys=declared_keys(keys, by), discover_keys=discover_keys, **options
    )
    walk = Walk(estimator, column, by, order_by, person, partitions)
    if discover_keys is not None:
        _count_keys(estimator, df, by, walk)
    found = walk.collected(df)
    if not found.rows:
        raise ItemError("There is nothing to release: the table has no rows.")
    take(estimator, found)
    return released_frame(df.sparkSession, by, estimator.release())


def released_frame(spark: Any, by: str, table: Any) -> Any:
    """A table of released values as a DataFrame, its keys under their own name."""
    import pyarrow as pa

    keys = table.column("key")
    if pa.types.is_large_string(keys.type) or pa.types.is_large_binary(keys.type):
        keys = keys.cast(pa.string() if pa.types.is_large_string(keys.type) else pa.binary())
    names = [by if by not in table.column_names else "key", *table.column_names[1:]]
    return spark.createDataFrame(pa.table([keys, *table.columns[1:]], names=names))


class Found:
    """What the tasks have brought: estimates by key, and how many rows there were."""

    def __init__(self, table: Any) -> None:
        codes = table.column("code").to_numpy()
        points = table.column("points").combine_chunks()
        seen = table.column("seen").combine_chunks().flatten().to_numpy().reshape(-1, COUNTS).sum(axis=0)
        self.rows, self.missing, self.null_keys, self.set_aside, self.no_person = (int(count) for count in seen)
        own = codes >= 0
        self.codes: NDArray[np.int32] = codes[own]
        self.points: NDArray[np.int64] = points.flatten().to_numpy().reshape(codes.size, -1)[own]


class Walk:
    """The walk of one estimator through the rows of DataFrames."""

    def __init__(
        self,
        estimator: KeyedDPFrugal1U,
        column: str,
        by: str,
        order_by: str | None,
        person: str | None,
        partitions: int | None,
    ) -> None:
        checked_kind(estimator._index)
        self._estimator, self._column, self._by = estimator, column, by
        self._order_by, self._person, self._partitions = order_by, person, partitions
        self._salt = secrets.randbits(62)  # of which rows of a person count
        self._key_frame: Any = None
        self._in_key_frame = 0

    def rows(self, df: Any) -> Any:
        """Rows with the code of their key, negative where they move nothing."""
        estimator = self._estimator
        rows = coded(df, self._column, self._by, self._keys(df), self._order_by, self._person)
        if self._person is None:
            return rows
        return bounded(rows, estimator._max_items_per_person, estimator._max_keys_per_person, self._salt)

    def _keys(self, df: Any) -> Any:
        """The keys with their codes: made once, not for every micro-batch; keys are only ever added."""
        index = self._estimator._index
        if self._in_key_frame < index.size:
            self._key_frame, self._in_key_frame = key_frame(df, self._by, index.keys), index.size
        return self._key_frame

    def frame(self, df: Any, state: Any = None, turn: int = 0) -> Any:
        """The estimates after the rows, as a DataFrame that has not run; ``state`` are those before, if not public.

        Positions start anew with every DataFrame, so each ``turn`` has a generator of coins of its own.
        """
        own = self._estimator._state
        walker = Walker(
            own.path.quantiles,
            own.path.grid.decimals,
            coins.mix64((own.path.key + turn) & coins.WORD_MASK) if turn else own.path.key,
            own.estimates,  # the driver holds those of the last release only
            own.steps if own.widest > 1 else None,
        )
        together = gathered if self._order_by is None else in_order
        return together(self.rows(df), state, partitions_for(df, self._partitions)).mapInArrow(InWorker(walker), RESULT)

    def collected(self, df: Any) -> Found:
        """The estimates, fetched once; what the policies refuse is refused here, before anything has changed."""
        return self.checked(Found(run(self.frame(df).toArrow)))

    def checked(self, found: Found) -> Found:
        """What was found, unless a policy refuses it."""
        if found.null_keys and self._estimator._null_keys == "raise":
            raise ItemError('There are null keys; clean the data, or use null_keys="drop".')
        if found.missing and self._estimator._nan_policy == "raise":
            raise ItemError('There are NaN or null items; clean the data, or use nan_policy="omit".')
        if found.no_person:
            raise ItemError("person has null ids; clean the data.")
        if found.set_aside:
            log.info("%d rows were more than their person may have, and were set aside.", found.set_aside)
        return found


def take(estimator: KeyedDPFrugal1U, found: Found) -> None:
    """Put what was found into the estimator."""
    estimates = estimator._state.estimates.copy()
    estimates[found.codes] = found.points
    clock = np.array([estimator.items + found.rows], dtype=np.int64)
    estimator._state = replace(estimator._state, estimates=estimates, clock=clock)


def run(action: Any) -> Any:
    """What an action gives; an executor that lacks a module is reported in a sentence."""
    from pyspark.errors import PythonException

    lacking = None
    try:
        return action()
    except PythonException as error:
        lacking = re.search(r"ModuleNotFoundError: No module named '(\w+)", str(error))
        if lacking is None:
            raise
    raise TableError(
        f"An executor has no module {lacking[1]}: install dpfrugal[spark] and what your own functions need on every "
        "executor, or ship an environment with spark.archives."
    )


def _count_keys(estimator: KeyedDPFrugal1U, df: Any, by: str, walk: Walk) -> None:
    """Make all keys that occur known to the estimator, then count the rows that will move them, each person's bounded.

    The estimator decides which keys may be shown.
    """
    discovery = estimator._discovery
    if discovery is None:
        return
    occurring = df.where(reference(by).isNotNull()).select(reference(by).alias("key")).distinct().toArrow()
    discovery.count(estimator._index.codes(occurring.column("key")))  # makes room
    estimator._state = estimator._state.with_room(estimator._index.size, estimator._first_start)
    moving = walk.rows(df).where((F.col("code") >= 0) & F.col("item").isNotNull() & ~F.isnan("item"))
    found = moving.groupBy("code").count().toArrow()
    counts = np.zeros_like(discovery.counts())
    counts[found.column("code").to_numpy()] = found.column("count").to_numpy()
    discovery.restore(counts, discovery.shown())
