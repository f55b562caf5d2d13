"""Constant memory, end to end: ``dpfrugal quantile`` over a Parquet file of 100 million rows.

    python -m benchmarks.parquet
    python -m benchmarks.parquet --rows 10000000    # a quick look

The file has an integer column (D5 ×1000) and a float column (D5 with three decimals). For each, two processes
take turns: the command line, and pyarrow reading the same batches with ``numpy.sum`` of each. Three more: pyarrow
reading the whole column and then ``numpy.sum`` of it, and the window of a table's median, from a column that may be
held and from one that may not and is read twice. Wall time is that of the whole process; peak memory is what the
operating system counted for it (``wait4``). Targets: the command line under 400 MB, and at most 1.5 times the time of
the same batches summed; the window at most 1.6 times that of the whole column where it is held, at most 3.2 times
that of the same batches and under 400 MB where it is not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

# Linux counts the memory of a process from before its exec: a child of a large parent seems large. So this process
# imports neither numpy nor pyarrow; all that needs them runs in a process of its own.
from rich.console import Console
from rich.table import Table

from benchmarks import machine

RESULTS = Path(__file__).parent / "results"
MOST_MEGABYTES, MOST_RATIO, MOST_HELD, MOST_AGAIN = 400, 1.5, 1.6, 3.2
MEMORY = 50_000_000  # of a column that may not be held
PLAIN = machine.plain()

GENERATE = """
import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, rows, chunk = sys.argv[1], int(sys.argv[2]), 1 << 20
rng = np.random.default_rng(1)
schema = pa.schema([("integer", pa.int64()), ("real", pa.float64())])
with pq.ParquetWriter(path, schema) as writer:
    for first in range(0, rows, chunk):
        integer = (1000 * rng.normal(50, 2, min(chunk, rows - first))).astype(np.int64)
        writer.write_table(pa.table({"integer": integer, "real": integer / 1000}, schema=schema))
"""
BATCHES = """
import sys, numpy as np, pyarrow.parquet as pq
path, column, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
total = 0
for batch in pq.ParquetFile(path).iter_batches(batch_size=rows, columns=[column]):
    total += np.sum(batch.column(0).to_numpy())
print(total)
"""
WHOLE = """
import sys, numpy as np, pyarrow.parquet as pq
column = pq.read_table(sys.argv[1], columns=[sys.argv[2]]).column(0)
print(sum(np.sum(chunk.to_numpy()) for chunk in column.chunks))
"""
WINDOW = """
import sys
from dpfrugal.estimators.table.rows.columns import read_column
rows = read_column(sys.argv[1], sys.argv[2], "raise", int(sys.argv[3]) or None).ordered()
middle = rows.rows // 2
rows.window(middle - 151, middle + 151, None, None)
"""
# Where the command line's time goes, by the parts of what it does; the timers' own cost is a few microseconds a batch.
PARTS = """
import json, sys, time
clock, spent = time.perf_counter, {}
start = clock()
import numpy
from pathlib import Path
import dpfrugal.cli.terminal.progress, dpfrugal.inputs.files
import dpfrugal as dpf
spent["imports"] = clock() - start
start = clock()
dpf.Frugal1U(0.5).update_many(numpy.zeros(1 << 14, sys.argv[3]))
spent["loading the kernels"] = clock() - start
estimator = dpf.DPFrugal1U(0.99, dpf.PureDP(epsilon=1.0), decimals=int(sys.argv[4]))
batches = iter(dpfrugal.inputs.files.open_column(Path(sys.argv[1]), sys.argv[2]).batches)
reading = walking = 0.0
while True:
    start = clock()
    batch, _ = next(batches, (None, 0))
    read = clock()
    reading += read - start
    if batch is None:
        break
    estimator.update_many(batch)
    walking += clock() - read
spent["reading"], spent["walking"] = reading, walking
start = clock()
estimator.release()
spent["release"] = clock() - start
print(json.dumps(spent))
"""


ONE_SCAN = ("--algorithm", "private-quantile")


@dataclass
class Process:
    """One kind of process: what it is, and what its runs took."""

    name: str
    column: str
    command: list[str] = field(repr=False)
    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run it once, and note its wall time and its peak memory."""
        started = time.perf_counter()
        child = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=PLAIN)
        _, status, usage = os.wait4(child.pid, 0)
        self.seconds.append(time.perf_counter() - started)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, self.name)
        unit = 1e6 if sys.platform == "darwin" else 1e3  # bytes there, kB on Linux
        self.megabytes.append(usage.ru_maxrss / unit)


def processes(path: Path, column: str, decimals: int, batch_rows: int) -> list[Process]:
    """The command line first, then the two baselines, then the table's window, held and not."""
    ours = ["-m", "dpfrugal", "quantile", str(path), "--column", column, "-q", "0.99", "--epsilon", "1"]
    return [
        Process("dpfrugal quantile", column, [sys.executable, *ours, *ONE_SCAN, "--decimals", str(decimals)]),
        Process("same batches, numpy.sum", column, [sys.executable, "-c", BATCHES, str(path), column, str(batch_rows)]),
        Process("whole column, numpy.sum", column, [sys.executable, "-c", WHOLE, str(path), column]),
        Process("window, held", column, [sys.executable, "-c", WINDOW, str(path), column, "0"]),
        Process("window, read twice", column, [sys.executable, "-c", WINDOW, str(path), column, str(MEMORY)]),
    ]


def printed(program: str, *arguments: str) -> str:
    """What a program prints in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True, env=PLAIN
    ).stdout


def show(console: Console, found: list[Process], parts: dict[str, float]) -> dict[str, float | bool]:
    """One column's table; returns the figures that have a target."""
    ours, batches = found[0], found[1]
    table = Table("process", "seconds", "range", "peak MB", title=f"column {ours.column}", title_justify="left")
    for process in found:
        low, high = min(process.seconds), max(process.seconds)
        table.add_row(
            process.name, f"{median(process.seconds):.2f}", f"{low:.2f}-{high:.2f}", f"{max(process.megabytes):.0f}"
        )
    console.print(table)
    console.print("  where it goes: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts.items()))
    whole, held, again = found[2:]
    reached = {
        "time, × same batches": (_ratio(ours, batches), MOST_RATIO),
        "peak MB": (max(ours.megabytes), MOST_MEGABYTES),
        "window held, × whole column": (_ratio(held, whole), MOST_HELD),
        "window read twice, × same batches": (_ratio(again, batches), MOST_AGAIN),
        "window read twice, peak MB": (max(again.megabytes), MOST_MEGABYTES),
    }
    for name, (value, most) in reached.items():
        verdict = "[green]PASS[/]" if value <= most else "[red]miss[/]"
        console.print(f"  {name}: {value:.3g} (at most {most:g}) {verdict}")
    passes = all(value <= most for value, most in reached.values())
    return {name: value for name, (value, _) in reached.items()} | {"passes": passes}


def _ratio(mine: Process, theirs: Process) -> float:
    """The median of the ratios inside each round."""
    return median(one / other for one, other in zip(mine.seconds, theirs.seconds, strict=True))


def main() -> None:
    """Generate, measure, print, keep the figures, and remove the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    chosen, console, record = parser.parse_args(), Console(width=120), []
    console.print(f"{machine.sentence()}; {chosen.rows:,} rows, {chosen.repetitions} repetitions")
    batch_rows = int(printed("import dpfrugal.inputs.files; print(dpfrugal.inputs.files.BATCH_ROWS)"))
    with tempfile.TemporaryDirectory(prefix="dpfrugal-bench-") as folder:
        path = Path(folder) / "rows.parquet"
        printed(GENERATE, str(path), str(chosen.rows))
        console.print(f"the file: {path.stat().st_size / 1e6:,.0f} MB")
        for column, kind, decimals in (("integer", "int64", 0), ("real", "float64", 3)):
            # The first run compiles what is not cached yet, and fetches the column into the system's file cache.
            parts = json.loads(printed(PARTS, str(path), column, kind, str(decimals)))
            parts = json.loads(printed(PARTS, str(path), column, kind, str(decimals)))
            found = processes(path, column, decimals, batch_rows)
            for _ in range(chosen.repetitions):
                for process in found:
                    process.run()
            reached = show(console, found, parts)
            kept = [{k: v for k, v in asdict(process).items() if k != "command"} for process in found]
            record.append({"column": column, "processes": kept, "parts": parts, "reached": reached})
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"machine": machine.described(), "rows": chosen.rows, "columns": record}, indent=1)
    (RESULTS / "parquet.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
