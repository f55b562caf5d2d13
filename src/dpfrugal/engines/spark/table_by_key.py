"""Quantiles per key of a Spark table: the walk runs beside the data, the noise is drawn on the driver, once.

Spark sends all rows of a key to one task, where the compiled walk reads them as Arrow; one integer per key and quantile
comes back. Whatever task Spark runs twice, the driver takes one result of each and releases once; the DataFrame
that it returns holds released values, and computing it again draws nothing (docs/proofs.md, Theorem 13).
"""

import logging
import secrets
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.ledger import Ledger
from dpfrugal.engines.spark.columns import checked_frame, field, item
from dpfrugal.engines.spark.key_discovery import count_known_keys, know_all_keys
from dpfrugal.engines.spark.keys import (
    RESULT,
    checked_kind,
    coded,
    fetched_keys,
    gathered,
    in_order,
    key_frame,
    partitions_for,
)
from dpfrugal.engines.spark.person_limits import Bounds, People
from dpfrugal.engines.spark.unordered_walk.packets import COUNTS
from dpfrugal.engines.spark.unordered_walk.walker import Walker
from dpfrugal.engines.spark.worker import InWorker, run
from dpfrugal.engines.two_scans import checked_options
from dpfrugal.errors import ItemError
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.estimators.keyed.raw_state import RawState
from dpfrugal.kernels import coins
from dpfrugal.parameters import NanPolicy, NullKeys, integer
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee

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
    rounds: int = 1,
    **options: Unpack[KeyedOptions],
) -> Any:
    """Private quantiles of ``column`` for every key of ``by``: a DataFrame of key, quantile, value and α.

    ``keys`` are declared as a DataFrame, an array or a list; or ``discover_keys`` says what finding them may cost. The
    rows of a key are walked in the order of ``order_by`` where it is given; the guarantee needs no order. With
    ``person``, rows beyond a person's bounds are set aside. ``rounds`` is how many releases there are, of equal shares
    of the rows, of which the last is returned: steps adapt where quantiles are far from the start, for the one
    guarantee. The other options are those of ``KeyedDPFrugal1U``.
    """
    rounds = integer("rounds", rounds, 1)
    checked_options(options, KeyedOptions)
    item(checked_frame(df, streaming=False), column)
    field(df, by)
    estimator = KeyedDPFrugal1U(
        quantiles, guarantee, keys=fetched_keys(keys, by), discover_keys=discover_keys, **options
    )
    walk = Walk(estimator, column, by, order_by, person, partitions)
    if discover_keys is not None:
        know_all_keys(walk.raw, df, by)
        count_known_keys(walk.raw, walk.rows(df))
    together = walk.together(walk.rows(df), df, rounds=rounds)
    if rounds > 1:  # never gathered anew: a row that changed its position would be in two rounds
        together = run(together.localCheckpoint)
    for turn in range(rounds):
        own = together if rounds == 1 else together.where(f"round = {turn}")
        found = walk.checked(Found(run(walk.walked(own).toArrow)))
        walk.raw.take(found.rows, found.codes, found.points)
        if estimator.items:
            walk.raw.fresh_release()  # each round has its release, also one without rows
    if not estimator.items:
        raise ItemError("There is nothing to release: the table has no rows.")
    return released_frame(df, by, estimator.release())


def released_frame(df: Any, by: str, table: Any) -> Any:
    """A table of released values as a DataFrame: keys have their own name and, also where there are none, type."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    keys = table.column("key")
    if pa.types.is_null(keys.type):
        keys = keys.cast(to_arrow_type(field(df, by).dataType))
    if pa.types.is_large_string(keys.type) or pa.types.is_large_binary(keys.type):
        keys = keys.cast(pa.string() if pa.types.is_large_string(keys.type) else pa.binary())
    names = [by if by not in table.column_names else "key", *table.column_names[1:]]
    return df.sparkSession.createDataFrame(pa.table([keys, *table.columns[1:]], names=names))


class Found:
    """What the tasks have brought: estimates by key, and how many rows there were."""

    def __init__(self, table: Any) -> None:
        codes = table.column("code").to_numpy()
        points = table.column("points").combine_chunks().flatten().to_numpy()
        seen = table.column("seen").combine_chunks().flatten().to_numpy().reshape(-1, COUNTS).sum(axis=0)
        self.rows, self.missing, self.null_keys, self.set_aside, self.no_person = (int(count) for count in seen)
        own = codes >= 0
        self.codes: NDArray[np.int32] = codes[own]
        # Spark makes no task where there are no rows at all.
        self.points: NDArray[np.int64] = points.reshape(codes.size, -1 if codes.size else 1)[own]


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
        *,
        undeclared: bool = False,
    ) -> None:
        self.raw = RawState(estimator)
        checked_kind(self.raw.index)
        self._estimator, self._column, self._by = estimator, column, by
        self._order_by, self._person, self._partitions = order_by, person, partitions
        bounds = estimator.max_items_per_person, estimator.max_keys_per_person
        self.bounds = Bounds(*bounds, secrets.randbits(62), undeclared=undeclared)
        self._key_frame: Any = None
        self._in_key_frame = 0

    def rows(self, df: Any, people: People | None = None) -> Any:
        """Rows with the code of their key, negative where they move nothing; ``people`` is who has had rows before."""
        rows = coded(df, self._column, self._by, self._keys(df), self._order_by, self._person)
        if self._person is None:
            return rows
        return (people or self.bounds).bounded(rows, self.partitions(df))

    def partitions(self, df: Any) -> int:
        """Among how many the rows of ``df`` are shared."""
        return partitions_for(df, self._partitions)

    def _keys(self, df: Any) -> Any:
        """The keys with their codes: made once, not for every micro-batch; keys are only ever added."""
        index = self.raw.index
        if self._in_key_frame < index.size:
            self._key_frame, self._in_key_frame = key_frame(df, self._by, index.keys), index.size
        return self._key_frame

    def together(self, rows: Any, df: Any, state: Any = None, rounds: int = 1, turn: int = 0) -> Any:
        """The rows of each key in one place; ``state`` are the estimates before them, if those are raw."""
        gather = gathered if self._order_by is None else in_order
        return gather(rows.drop("key", "person"), state, self.partitions(df), self._coin_key(turn), rounds)

    def _coin_key(self, turn: int) -> int:
        """Positions start anew with every batch of a stream, so each ``turn`` has words of its own."""
        key = self.raw.walks.path.key
        return coins.mix64((key + turn) & coins.WORD_MASK) if turn else key

    def walked(self, together: Any, turn: int = 0) -> Any:
        """The estimates after these rows, as a DataFrame that has not run."""
        own = self.raw.walks
        walker = Walker(
            own.path.quantiles,
            own.path.grid.decimals,
            self._coin_key(turn),
            own.estimates,  # the driver holds those of the last release only, and of keys that are not public yet
            own.steps if own.widest > 1 else None,
        )
        return together.mapInArrow(InWorker(walker), RESULT)

    def checked(self, found: Found) -> Found:
        """What was found, unless a policy refuses it, before anything has changed."""
        if found.null_keys and self._estimator.null_keys == "raise":
            raise ItemError('There are null keys; clean the data, or use null_keys="drop".')
        if found.missing and self._estimator.nan_policy == "raise":
            raise ItemError('There are NaN or null items; clean the data, or use nan_policy="omit".')
        if found.no_person:
            raise ItemError("person has null ids; clean the data.")
        if found.set_aside:
            log.info("Not for publication: %d rows exceeded the limit per person and were dropped.", found.set_aside)
        return found
