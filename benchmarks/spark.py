"""Rows a second on Spark: private quantiles beside Spark's own, in all and per key, on one core and on two.

Each number of cores is a session in a process of its own, which may use so many cores and no more: Java, its compiler
and Python included. All runs of both are interleaved. The stream has micro-batches of an eighth of the rows, in files
in the order of time, with windows of event time, about one a batch. What other programs use meanwhile is measured too:
two cores lose it, one core does not; beside the seconds of the clock stand those of the processor. Targets:
``private_quantiles`` at 0.7 of the speed of ``percentile_approx`` or more, ``quantiles_by`` at half that of the exact
``percentile`` for 1,000 keys, and two cores at 1.6 times one.

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
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from benchmarks.machine import described, seconds_worked

ROWS = 20_000_000
KEYS = 1_000
WARM_UPS, ROUNDS = 2, 5
PARTS = {"warm": 8, "whole": 1}  # warming up takes an eighth of the rows
FILES, FILES_A_BATCH = 64, 8
QUANTILES = [0.5, 0.99]
GUARANTEE = dpf.PureDP(epsilon=1.0)
RUNS = ["sum", "percentile_approx", "private_quantiles", "percentile by key", "quantiles_by", "stream_quantiles_by"]
OF = {"private_quantiles": "percentile_approx", "quantiles_by": "percentile by key"}


def serve(cores: int, folder: str, rows: int) -> None:
    """A session that does the runs it is asked for, a name and a table a line, and answers with the seconds taken."""
    from pyspark.sql import functions as F  # noqa: N812

    from dpfrugal.engines import spark as dps

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = dps.local_session(f"local[{cores}]", spark_sql_shuffle_partitions=str(2 * cores), spark_driver_memory="5g")
    for table, part in PARTS.items():
        if not Path(f"{folder}/{table}").exists():
            made = spark.range(rows // part, numPartitions=FILES // part)
            columns = "40 * exp(0.5 * randn(1)) AS ms", f"id * 7919 % {KEYS} AS key"
            made = made.selectExpr(*columns, f"timestamp_seconds(id div {max(rows // 600, 1)}) AS at")
            made.write.parquet(f"{folder}/{table}")
    tables = {name: spark.read.parquet(f"{folder}/{name}") for name in PARTS}
    keys = np.arange(KEYS)

    def stream(name: str) -> None:
        stream = spark.readStream.schema(tables[name].schema).option("maxFilesPerTrigger", FILES_A_BATCH)
        checkpoint = tempfile.mkdtemp(dir=folder)
        dps.stream_quantiles_by(
            stream.parquet(f"{folder}/{name}"), "ms", 0.99, GUARANTEE, by="key", keys=keys, time="at",
            window="1 minute", checkpoint=checkpoint, sink=lambda table, batch: None, trigger={"availableNow": True},
        ).awaitTermination()  # fmt: skip
        shutil.rmtree(checkpoint)

    runs: dict[str, Callable[[str], object]] = {
        "sum": lambda name: tables[name].agg(F.sum("ms")).collect(),
        "percentile_approx": lambda name: tables[name].agg(F.percentile_approx("ms", QUANTILES)).collect(),
        "private_quantiles": lambda name: dpf.private_quantiles(tables[name], QUANTILES, GUARANTEE, column="ms"),
        "percentile by key": lambda name: tables[name].groupBy("key").agg(F.percentile("ms", 0.99)).collect(),
        "quantiles_by": lambda name: dpf.quantiles_by(tables[name], "ms", 0.99, GUARANTEE, by="key", keys=keys),
        "stream_quantiles_by": stream,
    }
    print("ready", flush=True)
    for line in sys.stdin:
        name, table = line.strip().rsplit(" ", 1)
        begun, worked = time.perf_counter(), seconds_of_cpu(spark)
        runs[name](table)
        print(f"took {time.perf_counter() - begun} {seconds_of_cpu(spark) - worked}", flush=True)
    spark.stop()


def seconds_of_cpu(spark: Any) -> float:
    """What Java and Python have worked: other programs slow a run down, but add little to this."""
    java = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    ticks = sum(map(int, java.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()


def answer(child: subprocess.Popen[str], word: str) -> list[str]:
    """The next line that begins with the word; Spark prints others."""
    assert child.stdout is not None
    return next(line.split() for line in child.stdout if line.startswith(word))


def main(rows: int) -> None:
    """One process for each number of cores; a table and a JSON file."""
    folder = tempfile.mkdtemp(prefix="dpfrugal-bench-")
    times: dict[int, dict[str, list[float]]] = {1: {}, 2: {}}
    worked_on: dict[str, list[float]] = {}
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
                took, cpu = map(float, answer(children[cores], "took")[1:])
                if table == "whole":
                    times[cores].setdefault(name, []).append(took)
                    if cores == 1:
                        worked_on.setdefault(name, []).append(cpu)
        elapsed, worked, own = np.array([time.perf_counter(), *seconds_worked()]) - begun
        for child in children.values():
            child.communicate()
    finally:
        shutil.rmtree(folder)
    speeds = {cores: {name: rows / min(took) for name, took in runs.items()} for cores, runs in times.items()}
    shown = Table("", "1 core, rows/s", "2 cores, rows/s", "2 cores / 1", "of Spark's own", "2 cores", "by CPU")
    for name, one in speeds[1].items():
        two = speeds[2][name]
        own = OF.get(name)
        ratios = ["" if own is None else f"{speed[name] / speed[own]:.2f}" for speed in speeds.values()]
        ratios.append("" if own is None else f"{min(worked_on[own]) / min(worked_on[name]):.2f}")
        shown.add_row(name, f"{one:,.0f}", f"{two:,.0f}", f"{two / one:.2f}", *ratios)
    others = round(float((worked - own) / elapsed), 2)
    console = Console(width=110)
    console.print(shown)
    console.print(f"Other programs used {others} cores meanwhile.")
    result = {"machine": described(), "rows": rows, "keys": KEYS, "cores_used_by_others": others}
    result |= {"seconds": times, "seconds_of_cpu": worked_on, "rows_per_second": speeds}
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
