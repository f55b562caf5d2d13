"""People on Spark: which rows of a person count, in one table or over all batches of a stream.

Which rows count depends on that person's rows and on chance only, as in ``keys.person_limits``. How many rows of each
person a stream has counted so far is raw: executors write it beside the other raw state, and read it from there.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from dpfrugal.engines.spark.stream_checkpoint import Records
from dpfrugal.engines.spark.unordered_walk.packets import NO_PERSON, SET_ASIDE, UNDECLARED

MOST_PARTS: Final = 16  # a part is read with every batch; so many are made one


class Bounds:
    """How many rows of a person count, or how many in each of how many keys; and, with the salt, which."""

    def __init__(self, max_items: int, max_keys: int | None, salt: int, *, undeclared: bool = False) -> None:
        self._max_items, self._max_keys, self._salt = max_items, max_keys, F.lit(salt)
        self._undeclared = undeclared  # rows of keys that are not public yet count too: they make keys known

    @property
    def _own(self) -> list[str]:
        return ["person"] if self._max_keys is None else ["person", "key"]

    def counts(self) -> Any:
        """Whether a row is one of those that a person may have only so many of."""
        code = F.col("code")
        return (code >= 0) | (code == UNDECLARED) if self._undeclared else code >= 0

    def bounded(self, rows: Any, partitions: int, before: Any = None) -> Any:
        """Rows beyond what their person may have get a code that moves nothing; ``before`` is what ``added`` gave.

        What was had before is not broadcast, which would take it through the driver.
        """
        rows = rows.withColumn("counts", self.counts())
        if before is None:
            rows = rows.repartition(partitions, "person").withColumns({"had": F.lit(0), "keys_had": F.lit(0)})
        else:
            rows = rows.repartition(partitions, *self._own).join(before.hint("merge"), self._own, "left")
            if self._max_keys is not None:
                keys_had = before.repartition(partitions, "person").groupBy("person")
                keys_had = keys_had.agg(F.count(F.lit(1)).alias("keys_had"))
                rows = rows.repartition(partitions, "person").join(keys_had.hint("merge"), "person", "left")
        had = F.coalesce("had", F.lit(0))
        # By what rows hold: a task that runs again may find them at other positions, and must choose the same.
        held = [name for name in ("key", "item", "order") if name in rows.columns]
        chance = F.xxhash64(*held, self._salt), F.xxhash64("row", self._salt)
        each = Window.partitionBy(*self._own, "counts").orderBy(*chance)
        spare = F.row_number().over(each) + had > self._max_items
        if self._max_keys is not None:  # by the keys' own hashes: codes depend on which other keys there are
            rows = rows.withColumn("new", had == 0)
            order = F.xxhash64(F.xxhash64("key"), "person", self._salt), "key"
            place = F.dense_rank().over(Window.partitionBy("person", "counts", "new").orderBy(*order))
            spare |= F.col("new") & (place + F.coalesce("keys_had", F.lit(0)) > self._max_keys)
        code = F.when(F.col("counts") & spare, F.lit(SET_ASIDE)).otherwise(F.col("code"))
        code = F.when(F.col("person").isNull(), F.lit(NO_PERSON)).otherwise(code)
        return rows.withColumn("code", code).drop("counts", "had", "keys_had", "new")

    def taken(self, bounded: Any) -> Any:
        """What each person has had of these rows: so many rows, in each key where keys are limited."""
        return bounded.where(self.counts()).select(*self._own, F.lit(1).cast("bigint").alias("had"))

    def added(self, parts: Sequence[Any], partitions: int) -> Any:
        """What several parts say together: a row for each person, or each person and key."""
        whole = reduce(lambda one, other: one.unionByName(other), parts).repartition(partitions, *self._own)
        return whole.groupBy(*self._own).agg(F.sum("had").alias("had"))


class People:
    """What the people of a stream have had, in parts: one for each batch, made one when they are many."""

    def __init__(self, records: Records, bounds: Bounds, parts: Sequence[str] = ()) -> None:
        self._records, self._bounds, self.parts = records, bounds, list(parts)

    def bounded(self, rows: Any, partitions: int) -> Any:
        """The rows of a batch, those beyond the bounds set aside."""
        before = self._before()
        return self._bounds.bounded(rows, partitions, self._bounds.added(before, partitions) if before else None)

    def write(self, bounded: Any, batch: int, partitions: int) -> None:
        """Note what was taken of a batch; that it counts is for the batch's record to say."""
        together = len(self.parts) >= MOST_PARTS
        parts = [self._bounds.taken(bounded), *(self._before() if together else [])]
        part = self._records.write_frame(f"people-{batch}", self._bounds.added(parts, partitions))
        self.parts = [*([] if together else self.parts), part]

    def _before(self) -> list[Any]:
        return [self._records.frame(part) for part in self.parts]
