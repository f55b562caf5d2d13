"""A quantile per key: rows per second and bytes per key, beside other ways to do it, as ratios inside one run.

The task: the 0.99-quantile of each key, from an array of keys and one of float64 values. Timed: feeding, and asking for
every key's quantile. Of this library feeding is timed for each kind of keys, and the release once for each number of
keys: it draws a noise for each of them, whatever the rows were. Keys are declared, and their index built, beforehand.
The exact group-bys are not private and keep all rows. Rows per second of the processor (all threads together, the best
repetition) hardly depend on what else the machine was doing.

    python -m benchmarks.keyed                   # about two minutes on two cores
    python -m benchmarks.keyed --rows 1000000    # a quick look
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
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
from benchmarks import keyed_chart, machine
from benchmarks.compare import RESULTS, amount, reason

QUANTILE = 0.99
KEYS = (1_000, 100_000, 1_000_000)
LAWS = ("uniform", "Zipf")
BATCH = 1 << 20
# A matrix of one value per key and turn is what DataSketches' vector takes: with few rows a key it is mostly empty.
MOST_PADDED = 8


@dataclass
class Row:
    """What one contender did with one set of keys."""

    keys: int
    law: str
    contender: str
    private: bool
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    release: tuple[float, float] = (0.0, 0.0)  # seconds, and seconds of the processor
    bytes_per_key: float = 0.0
    failure: str = ""


@dataclass(frozen=True)
class Data:
    """Rows with a key and a value each; keys are 0, 1, 2 … or names made of them."""

    law: str
    keys: int
    codes: NDArray[np.int64]
    values: NDArray[np.float64]
    names: Any
    encoded: Any
    plain: Any
    file: Path


def data_of(law: str, keys: int, rows: int, folder: Path) -> Data:
    """Uniform keys, or keys whose number of rows falls as 1/rank, in a shuffled order."""
    draw = np.random.default_rng(keys)
    shares = np.ones(keys) if law == "uniform" else 1 / np.arange(1, keys + 1)
    ends = np.cumsum(shares / shares.sum())
    codes = draw.permutation(keys)[np.minimum(np.searchsorted(ends, draw.random(rows)), keys - 1)]
    values = draw.normal(50, 2, rows)
    names = pa.array(np.char.add("route-", np.char.zfill((np.arange(keys) * 7919 % 10**9).astype(str), 9)))
    encoded = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)
    plain = names.take(pa.array(codes))
    path = folder / f"{law}-{keys}.parquet"
    pq.write_table(pa.table({"key": plain, "value": values}), path, row_group_size=BATCH)
    return Data(law, keys, codes, values, names, encoded, plain, path)


Run = Callable[[], float]  # gives the bytes of state


def ours(data: Data, keys: Any, batches: Callable[[], Any], threads: int = 1) -> Run:
    """Our estimator, fed with batches; the index of the keys is built once."""
    built = dpf.KeyedDPFrugal1U(
        QUANTILE, dpf.PureDP(epsilon=1.0), keys=keys, decimals=1, start=50.0, adaptive_steps=False, threads=threads
    )

    def run() -> float:
        for rows, values in batches():
            built.update_many(rows, values)
        return built._state.estimates.nbytes + built._index.nbytes

    return run


@cache
def release_seconds(keys: int) -> tuple[float, float]:
    """How long a release of so many keys takes, by the clock and on the processor."""
    built = dpf.KeyedDPFrugal1U(QUANTILE, dpf.PureDP(epsilon=1.0), keys=np.arange(keys))
    started, busy = time.perf_counter(), time.process_time()
    built.release()
    return time.perf_counter() - started, time.process_time() - busy


def pieces(keys: Any, values: NDArray[np.float64]) -> Callable[[], Any]:
    """Both in batches."""
    return lambda: ((keys[i : i + BATCH], values[i : i + BATCH]) for i in range(0, values.size, BATCH))


def from_parquet(path: Path) -> Callable[[], Any]:
    """Batches of a file, read ahead as the command line does."""
    from dpfrugal.cli.quantile_walk_by_key import MOST_WAITING
    from dpfrugal.inputs.batches import read_ahead
    from dpfrugal.inputs.files import open_column

    def batches() -> Any:
        table = open_column(path, "value", None, ("key",))
        return ((batch.column(1), batch.column(0)) for batch, _ in read_ahead(table.batches, MOST_WAITING))

    return batches


def kll_each(data: Data) -> Run:
    """One KLL sketch per key; rows are brought together by sorting."""
    from datasketches import kll_floats_sketch

    def run() -> float:
        order = np.argsort(data.codes, kind="stable")
        values, ends = data.values[order].astype(np.float32), np.cumsum(np.bincount(data.codes, minlength=data.keys))
        first = 0
        for last in ends.tolist():
            if last > first:
                sketch = kll_floats_sketch(200)
                sketch.update(values[first:last])
                sketch.get_quantile(QUANTILE)
            first = last
        return state_of_sketches(values, ends)

    return run


def state_of_sketches(values: NDArray[np.float32], ends: NDArray[np.int64]) -> float:
    """Serialised bytes of all sketches, from those of a hundred keys."""
    from datasketches import kll_floats_sketch

    starts = np.concatenate([[0], ends[:-1]])
    some = np.linspace(0, ends.size - 1, 100).astype(int)
    sizes = []
    for k in some:
        sketch = kll_floats_sketch(200)
        sketch.update(values[starts[k] : ends[k]])
        sizes.append(len(sketch.serialize()))
    return float(np.mean(sizes)) * ends.size


def kll_vector(data: Data) -> Run:
    """DataSketches' vector of KLL: a matrix with a value, or NaN, for each key and turn."""
    from datasketches import vector_of_kll_floats_sketches

    counts = np.bincount(data.codes, minlength=data.keys)
    padded = counts.max() * data.keys / data.codes.size
    if padded > MOST_PADDED:
        raise ValueError(f"its matrix of one value per key and turn would have {padded:,.0f} cells a row")

    def run() -> float:
        vector = vector_of_kll_floats_sketches(200, data.keys)
        order = np.argsort(data.codes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        turns = np.arange(data.codes.size) - np.repeat(starts, counts)
        matrix = np.full((int(counts.max()), data.keys), np.nan, dtype=np.float32)
        matrix[turns, data.codes[order]] = data.values[order]
        vector.update(matrix)
        vector.get_quantiles([QUANTILE], np.flatnonzero(counts))
        return float(sum(map(len, vector.serialize(np.arange(100))))) / 100 * data.keys

    return run


def polars_exact(data: Data, *, strings: bool) -> Run:
    """polars: the exact quantile of each group."""
    import polars as pl

    frame = pl.DataFrame({"key": pl.from_arrow(data.plain) if strings else data.codes, "value": data.values})

    def run() -> float:
        frame.group_by("key").agg(pl.col("value").quantile(QUANTILE))
        return float(frame.estimated_size())

    return run


def duckdb_exact(data: Data, *, strings: bool) -> Run:
    """DuckDB: the exact quantile of each group, in one thread as in two."""
    import duckdb

    table = pa.table({"key": data.plain if strings else pa.array(data.codes), "value": data.values})
    connection = duckdb.connect()
    connection.register("rows", table)

    def run() -> float:
        query = f"select key, quantile_disc(value, {QUANTILE}) from rows group by key"
        connection.sql(query).to_arrow_table()
        return float(table.nbytes)

    return run


def contenders(data: Data) -> dict[str, tuple[bool, Callable[[], Run]]]:
    """By name: whether it is private, and how it is prepared."""
    whole = np.arange(data.keys)
    return {
        "dpfrugal, integers": (True, lambda: ours(data, whole, pieces(data.codes, data.values))),
        "dpfrugal, integers, 2 threads": (True, lambda: ours(data, whole, pieces(data.codes, data.values), 2)),
        "dpfrugal, strings as dictionary": (True, lambda: ours(data, data.names, pieces(data.encoded, data.values))),
        "dpfrugal, plain strings": (True, lambda: ours(data, data.names, pieces(data.plain, data.values))),
        "dpfrugal, strings in Parquet": (True, lambda: ours(data, data.names, from_parquet(data.file))),
        "DataSketches, vector of KLL": (False, lambda: kll_vector(data)),
        "DataSketches, a KLL per key": (False, lambda: kll_each(data)),
        "polars exact, integers": (False, lambda: polars_exact(data, strings=False)),
        "polars exact, strings": (False, lambda: polars_exact(data, strings=True)),
        "DuckDB exact, integers": (False, lambda: duckdb_exact(data, strings=False)),
        "DuckDB exact, strings": (False, lambda: duckdb_exact(data, strings=True)),
    }


def measure(data: Data, repetitions: int) -> list[Row]:
    """Contenders run in turn, so that a slow minute falls on all of them."""
    rows, runs, release = [], [], release_seconds(data.keys)
    for name, (private, prepare) in contenders(data).items():
        row = Row(data.keys, data.law, name, private, release=release if private else (0.0, 0.0))
        try:
            run = prepare()
            if name.startswith("dpfrugal"):
                run()  # compiles what needs it
        except Exception as error:  # a peer that cannot run is a row of the table; our own must stop the run
            if private:
                raise
            row.failure = reason(error)
        rows.append(row)
        runs.append(None if row.failure else run)
    for _ in range(repetitions):
        for row, run in zip(rows, runs, strict=True):
            if run is None or row.failure or (not row.private and row.seconds and row.seconds[0] > 10):
                continue
            started, busy = time.perf_counter(), time.process_time()
            try:
                state = run()
            except Exception as error:  # the same
                if row.private:
                    raise
                row.failure = reason(error)
                continue
            row.seconds.append(time.perf_counter() - started)
            row.cpu_seconds.append(time.process_time() - busy)
            row.bytes_per_key = state / data.keys
    return rows


HEADER = ("contender", "rows/s", "× integers", "rows/CPU s", "then release", "bytes/key", "private")


def cells(row: Row, rows: int, reference: Row) -> tuple[str, ...]:
    """A row as text, in the order of ``HEADER``."""
    if row.failure:
        return (row.contender, f"not run: {row.failure}", "", "", "", "", "")
    ratio = median(theirs / mine for mine, theirs in zip(row.seconds, reference.seconds, strict=False))
    return (
        row.contender,
        amount(rows / median(row.seconds)),
        f"{ratio:.3g}",
        amount(rows / min(row.cpu_seconds)),
        f"{row.release[0]:.2g} s" if row.private else "",
        f"{row.bytes_per_key:,.0f}",
        "ε = 1" if row.private else "no",
    )


def main() -> None:
    """Measure, print, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of each set of keys")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for keyed.json and keyed.png")
    chosen, console, started = parser.parse_args(), Console(width=130), time.perf_counter()
    console.print(
        f"{machine.sentence()}; {chosen.rows:,} rows, {chosen.repetitions} repetitions, q = {QUANTILE}, ε = 1"
    )
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for keys in KEYS:
            for law in LAWS:
                data = data_of(law, keys, chosen.rows, Path(folder))
                rows = measure(data, chosen.repetitions)
                table = Table(*HEADER, title=f"{keys:,} keys, {law}", title_justify="left")
                for row in rows:
                    table.add_row(*cells(row, chosen.rows, rows[0]))
                console.print(table)
                found += rows
                data.file.unlink()
    chosen.output.mkdir(parents=True, exist_ok=True)
    record = {
        "machine": machine.described(),
        "settings": {"rows": chosen.rows, "repetitions": chosen.repetitions, "quantile": QUANTILE, "epsilon": 1.0},
        "rows": [asdict(row) for row in found],
        "seconds": round(time.perf_counter() - started),
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (chosen.output / "keyed.json").write_text(text + "\n", encoding="utf-8")
    keyed_chart.draw(found, chosen.rows, machine.sentence(), chosen.output / "keyed.png")
    console.print(f"{record['seconds']} s; keyed.json and keyed.png are in {chosen.output.name}/")


if __name__ == "__main__":
    main()
