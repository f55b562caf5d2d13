"""Rows a second on Spark: private quantiles beside ``percentile_approx``, and per key, on one core and on two.

Each number of cores is a session of its own, in a process that may use so many cores and no more, Java, its compiler
and Python's workers included; inside one, runs are interleaved. A stream has micro-batches of an eighth of the rows,
and of a fortieth, with a release after each. Targets: ``private_quantiles`` at half the speed of ``percentile_approx``
or more, per key a million rows a second and core, streaming 300,000, and two cores at 1.6 times the speed of one.

    python -m benchmarks.spark [rows]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from benchmarks.machine import described

ROWS = 10_000_000
KEYS = 10_000
ROUNDS = 3
FILES = 40  # of a fortieth of the rows each
QUANTILES = [0.5, 0.99]
GUARANTEE = dpf.PureDP(epsilon=1.0)


def measure(cores: int, folder: str, rows: int) -> dict[str, float]:
    """Rows a second of each run, in one session; the median of the rounds after one that warms up."""
    from pyspark.sql import functions as F  # noqa: N812

    from dpfrugal.engines import spark as dps

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = dps.local_session(f"local[{cores}]", spark_sql_shuffle_partitions=str(2 * cores), spark_driver_memory="4g")
    path = f"{folder}/table"
    if not Path(path).exists():
        made = spark.range(rows, numPartitions=FILES)
        made.selectExpr("40 * exp(0.5 * randn(1)) AS ms", f"id * 7919 % {KEYS} AS key").write.parquet(path)
    df, schema = spark.read.parquet(path), spark.read.parquet(path).schema
    keys = np.arange(KEYS)
    by = {"by": "key", "quantiles": 0.99, "guarantee": GUARANTEE, "keys": keys, "decimals": 1, "start": 120.0}

    def stream(files: int) -> None:
        source = spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(path)
        checkpoint = tempfile.mkdtemp(dir=folder)
        done = {"checkpoint": checkpoint, "sink": lambda table, batch: None, "trigger": {"availableNow": True}}
        dps.stream_quantiles_by(source, "ms", **by, **done).awaitTermination()
        shutil.rmtree(checkpoint)

    runs: dict[str, Callable[[], object]] = {
        "sum": lambda: df.agg(F.sum("ms")).collect(),
        "percentile_approx": lambda: df.agg(F.percentile_approx("ms", QUANTILES)).collect(),
        "private_quantiles": lambda: dps.private_quantiles(df, "ms", QUANTILES, GUARANTEE),
        "quantiles_by": lambda: dps.quantiles_by(df, "ms", **by).collect(),
        "stream_quantiles_by, eighths": lambda: stream(FILES // 8),
        "stream_quantiles_by, fortieths": lambda: stream(1),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS + 1):
        for name, run in runs.items():
            begun = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begun)
    spark.stop()
    return {name: rows / median(found[1:]) for name, found in times.items()}


def main(rows: int) -> None:
    """One process for each number of cores; a table and a JSON file."""
    folder = tempfile.mkdtemp(prefix="dpfrugal-bench-")
    speeds: dict[int, dict[str, float]] = {}
    try:
        for cores in (1, 2):
            command = [sys.executable, "-m", "benchmarks.spark", "measure", str(cores), folder, str(rows)]
            ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            speeds[cores] = json.loads(ended.stdout.splitlines()[-1])
    finally:
        shutil.rmtree(folder)
    table = Table("", "1 core, rows/s", "2 cores, rows/s", "2 cores / 1", "of percentile_approx")
    for name, one in speeds[1].items():
        two = speeds[2][name]
        ratio = f"{two / speeds[2]['percentile_approx']:.2f}"
        table.add_row(name, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}", ratio)
    Console(width=110).print(table)
    results = Path(__file__).parent / "results" / "spark.json"
    results.write_text(
        json.dumps({"machine": described(), "rows": rows, "keys": KEYS, "rows_per_second": speeds}, indent=1) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        print(json.dumps(measure(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
    else:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS)
