"""Starting up and single items: what a person waits for before and between batches.

    python -m benchmarks.startup

Times are medians; what a fresh process does is measured in fresh processes, with warm caches. scipy is hidden from
them (plain/scipy.py): an installation has none, and numba would load the one that the tests and the peers bring. The
targets are those of the project; nothing here fails a build, it only reports.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from benchmarks import machine

RESULTS = Path(__file__).parent / "results"
PROCESSES, LOOPS = 7, 5
SINGLE_ITEMS, THREAD_ITEMS = 200_000, 20_000_000
PLAIN = machine.plain()

IMPORT = """
import time, numpy
started = time.perf_counter()
import dpfrugal
print(time.perf_counter() - started)
"""
# Everything that the first batch brings with it: importing numba, loading compiled code from its cache, walking.
FIRST_BATCH = """
import time, numpy, dpfrugal
items = numpy.arange(100_000)
started = time.perf_counter()
dpfrugal.Frugal1U(0.99).update_many(items)
print(time.perf_counter() - started)
"""


@dataclass(frozen=True)
class Figure:
    """One measured quantity, and the bound from above that it should keep."""

    name: str
    value: float
    unit: str
    target: float | None

    @property
    def verdict(self) -> str:
        """PASS, miss, or nothing where no target was set."""
        if self.target is None:
            return ""
        reached = self.value < self.target
        return "PASS" if reached else "miss"


def printed_seconds(program: str) -> float:
    """The number that a program prints in a process of its own; the first run only warms caches."""
    command = [sys.executable, "-c", program]
    runs = [subprocess.run(command, check=True, capture_output=True, env=PLAIN) for _ in range(PROCESSES + 1)]
    return median(float(run.stdout) for run in runs[1:])


def wall_seconds(arguments: list[str]) -> float:
    """From the start to the end of a process."""

    def once() -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=PLAIN)
        return time.perf_counter() - started

    return median([once() for _ in range(PROCESSES + 1)][1:])


def seconds_per_update(build: Callable[[], dpf.Frugal1U | dpf.DPFrugal1U], items: list[float] | list[int]) -> float:
    """The mean time of one ``update`` in a plain loop, the loop included."""

    def once() -> float:
        update = build().update
        started = time.perf_counter()
        for item in items:
            update(item)
        return (time.perf_counter() - started) / len(items)

    return median([once() for _ in range(LOOPS + 1)][1:])


def after_a_batch(build: Callable[[], dpf.Frugal1U | dpf.DPFrugal1U], items: list[float]) -> float:
    """The same once the compiled kernels are loaded, which the first large batch of a process brings about."""
    dpf.Frugal1U(0.5).update_many(items)
    return seconds_per_update(build, items)


def thread_speed_up() -> float:
    """How much more two threads with an estimator each take in than one thread does: 2 where nothing is shared."""
    items = (np.random.default_rng(1).normal(50, 2, THREAD_ITEMS) * 1000).astype(np.int64)

    def together(threads: int) -> float:
        estimators = [dpf.Frugal1U(0.99) for _ in range(threads)]
        workers = [threading.Thread(target=estimator.update_many, args=(items,)) for estimator in estimators]
        started = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return time.perf_counter() - started

    together(1)
    return median(2 * together(1) / together(2) for _ in range(2 * LOOPS + 1))


def private() -> dpf.DPFrugal1U:
    """A private estimator; the item rate does not depend on its guarantee."""
    return dpf.DPFrugal1U(0.99, dpf.PureDP(epsilon=1.0))


def public() -> dpf.Frugal1U:
    """The one without privacy."""
    return dpf.Frugal1U(0.99)


def figures() -> list[Figure]:
    """Everything this file measures."""
    floats = np.random.default_rng(1).normal(50, 2, SINGLE_ITEMS).tolist()
    integers = [int(1000 * item) for item in floats]
    return [
        Figure("import dpfrugal, after numpy", 1e3 * printed_seconds(IMPORT), "ms", 150),
        Figure("dpfrugal --help", wall_seconds(["-m", "dpfrugal", "--help"]), "s", 0.5),
        Figure("first update_many of a process, cache warm", printed_seconds(FIRST_BATCH), "s", 0.3),
        Figure("Frugal1U.update(float)", 1e6 * seconds_per_update(public, floats), "µs", 0.5),
        Figure("Frugal1U.update(int)", 1e6 * seconds_per_update(public, integers), "µs", 0.5),
        Figure("DPFrugal1U.update(float)", 1e6 * seconds_per_update(private, floats), "µs", 0.5),
        Figure("DPFrugal1U.update(int)", 1e6 * seconds_per_update(private, integers), "µs", 0.5),
        Figure("Frugal1U.update(float), after a batch", 1e6 * after_a_batch(public, floats), "µs", 0.5),
        Figure("DPFrugal1U.update(float), after a batch", 1e6 * after_a_batch(private, floats), "µs", 0.5),
        Figure("two threads beside one, items/s", thread_speed_up(), "×", None),
    ]


def main() -> None:
    """Measure, print, and keep the figures."""
    console = Console(width=120)
    console.print(machine.sentence())
    table = Table("what", "median", "target", "", title="Start-up and single items", title_justify="left")
    found = figures()
    for figure in found:
        target = "" if figure.target is None else f"< {figure.target:g} {figure.unit}"
        colour = "green" if figure.verdict == "PASS" else "red"
        table.add_row(figure.name, f"{figure.value:.3g} {figure.unit}", target, f"[{colour}]{figure.verdict}[/]")
    console.print(table)
    RESULTS.mkdir(exist_ok=True)
    record = {
        "machine": machine.described(),
        "figures": [asdict(figure) | {"verdict": figure.verdict} for figure in found],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (RESULTS / "startup.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
