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
from dpfrugal.engines.bin_counts import SAMPLED, bin_in_sql, counts_of_bins
from dpfrugal.engines.spark.columns import checked_frame, item, partitions_of
from dpfrugal.engines.two_scans import Counts, Options, Sample
from dpfrugal.estimators.releases import SegmentRelease
from dpfrugal.privacy.guarantees import Guarantee

INDEX_BITS: Final = 33  # of monotonically_increasing_id: the rest is the partition
INDEX: Final = (1 << INDEX_BITS) - 1
MARK: Final = "xxhash64(row, item)"
HASHES: Final = 1 << 53  # hashes are cut to what a double holds
FEWEST: Final = 4  # rows of a partition that are looked at in any case


def private_quantiles(
    df: Any, column: str, quantiles: float | Sequence[float], guarantee: Guarantee, **options: Unpack[Options]
) -> SegmentRelease:
    """Private quantiles of one column of a DataFrame, in two scans; the options are those of ``PrivateQuantile``.

    The rows must come in the same order in both scans, as those of a file do. After a shuffle they may not; that is
    noticed, and nothing is released: write such a table first. Theorem 13 has the guarantee.
    """
    return two_scans.private_quantiles(Rows(checked_frame(df, streaming=False), column), quantiles, guarantee, options)


def counts(df: Any, column: str, edges: NDArray[np.float64]) -> Counts:
    """How many items of the column lie between the edges."""
    number, integers = item(df, column)
    bins = df.select(number.alias("item")).selectExpr(f"{bin_in_sql(edges, integers=integers)} AS bin")
    return counts_of_bins(bins.groupBy("bin").agg(F.count(F.lit(1)), F.lit(0)).collect(), edges)


class Rows:
    """A column, and which of its rows are sampled."""

    def __init__(self, df: Any, column: str) -> None:
        number, self._integers = item(df, column)
        numbered = df.select(number.alias("item"), F.monotonically_increasing_id().alias("row"))
        # Spark writes a number into the code it compiles, and bytes beside it: with these it compiles once, not anew
        # for every salt.
        hashed = f"xxhash64(row, X'{secrets.token_hex(8)}')"
        self._rows = numbered.selectExpr(
            "item", "row", f"CAST(shiftrightunsigned({hashed}, 11) AS DOUBLE) AS hash", f"(row & {INDEX}L) + 1 AS index"
        )
        self._partitions = partitions_of(df)
        self._kept = "false"

    def sample(self, wanted: int) -> Sample:
        """One scan; a kept row brings its position and its fingerprint."""
        looked_at = max(FEWEST, 2 * wanted // self._partitions)
        early = f"hash * index < {float(looked_at * HASHES)!r}D"
        found = self._rows.where(early).selectExpr("item", "row", "hash", f"{MARK} AS mark").toArrow()
        row, hashes = found.column("row").to_numpy(), found.column("hash").to_numpy()
        if not row.size:
            return Sample([], 0, 0, 0)
        partition = row >> INDEX_BITS
        ends = np.zeros(int(partition.max()) + 1, dtype=np.int64)
        np.maximum.at(ends, partition, (row & INDEX) + 1)
        rows = int(ends.sum())
        cut = HASHES * min(1.0, looked_at / int(ends.max()), wanted / rows)
        self._kept = f"{early} AND hash <= {cut!r}D"
        kept = np.flatnonzero(hashes <= cut)
        order = kept[np.lexsort((row[kept], hashes[kept]))]
        mark = int(np.bitwise_xor.reduce(found.column("mark").to_numpy()[order])) if order.size else 0
        return Sample(found.column("item").take(order), order.size, rows, mark)

    def rest(self, edges: NDArray[np.float64]) -> Counts:
        """One scan: the rows of each bin, and the fingerprint of those that are in the sample."""
        own = f"CASE WHEN {self._kept} THEN {SAMPLED} ELSE {bin_in_sql(edges, integers=self._integers)} END AS bin"
        rows = self._rows.selectExpr(own, f"CASE WHEN {self._kept} THEN {MARK} END AS mark")
        return counts_of_bins(rows.groupBy("bin").agg(F.count(F.lit(1)), F.bit_xor("mark")).collect(), edges)
