"""A quantile per key at size: one thread beside two, a hundred million rows, peak memory, and the release.

Threads take turns, so that a slow minute falls on both. By the clock, a second thread gains only where a processor is
free; seconds of the processor say how much more work two threads do than one, whatever else was running.

Peak memory is that of a process of its own: its highest resident size while keys are declared and rows are fed, less
its size before: interpreter, libraries, compiled code, the caller's list of keys, and the rows that lie in memory.
What is left is the state, the index of keys, and what a batch needs on its way; for Parquet also what reads the file.

    python -m benchmarks.keyed_large                        # some five minutes on two cores, 2 GB of disk
    python -m benchmarks.keyed_large --only threads         # a part of it; the other figures are kept
    python -m benchmarks.keyed_large --rows 1000000         # a quick look
"""

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from benchmarks import machine
from benchmarks.compare import RESULTS, amount
from benchmarks.keyed import BATCH, KEYS, LAWS, QUANTILE, from_parquet

MILLION = 1_000_000
# So many rows are drawn; more of them are the same ones again.
DRAWN = 20_000_000
TURNS = 3
FEW = 100_000
PARTS = ("threads", "strings", "memory", "release")

Batches = Iterator[tuple[Any, NDArray[np.float64]]]
Record = dict[str, Any]


def codes_of(law: str, keys: int, rows: int) -> NDArray[np.int64]:
    """Uniform keys, or keys whose number of rows falls as 1/rank, in a shuffled order."""
    draw = np.random.default_rng(keys)
    if law == "uniform":
        return draw.integers(0, keys, rows)
    ends = np.cumsum(1 / np.arange(1, keys + 1))
    return draw.permutation(keys)[np.minimum(np.searchsorted(ends / ends[-1], draw.random(rows)), keys - 1)]


def values_of(rows: int) -> NDArray[np.float64]:
    """Values around 50."""
    return np.random.default_rng(rows).normal(50, 2, rows)


def names_of(keys: int) -> Any:
    """Keys of 15 characters."""
    return pa.array(np.char.add("route-", np.char.zfill((np.arange(keys) * 7919 % 10**9).astype(str), 9)))


def built(keys: Any, threads: int) -> dpf.KeyedDPFrugal1U:
    """The estimator that is measured."""
    return dpf.KeyedDPFrugal1U(
        QUANTILE, dpf.PureDP(epsilon=1.0), keys=keys, decimals=1, start=50.0, adaptive_steps=False, threads=threads
    )


def again(keys: Any, values: NDArray[np.float64], rows: int, batch: int = BATCH) -> Batches:
    """Batches of so many rows, from the beginning again where they end."""
    fed = 0
    while fed < rows:
        first = fed % values.size
        stop = min(first + batch, values.size, first + rows - fed)
        yield keys[first:stop], values[first:stop]
        fed += stop - first


def timed(estimator: dpf.KeyedDPFrugal1U, batches: Batches) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    started, busy = time.perf_counter(), time.process_time()
    for keys, values in batches:
        estimator.update_many(keys, values)
    return time.perf_counter() - started, time.process_time() - busy


def compared(label: Record, keys: Any, batches: Callable[[int], Batches], rows: int, turns: int) -> Record:
    """One thread and two, in turn, over the same rows."""
    estimators = {threads: built(keys, threads) for threads in (1, 2)}
    seconds: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for estimator in estimators.values():
        timed(estimator, batches(min(rows, 4 * BATCH)))
    for _ in range(turns):
        for threads, estimator in estimators.items():
            seconds[threads].append(timed(estimator, batches(rows)))
    return label | {
        "rows": rows,
        "seconds": {str(threads): [clock for clock, _ in turn] for threads, turn in seconds.items()},
        "cpu_seconds": {str(threads): [busy for _, busy in turn] for threads, turn in seconds.items()},
    }


def threads_part(rows: int) -> Iterator[Record]:
    """Integer keys in batches of a million rows."""
    drawn = min(rows, DRAWN)
    values = values_of(drawn)
    for keys in KEYS:
        for law in LAWS:
            codes = codes_of(law, keys, drawn)

            def batches(count: int, codes: NDArray[np.int64] = codes) -> Batches:
                return again(codes, values, count)

            label = {"contender": "integers", "keys": keys, "law": law}
            yield compared(label, np.arange(keys), batches, drawn, 4 * TURNS)
            if rows > drawn:
                yield compared(label, np.arange(keys), batches, rows, TURNS)


def strings_part(rows: int, folder: Path) -> Iterator[Record]:
    """A million string keys: as a dictionary, plain in memory, and plain in Parquet."""
    keys, drawn = min(MILLION, rows), min(rows, 4 * BATCH)
    names, values = names_of(keys), values_of(drawn)
    codes = codes_of("uniform", keys, drawn)
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)
    plain = names.take(pa.array(codes))
    label = {"keys": keys, "law": "uniform"}
    for contender, column in (("strings as dictionary", encoded), ("plain strings", plain)):

        def batches(count: int, column: Any = column) -> Batches:
            return again(column, values, count)

        yield compared(label | {"contender": contender}, names, batches, rows, 2)
    path = written(folder / "rows.parquet", names, rows)

    def from_file(count: int) -> Batches:
        return iter(from_parquet(path)()) if count == rows else again(plain, values, count)

    yield compared(label | {"contender": "strings in Parquet"}, names, from_file, rows, 2)


def written(path: Path, names: Any, rows: int) -> Path:
    """A Parquet file of plain strings, all rows drawn."""
    if not path.exists():
        draw, schema = np.random.default_rng(1), pa.schema({"key": pa.string(), "value": pa.float64()})
        with pq.ParquetWriter(path, schema) as file:
            for first in range(0, rows, BATCH):
                count = min(BATCH, rows - first)
                keys = names.take(pa.array(draw.integers(0, len(names), count)))
                file.write_table(pa.table([keys, draw.normal(50, 2, count)], schema=schema), row_group_size=BATCH)
    return path


def memory_part(rows: int, folder: Path) -> Iterator[Record]:
    """Peak memory of processes that are fed a million keys."""
    for contender in ("integers", "strings as dictionary", "plain strings", "strings in Parquet"):
        path = written(folder / "rows.parquet", names_of(min(MILLION, rows)), rows)
        command = [sys.executable, "-m", "benchmarks.keyed_large", "--fed", contender, "--rows", str(rows)]
        child = subprocess.run([*command, "--folder", str(path.parent)], capture_output=True, text=True, check=True)
        yield {"contender": contender, "rows": rows} | json.loads(child.stdout)


def resident(field: str) -> int:
    """``VmRSS`` or ``VmHWM`` (the highest so far) of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def fed(contender: str, rows: int, path: Path) -> Record:
    """In a process of its own: declare keys, take in rows, release; and how much memory that took at most."""
    for kind in (np.arange(FEW) % 10, pa.array(["a", "b"] * (FEW // 2))):  # compiles, and loads libraries
        first = built(pa.array(kind).unique(), 1)
        for column in (kind, pa.array(kind).dictionary_encode()):
            timed(first, again(column, values_of(FEW), FEW))
        first.release()
    if contender == "strings in Parquet":
        next(iter(from_parquet(path)()))  # loads what reads Parquet
    keys, drawn = min(MILLION, rows), min(rows, 4 * BATCH)
    declared: Any = np.arange(keys) if contender == "integers" else names_of(keys)
    batches = iter(from_parquet(path)()) if contender == "strings in Parquet" else None
    if batches is None:
        codes, values = codes_of("uniform", keys, drawn), values_of(drawn)
        column = codes if contender == "integers" else declared.take(pa.array(codes))
        if contender == "strings as dictionary":
            column = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), declared)
        batches = again(column, values, rows)
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)  # what is free is not counted as held
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest size counts from here
    estimator = built(declared, 1)
    timed(estimator, batches)
    peak = resident("VmHWM")
    released = -time.perf_counter()
    estimator.release()
    return {
        "before": before,
        "peak": peak,
        "beyond": peak - before,
        "beyond_with_release": resident("VmHWM") - before,
        "release_seconds": released + time.perf_counter(),
    }


def release_part(rows: int) -> Iterator[Record]:
    """A release of every key, whether or not it has had rows."""
    for keys in (100_000, MILLION):
        keys = min(keys, rows)
        estimator = built(np.arange(keys), 1)
        started, busy = time.perf_counter(), time.process_time()
        estimator.release()
        yield {"keys": keys, "seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - busy}


def shown(part: str, records: list[Record]) -> Table:
    """The figures of a part as a table."""
    if part in ("threads", "strings"):
        table = Table("keys", "law", "what", "rows", "rows/s", "2 threads", "faster", "at best", "work of 2 / 1")
        for row in records:
            one, two, work = row["seconds"]["1"], row["seconds"]["2"], row["cpu_seconds"]
            cells = [f"{row['keys']:,}", row["law"], row["contender"], amount(row["rows"])]
            cells += [amount(row["rows"] / median(turns)) for turns in (one, two)]
            cells += [f"{median(a / b for a, b in zip(one, two, strict=True)):.2f}×", f"{min(one) / min(two):.2f}×"]
            table.add_row(*cells, f"{min(work['2']) / min(work['1']):.2f}")
    elif part == "memory":
        table = Table("what", "rows", "before", "peak", "beyond the batch", "with the release")
        for row in records:
            sizes = (row[name] for name in ("before", "peak", "beyond", "beyond_with_release"))
            table.add_row(row["contender"], amount(row["rows"]), *(f"{size / 1e6:,.0f} MB" for size in sizes))
    else:
        table = Table("keys", "release", "of the processor")
        for row in records:
            table.add_row(f"{row['keys']:,}", f"{row['seconds']:.2f} s", f"{row['cpu_seconds']:.2f} s")
    return table


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--only", choices=PARTS, help="measure a part, and keep the other figures")
    parser.add_argument("--folder", type=Path, help="where rows.parquet is kept from run to run; default: nowhere")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for keyed_large.json")
    parser.add_argument("--fed", help=argparse.SUPPRESS)
    chosen, console = parser.parse_args(), Console(width=130)
    if chosen.fed:
        print(json.dumps(fed(chosen.fed, chosen.rows, chosen.folder / "rows.parquet")))
        return
    console.print(f"{machine.sentence()}; up to {chosen.rows:,} rows, q = {QUANTILE}, ε = 1")
    path = chosen.output / "keyed_large.json"
    record: Record = json.loads(path.read_text(encoding="utf-8")) if chosen.only and path.exists() else {}
    record |= {"machine": machine.described(), "settings": {"quantile": QUANTILE, "epsilon": 1.0, "batch": BATCH}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        parts: dict[str, Callable[[], Iterator[Record]]] = {
            "threads": lambda: threads_part(chosen.rows),
            "strings": lambda: strings_part(chosen.rows, folder),
            "memory": lambda: memory_part(chosen.rows, folder),
            "release": lambda: release_part(chosen.rows),
        }
        for part in PARTS if chosen.only is None else (chosen.only,):
            record[part] = list(parts[part]())
            console.print(shown(part, record[part]))
    chosen.output.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(f"keyed_large.json is in {chosen.output.name}/")


if __name__ == "__main__":
    main()
