"""Rows a second on Spark: private quantiles beside ``percentile_approx``, and per key, on one core and on two.

Each number of cores is a session in a process of its own, which may use so many cores and no more: Java, its compiler
and Python's workers included. All runs of both are interleaved. The stream has micro-batches of an eighth of the rows,
in eight files, with a release after each. What other programs use meanwhile is measured too: two cores lose it, one
core does not. Targets: ``private_quantiles`` at half the speed of ``percentile_approx`` or more, per key a
million rows a second and core, streaming 300,000, and two cores at 1.6 times the speed of one.

    python -m benchmarks.spark [rows]
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from benchmarks.machine import described, seconds_worked

ROWS = 60_000_000
KEYS = 10_000
WARM_UPS, ROUNDS = 3, 5
PARTS = {"warm": 8, "whole": 1}  # warming up takes an eighth of the rows
FILES, FILES_A_BATCH = 64, 8
QUANTILES = [0.5, 0.99]
GUARANTEE = dpf.PureDP(epsilon=1.0)
RUNS = ["sum", "percentile_approx", "private_quantiles", "quantiles_by", "stream_quantiles_by"]


def serve(cores: int, folder: str, rows: int) -> None:
    """A session that does the runs it is asked for, a name and a table a line, and answers with the seconds taken."""
    from pyspark.sql import functions as F  # noqa: N812

    from dpfrugal.engines import spark as dps

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = dps.local_session(f"local[{cores}]", spark_sql_shuffle_partitions=str(2 * cores), spark_driver_memory="4g")
    for table, part in PARTS.items():
        if not Path(f"{folder}/{table}").exists():
            made = spark.range(rows // part, numPartitions=FILES // part)
            made = made.selectExpr("40 * exp(0.5 * randn(1)) AS ms", f"id * 7919 % {KEYS} AS key")
            made.write.parquet(f"{folder}/{table}")
    tables = {name: spark.read.parquet(f"{folder}/{name}") for name in PARTS}
    keys = np.arange(KEYS)
    by = {"by": "key", "quantiles": 0.99, "guarantee": GUARANTEE, "keys": keys, "decimals": 1, "start": 120.0}

    def stream(name: str) -> None:
        stream = spark.readStream.schema(tables[name].schema).option("maxFilesPerTrigger", FILES_A_BATCH)
        checkpoint = tempfile.mkdtemp(dir=folder)
        done = {"checkpoint": checkpoint, "sink": lambda table, batch: None, "trigger": {"availableNow": True}}
        dps.stream_quantiles_by(stream.parquet(f"{folder}/{name}"), "ms", **by, **done).awaitTermination()
        shutil.rmtree(checkpoint)

    runs: dict[str, Callable[[str], object]] = {
        "sum": lambda name: tables[name].agg(F.sum("ms")).collect(),
        "percentile_approx": lambda name: tables[name].agg(F.percentile_approx("ms", QUANTILES)).collect(),
        "private_quantiles": lambda name: dps.private_quantiles(tables[name], "ms", QUANTILES, GUARANTEE),
        "quantiles_by": lambda name: dps.quantiles_by(tables[name], "ms", **by).collect(),
        "stream_quantiles_by": stream,
    }
    print("ready", flush=True)
    for line in sys.stdin:
        name, table = line.split()
        begun = time.perf_counter()
        runs[name](table)
        print(f"took {time.perf_counter() - begun}", flush=True)
    spark.stop()


def answer(child: subprocess.Popen[str], word: str) -> list[str]:
    """The next line that begins with the word; Spark prints others."""
    assert child.stdout is not None
    return next(line.split() for line in child.stdout if line.startswith(word))


def main(rows: int) -> None:
    """One process for each number of cores; a table and a JSON file."""
    folder = tempfile.mkdtemp(prefix="dpfrugal-bench-")
    times: dict[int, dict[str, list[float]]] = {1: {}, 2: {}}
    begun: list[float] = []
    try:
        children = {}
        for cores in times:
            command = [sys.executable, "-m", "benchmarks.spark", "serve", str(cores), folder, str(rows)]
            children[cores] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            answer(children[cores], "ready")  # the first one writes the tables
        for table in WARM_UPS * ["warm"] + ROUNDS * ["whole"]:
            if table == "whole" and not begun:
                begun = [time.perf_counter(), *seconds_worked()]
            for name, cores in itertools.product(RUNS, times):
                print(name, table, file=children[cores].stdin, flush=True)
                took = float(answer(children[cores], "took")[1])
                if table == "whole":
                    times[cores].setdefault(name, []).append(took)
        elapsed, worked, own = np.array([time.perf_counter(), *seconds_worked()]) - begun
        for child in children.values():
            child.communicate()
    finally:
        shutil.rmtree(folder)
    speeds = {cores: {name: rows / min(took) for name, took in runs.items()} for cores, runs in times.items()}
    shown = Table("", "1 core, rows/s", "2 cores, rows/s", "2 cores / 1", "of percentile_approx")
    for name, one in speeds[1].items():
        two = speeds[2][name]
        ratio = f"{two / speeds[2]['percentile_approx']:.2f}"
        shown.add_row(name, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}", ratio)
    others = round(float((worked - own) / elapsed), 2)
    console = Console(width=110)
    console.print(shown)
    console.print(f"Other programs used {others} cores meanwhile.")
    result = {"machine": described(), "rows": rows, "keys": KEYS, "cores_used_by_others": others}
    result |= {"seconds": times, "rows_per_second": speeds}
    results = Path(__file__).parent / "results" / "spark.json"
    results.write_text(
        json.dumps(result, indent=1) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS)
