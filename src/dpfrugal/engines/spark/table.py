"""Spark: quantiles of a DataFrame, whose rows stay in the cluster; windows of order statistics reach the driver.

Each scan is an aggregation: every executor counts the rows of its partitions below a bracket, beyond it, and by value
within it, and only these sums are shuffled. So no key's rows are ever brought to one executor as a whole, however many
they are; and what a task that is run twice has counted is counted once.
"""

import secrets
from typing import Any

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.window import Window

from dpfrugal.engines.bracket_search import BracketedTable, by_group
from dpfrugal.engines.spark.actions import act
from dpfrugal.engines.spark.columns import STREAM, arrow_type, reference
from dpfrugal.errors import ParameterTypeError
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.engine_tables import HASHES, Assigned, Columns, EngineTable, TableSource, Tallies
from dpfrugal.inputs import dataframes


def source_of(data: Any) -> TableSource | None:
    """A DataFrame that is no stream; None for anything else of Spark's."""
    if not hasattr(data, "isStreaming") or not hasattr(data, "schema"):
        return None
    if data.isStreaming:
        raise ParameterTypeError(f"data is a streaming DataFrame; {STREAM} of dpfrugal.engines.spark.")
    return _Frame(data)


class _Frame(TableSource):
    groups_nulls = True

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def open(self, columns: Columns) -> EngineTable:
        dataframes.present(columns.names, list(self._frame.columns))
        return SparkTable(self._frame, columns)


class SparkTable(BracketedTable):
    """Columns of a DataFrame: ``value``, ``key_0``, ``key_1``, …, and ``person``."""

    def __init__(self, frame: Any, columns: Columns) -> None:
        self._columns, self._session = columns, frame.sparkSession
        self._salt, self._everyone = secrets.token_hex(16), None
        self._keys = [f"key_{k}" for k in range(len(columns.by))]
        self._nulls_are_keys = False
        named = [reference(columns.value).alias("value")]
        named += [reference(name).alias(key) for key, name in zip(self._keys, columns.by, strict=True)]
        named += [] if columns.person is None else [reference(columns.person).alias("person")]
        self._rows = frame.select(*named)
        kind = self._rows.schema["value"].dataType
        self._present, floats = F.col("value").isNotNull(), isinstance(kind, T.FloatType | T.DoubleType)
        if floats:
            self._present &= ~F.isnan("value")
        # Sums of floats in another order differ in their last bits, so floats are hashed in single precision.
        self._hash = F.xxhash64(F.col("value").cast("float") if floats else "value").bitwiseAND(F.lit(HASHES - 1))
        self._value_type = arrow_type(kind)

    @property
    def value_type(self) -> Any:
        """The Arrow type of the values."""
        return self._value_type

    def counts(self) -> Any:
        """The rows of each key."""
        nobodies = F.lit(0) if self._columns.person is None else F.count_if(F.col("person").isNull())
        sums = [F.count(F.lit(1)).alias("rows"), F.count_if(self._present).alias("present")]
        sums.append(nobodies.cast("bigint").alias("nobodies"))
        sums.append(_checksum(F.when(self._present, self._hash)))
        found = act(self._rows.groupBy(*self._keys).agg(*sums).toArrow)
        return found.rename_columns([*self._columns.by, "rows", "present", "nobodies", "checksum"])

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        """The rows of each group that count."""
        self._nulls_are_keys = any(column.null_count for column in assigned.keys.columns)
        if self._columns.person is None:
            return Tallies.of(assigned, counts)
        self._everyone = self._uploaded(assigned.keys.rename_columns([*self._keys, "group"]))
        rows = self._chosen(self._rows.where(self._present)).groupBy("group")
        return Tallies.placed(
            assigned.groups, act(rows.agg(F.count(F.lit(1)).alias("rows"), _checksum(self._hash)).toArrow), "group"
        )

    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        """Counts and rows from one job: sums by group, by where a row lies, and by its value within brackets."""
        table = brackets.rename_columns([*self._keys, *brackets.column_names[len(self._keys) :]])
        value = F.col("value")
        below = [F.coalesce(value < F.col(f"low_{k}"), F.lit(False)) for k in range(quantiles)]
        upto = [F.coalesce(value <= F.col(f"high_{k}"), F.lit(True)) for k in range(quantiles)]
        inside = F.lit(not quantiles)
        for low, high in zip(below, upto, strict=True):
            inside |= ~low & high
        joined = self._joined(self._uploaded(table))
        kept = inside & (F.col("share") > 0)
        if not counted:
            share = float(np.max(table.column("share").to_numpy(), initial=0.0))
            rows = joined.where(kept)
            if share < 1:
                rows = rows.where(F.rand() < F.col("share"))
            return None, self._with_times(rows, by_value)
        place = F.lit(0)  # one bit for each end: on which side of it a row lies
        for k in range(quantiles):
            place = place + below[k].cast("int") * (1 << 2 * k) + upto[k].cast("int") * (2 << 2 * k)
        own = joined.select(
            "number", place.alias("place"), F.when(kept, value).alias("value"), self._hash.alias("hash")
        )
        sums = own.groupBy("number", "place", "value").agg(
            F.count(F.lit(1)).alias("times"), F.sum("hash").alias("hashes")
        )
        found = act(sums.toArrow)
        return _counts_of(found, quantiles), self._repeated(found.filter(found.column("value").is_valid()), by_value)

    def whole(self, keys: Any, groups: int) -> tuple[Tallies, Codes, Codes]:
        """All rows of some groups, each with its hash: nothing is shuffled."""
        table = self._uploaded(keys.rename_columns([*self._keys, "number"]))
        rows = self._joined(table).select("number", "value", self._hash.cast("int").alias("hash"))
        found = act(rows.toArrow)
        numbers = found.column("number").to_numpy()
        checksums = np.zeros(groups, dtype=np.int64)
        np.add.at(checksums, numbers, found.column("hash").to_numpy())
        return Tallies(np.bincount(numbers, minlength=groups), checksums), *by_group(found, groups, self.kind)

    def _with_times(self, rows: Any, by_value: bool) -> Any:
        if by_value:
            rows = rows.groupBy("number", "value").agg(F.count(F.lit(1)).alias("times"))
            return act(rows.toArrow)
        return act(rows.select("number", "value").toArrow)

    def _repeated(self, found: Any, by_value: bool) -> Any:
        """Values with their numbers of rows; or each so many times."""
        import pyarrow as pa

        found = found.select(["number", "value", "times"])
        if by_value:
            return (
                found.group_by(["number", "value"])
                .aggregate([("times", "sum")])
                .rename_columns(["number", "value", "times"])
            )
        times = found.column("times").to_numpy()
        return found.take(pa.array(np.repeat(np.arange(times.size), times))).select(["number", "value"])

    def _uploaded(self, table: Any) -> Any:
        """A small table, for every executor."""
        return F.broadcast(self._session.createDataFrame(table))

    def _joined(self, brackets: Any) -> Any:
        """The rows that count, with the brackets of their group."""
        rows = self._rows.where(self._present)
        if self._columns.person is not None:
            rows = self._chosen(rows).drop("group")
        return self._with_keys_of(rows, brackets)

    def _with_keys_of(self, rows: Any, table: Any) -> Any:
        """The rows whose keys a table has, with its columns; a null is a key like others only where it is a group."""
        if not self._keys:
            return rows.crossJoin(table)
        if not self._nulls_are_keys:
            return rows.join(table, self._keys)
        own = [f"own_{key}" for key in self._keys]
        for key, name in zip(self._keys, own, strict=True):
            table = table.withColumnRenamed(key, name)
        same = [F.col(key).eqNullSafe(F.col(name)) for key, name in zip(self._keys, own, strict=True)]
        return rows.join(table, same).drop(*own)

    def _chosen(self, rows: Any) -> Any:
        """Of each person so many rows, those with the smallest priorities; which they are depends on these rows only.

        Equal rows of a person are numbered, and a row's priority is a hash of it with its number and a secret salt: the
        same in every scan and every retry, whatever the order of rows.
        """
        limits, own = self._columns, ["person", *self._keys, "value"]
        rows = self._with_keys_of(rows, self._everyone)
        rows = rows.withColumn("copy", F.row_number().over(Window.partitionBy(own).orderBy("value")))
        text = F.concat_ws("|", F.lit(self._salt), *(F.col(name).cast("string") for name in (*own, "copy")))
        rows = rows.withColumn("priority", F.sha2(text, 256))
        order = [F.col("priority"), F.col("group"), F.col("value")]
        if limits.max_keys_per_person is None:
            rows = rows.withColumn("place", F.row_number().over(Window.partitionBy("person").orderBy(*order)))
            return rows.where(F.col("place") <= limits.max_items_per_person).select(*self._keys, "group", "value")
        key = Window.partitionBy("person", "group")
        rows = rows.withColumn("earliest", F.min("priority").over(key))
        rows = rows.withColumn("place", F.row_number().over(key.orderBy(*order)))
        rows = rows.withColumn("rank", F.dense_rank().over(Window.partitionBy("person").orderBy("earliest", "group")))
        kept = (F.col("place") <= limits.max_items_per_person) & (F.col("rank") <= limits.max_keys_per_person)
        return rows.where(kept).select(*self._keys, "group", "value")


def _checksum(hashes: Any) -> Any:
    return F.coalesce(F.sum(hashes), F.lit(0)).alias("checksum")


def _counts_of(found: Any, quantiles: int) -> Any:
    """The rows of each group, those below each bracket, and up to its end, from sums by place."""
    import pyarrow as pa

    numbers, place, times = (found.column(name).to_numpy() for name in ("number", "place", "times"))
    groups = int(numbers.max(initial=-1)) + 1
    checksum = np.zeros(groups, dtype=np.int64)
    np.add.at(checksum, numbers, found.column("hashes").to_numpy())
    columns = {"number": np.arange(groups), "rows": np.bincount(numbers, times, groups), "checksum": checksum}
    for k in range(quantiles):
        for bit, name in enumerate(("below", "upto")):
            columns[f"{name}_{k}"] = np.bincount(numbers, times * (place >> (2 * k + bit) & 1), groups)
    return pa.table({name: column.astype(np.int64) for name, column in columns.items()})
