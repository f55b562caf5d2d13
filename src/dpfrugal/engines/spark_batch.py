"""Global quantiles of a Spark table: two scans, all of it Spark SQL.

A row's position is its partition and its index there. A row is sampled by a hash of its position: the i-th row of a
partition with probability m/i, so that one scan finds the sample without knowing how many rows there are. The sample
is then thinned to one rate for all rows, by the same hash.
"""

import secrets
from collections.abc import Sequence
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as F  # noqa: N812

from dpfrugal.engines import two_scans
from dpfrugal.engines.spark_columns import KEPT, MISSING, bins_of, checked_frame, item, partitions_of, place
from dpfrugal.engines.two_scans import Counts, Options, Sample
from dpfrugal.guarantees import Guarantee
from dpfrugal.release import SegmentRelease

INDEX_BITS: Final = 33  # of monotonically_increasing_id: the rest is the partition
HASHES: Final = 1 << 53  # hashes are cut to what a double holds
FEWEST: Final = 4  # rows of a partition that are looked at in any case


def private_quantiles(
    df: Any, column: str, quantiles: float | Sequence[float], guarantee: Guarantee, **options: Unpack[Options]
) -> SegmentRelease:
    """Private quantiles of one column of a DataFrame, in two scans; the options are those of ``PrivateQuantile``.

    The rows must come in the same order in both scans, as those of a file do. After a shuffle they may not; that is
    noticed, and nothing is released: write such a table first. Theorem 13 has the guarantee.
    """
    return two_scans.private_quantiles(_Rows(checked_frame(df, streaming=False), column), quantiles, guarantee, options)


def counts(df: Any, column: str, edges: NDArray[np.float64]) -> Counts:
    """How many items of the column lie between the edges."""
    number, integers = item(df, column)
    rows = df.select(place(number, edges, integers=integers).alias("bin")).groupBy("bin").count().collect()
    found = {row["bin"]: row["count"] for row in rows}
    return Counts(bins_of(found, edges), found.get(MISSING, 0))


class _Rows:
    """A column, and which of its rows are sampled."""

    def __init__(self, df: Any, column: str) -> None:
        number, self._integers = item(df, column)
        place, index = F.col("row"), F.col("row").bitwiseAND((1 << INDEX_BITS) - 1) + 1
        numbered = df.select(number.alias("item"), F.monotonically_increasing_id().alias("row"))
        self._rows = numbered.withColumn(
            "hash", F.shiftrightunsigned(F.xxhash64(place, F.lit(secrets.randbits(62))), 11).cast("double")
        ).withColumn("index", index)
        self._mark = F.xxhash64("row", "item")
        self._partitions = partitions_of(df)
        self._kept = F.lit(False)

    def sample(self, wanted: int) -> Sample:
        """One scan; a kept row brings its position and its fingerprint."""
        looked_at = max(FEWEST, 2 * wanted // self._partitions)
        early = F.col("hash") * F.col("index") < float(looked_at * HASHES)
        found = self._rows.where(early).select("item", "row", "hash", "index", self._mark.alias("mark")).toArrow()
        row, index = found.column("row").to_numpy(), found.column("index").to_numpy()
        if not row.size:
            return Sample([], 0, 0, 0)
        partition = row >> INDEX_BITS
        ends = np.zeros(int(partition.max()) + 1, dtype=np.int64)
        np.maximum.at(ends, partition, index)
        rows = int(ends.sum())
        cut = HASHES * min(1.0, looked_at / int(ends.max()), wanted / rows)
        self._kept = early & (F.col("hash") <= cut)
        places = found.column("hash").to_numpy()
        order = np.lexsort((row, places))
        order = order[: int(np.count_nonzero(places <= cut))]
        mark = int(np.bitwise_xor.reduce(found.column("mark").to_numpy()[order])) if order.size else 0
        return Sample(found.column("item").take(order), order.size, rows, mark)

    def rest(self, edges: NDArray[np.float64]) -> Counts:
        """One scan: the rows of each bin, and the fingerprint of those that are in the sample."""
        bin_of = F.when(self._kept, F.lit(KEPT)).otherwise(place(F.col("item"), edges, integers=self._integers))
        rows = self._rows.select(bin_of.alias("bin"), F.when(self._kept, self._mark).alias("mark"))
        found = rows.groupBy("bin").agg(F.count(F.lit(1)), F.bit_xor("mark")).collect()
        number, marks = {row[0]: row[1] for row in found}, {row[0]: row[2] for row in found}
        return Counts(bins_of(number, edges), number.get(MISSING, 0), marks.get(KEPT, 0))
