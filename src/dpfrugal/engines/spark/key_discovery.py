"""Key discovery on Spark: rows are counted per key beside the data, and the estimator decides which keys are shown.

Of a table, every key that occurs is counted and walked, and the driver sees all of them, as on one machine. Of a
stream, keys that are not public are counted only, from one release to the next: only public keys are kept.
So a key is walked from the release that has found it, and has its first value at the one after.
"""

from typing import Any

from pyspark.sql import functions as F  # noqa: N812

from dpfrugal.engines.spark.columns import reference
from dpfrugal.engines.spark.unordered_walk.packets import UNDECLARED
from dpfrugal.estimators.keyed.raw_state import RawState

MOVES = "item IS NOT NULL AND NOT isnan(item)"


def know_all_keys(raw: RawState, df: Any, by: str) -> None:
    """Give every key that occurs in a table a code."""
    occurring = df.where(reference(by).isNotNull()).select(reference(by).alias("key")).distinct().toArrow()
    raw.add_keys(occurring.column("key"))


def count_known_keys(raw: RawState, rows: Any) -> None:
    """Count the rows that will move estimates, each person's bounded."""
    found = rows.where(f"code >= 0 AND {MOVES}").groupBy("code").count().toArrow()
    raw.set_row_counts(found.column("code").to_numpy(), found.column("count").to_numpy())


def counted_keys(rows: Any, partitions: int, before: Any = None) -> Any:
    """Rows since the last release of each key that is not public, as a DataFrame of key and count."""
    now = rows.where(f"code = {UNDECLARED} AND {MOVES}").select("key", F.lit(1).cast("bigint").alias("count"))
    both = now if before is None else now.unionByName(before)
    return both.repartition(partitions, "key").groupBy("key").agg(F.sum("count").alias("count"))
