"""A skewed table on Spark: half of its rows are one key's, and no executor is brought them.

Spark's own counters say how many records all shuffles together have carried, which is at least what any one task has
received; Java has a heap of 1 GB, in which the rows of the large key would not fit. The answer of that key is compared
with the exact one, which is known from how the rows are made.

    python -m benchmarks.spark_skew [rows]
"""

import shutil
import sys
import tempfile
import time

import numpy as np

import dpfrugal as dpf
from dpfrugal.engines import spark as dps
from tests.support.shuffles import shuffled

ROWS = 100_000_000
KEYS = 1_000
MULTIPLIER = 48_271  # of the rows' numbers, modulo a prime: every value comes once


def main(rows: int) -> None:
    """One line of figures."""
    spark = dps.local_session("local[2]", spark_driver_memory="1g")
    folder = tempfile.mkdtemp(prefix="dpfrugal-bench-")
    try:
        key = f"if(id % 2 = 0, 0, 1 + id div 2 % {KEYS - 1})"
        made = spark.range(rows, numPartitions=64).selectExpr(f"id * {MULTIPLIER} % 2147483647 AS x", f"{key} AS key")
        made.write.parquet(f"{folder}/table")
        table = spark.read.parquet(f"{folder}/table")
        _, first = shuffled(spark, 0)
        begun = time.perf_counter()
        shown = dpf.quantiles_by(table, "x", 0.5, dpf.PureDP(epsilon=1.0), by="key", keys=np.arange(KEYS))
        took = time.perf_counter() - begun
        records, _ = shuffled(spark, first)
    finally:
        shutil.rmtree(folder)
        spark.stop()
    large = np.arange(0, rows, 2, dtype=np.int64) * MULTIPLIER % 2147483647
    off = abs(int(np.count_nonzero(large < shown["value"][0].as_py())) - large.size / 2)
    print(
        f"{rows:,} rows, half of one key: {KEYS:,} medians in {took:.0f} s; all shuffles together carried {records:,} "
        f"records; the median of the large key is {off:,.0f} of {large.size:,} rows off."
    )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS)
