"""A contender: something that turns an array into a 0.99-quantile, and how it is run. Here: this library and numpy.

``prepare`` does, untimed, what the contender's own user would have done already: an array of the type it takes, a
list where it takes one item at a time. The call it returns is timed: build, feed, and ask for the quantile, with
ε = 1 where there is privacy.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import dpfrugal as dpf
from benchmarks import machine
from benchmarks.datasets import QUANTILE, Dataset

EPSILON = 1.0
MANY = 1 << 62
FEW = 2  # repetitions of what takes a second or more
SEVERAL = (0.1, 0.3, 0.5, QUANTILE)
INT32 = np.iinfo(np.int32)
# An estimator holds its estimates, the number of items and the key of its coins: 8 bytes each.
COUNT_AND_KEY = 16


@dataclass(frozen=True)
class Answer:
    """An estimate (None: it makes none), and a way to find the bytes that were kept to make it."""

    estimate: float | None
    state: Callable[[], int]


Run = Callable[[], Answer]


@dataclass(frozen=True)
class Contender:
    """One row of the table."""

    name: str
    prepare: Callable[[Dataset], Run]
    most_items: int = MANY
    private: bool = False
    needs: str = "nothing"
    most_repetitions: int = MANY


@dataclass(frozen=True)
class Absent:
    """A peer that could not be run, and why."""

    name: str
    reason: str


def batch(kind: type[np.number[Any]], quantiles: float | tuple[float, ...] = QUANTILE) -> Callable[[Dataset], Run]:
    """``DPFrugal1U.update_many`` on an array of one type; 32-bit integers saturate."""

    def prepare(dataset: Dataset) -> Run:
        items: NDArray[Any] = dataset.items
        if kind is np.int32:
            items = items.clip(INT32.min, INT32.max)
        items = items.astype(kind, copy=False)

        def run() -> Answer:
            estimator = dpf.DPFrugal1U(quantiles, dpf.PureDP(epsilon=EPSILON))
            estimator.update_many(items)
            release = estimator.release()
            asked = dict(zip(release.quantiles, release.values, strict=True)).get(QUANTILE)
            return Answer(asked, lambda: COUNT_AND_KEY + 8 * len(release.values))

        return run

    return prepare


def segments(kind: type[np.number[Any]], quantiles: float | tuple[float, ...] = QUANTILE) -> Callable[[Dataset], Run]:
    """``PrivateQuantile.update_many``; its state is that of its last edges and counts, and 24 numbers a quantile."""

    def prepare(dataset: Dataset) -> Run:
        items: NDArray[Any] = dataset.items.astype(kind, copy=False)

        def run() -> Answer:
            estimator = dpf.PrivateQuantile(quantiles, dpf.PureDP(epsilon=EPSILON))
            estimator.update_many(items)
            values = estimator.release(close=True).values
            return Answer(values[-1], lambda: 8 * (2 * estimator.edges.size + 2 + 24 * len(values)))

        return run

    return prepare


def one_at_a_time(dataset: Dataset) -> Run:
    """``DPFrugal1U.update``; up to 1,024 items wait to be taken in together."""
    items = dataset.thinned(ONE_BY_ONE).astype(np.float64).tolist()

    def run() -> Answer:
        estimator = dpf.DPFrugal1U(QUANTILE, dpf.PureDP(epsilon=EPSILON))
        update = estimator.update
        for item in items:
            update(item)
        return Answer(estimator.release().value, lambda: COUNT_AND_KEY + 8 + 8 * 1024)

    return run


def command_line(dataset: Dataset) -> Run:
    """``dpfrugal quantile`` on a Parquet file: a whole process, from its start to its end."""
    folder = tempfile.TemporaryDirectory(prefix="dpfrugal-bench-")
    path = Path(folder.name) / "items.parquet"
    pq.write_table(pa.table({"value": dataset.items}), path)
    command = [sys.executable, "-m", "dpfrugal", "quantile", str(path), "-q", str(QUANTILE), "--epsilon", str(EPSILON)]
    environment = machine.plain()

    def run(folder: object = folder) -> Answer:  # the folder lives as long as the call that needs it
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        return Answer(float(printed.split("\t")[1]), lambda: COUNT_AND_KEY + 8)

    return run


def numpy_sum(kind: type[np.number[Any]]) -> Callable[[Dataset], Run]:
    """Reading memory, and no quantile."""

    def prepare(dataset: Dataset) -> Run:
        items: NDArray[Any] = dataset.items.astype(kind, copy=False)

        def run() -> Answer:
            items.sum()
            return Answer(None, lambda: 8)

        return run

    return prepare


def numpy_partition(dataset: Dataset) -> Run:
    """The exact quantile, by selection on a copy of all items."""
    items, rank = dataset.items, int(QUANTILE * (dataset.items.size - 1))

    def run() -> Answer:
        parted = np.partition(items, rank)
        return Answer(float(parted[rank]), lambda: parted.nbytes)

    return run


ONE_BY_ONE = 500_000
BATCH = "dpfrugal, batch int64"
MEDIAN = "dpfrugal, batch int64, median"
SEVERAL_NAME = "dpfrugal, 4 quantiles"
SEGMENTS = "dpfrugal, PrivateQuantile"
SUM = "numpy.sum"
SUM_OF_FLOATS = "numpy.sum float64"

OURS = (
    Contender(BATCH, batch(np.int64), private=True),
    Contender(MEDIAN, batch(np.int64, 0.5), private=True),
    Contender("dpfrugal, batch int32", batch(np.int32), private=True),
    Contender("dpfrugal, batch float64", batch(np.float64), private=True),
    Contender("dpfrugal, batch float32", batch(np.float32), private=True),
    Contender(SEVERAL_NAME, batch(np.int64, SEVERAL), private=True),
    Contender(SEGMENTS, segments(np.float64), private=True),
    Contender("dpfrugal, PrivateQuantile, 3 quantiles", segments(np.float64, (0.5, 0.9, QUANTILE)), private=True),
    Contender("dpfrugal, one at a time", one_at_a_time, most_items=ONE_BY_ONE, private=True),
    Contender("dpfrugal, command line", command_line, private=True, most_repetitions=FEW),
)
NUMPY = (
    Contender(SUM, numpy_sum(np.int64)),
    Contender(SUM_OF_FLOATS, numpy_sum(np.float64)),
    Contender("numpy.partition", numpy_partition),
)
