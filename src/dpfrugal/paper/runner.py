"""Running tasks: figure after figure, several streams at once, resumable at every row.

Jobs are threads: the generators, the kernels and OpenDP release the interpreter's lock while they work.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpfrugal.paper import accuracy, sweeps, throughput, walk_starts
from dpfrugal.paper.cpu_time import PARTS, Clock
from dpfrugal.paper.datasets import GENERATOR
from dpfrugal.paper.resources import machine, peak_memory_mib
from dpfrugal.paper.results import ResultsFile
from dpfrugal.paper.settings import ACCURACY, FIGURES, STARTS, THROUGHPUT, Scale
from dpfrugal.paper.task import Task
from dpfrugal.version import __version__

COST_COLUMNS: Final = ("figure", "dataset", "repetition"), ("items", *(f"{part}_seconds" for part in PARTS))
RUN_COLUMNS: Final = ("begun",), ("seconds", "rows", "jobs", "peak_mib", "machine")
# How often the main thread stops waiting to handle Ctrl-C.
POLL_SECONDS: Final = 0.1


def identity(scale: Scale) -> dict[str, Any]:
    """What all results in one report must have in common."""
    return {
        "dpfrugal": __version__,
        "numpy": np.__version__,
        "generator": GENERATOR,
        "items": scale.items,
        "repetitions": scale.repetitions,
    }


def tasks_of(figure: str, scale: Scale) -> list[Task]:
    """The tasks that produce a figure."""
    special = {THROUGHPUT: throughput.tasks, ACCURACY: accuracy.tasks, STARTS: walk_starts.tasks}
    return special[figure](scale) if figure in special else sweeps.tasks(figure, scale)


def rows_in(figures: list[str], scale: Scale) -> int:
    """How many rows these figures have when they are complete."""
    return sum(len(task.rows) for figure in figures for task in tasks_of(figure, scale))


def columns_of(figure: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The key and the value columns of a figure's results."""
    module = {THROUGHPUT: throughput, ACCURACY: accuracy, STARTS: walk_starts}.get(figure, sweeps)
    return module.KEY, module.VALUES


def results_of(folder: Path, figure: str) -> ResultsFile:
    """The results of a figure so far."""
    return ResultsFile(folder / f"{figure}.csv", *columns_of(figure))


def costs_of(folder: Path, figure: str) -> ResultsFile:
    """The processor time of each stream of a figure."""
    return ResultsFile(folder / f"{figure}.costs.csv", *COST_COLUMNS)


def runs_in(folder: Path) -> ResultsFile:
    """The runs that have added rows."""
    return ResultsFile(folder / "runs.csv", *RUN_COLUMNS)


def files_of(figure: str) -> list[str]:
    """The files of a figure."""
    return [f"{figure}.csv", f"{figure}.costs.csv"]


@dataclass(frozen=True)
class Watcher:
    """Callbacks: a figure begins with this much work, work was done, a figure is complete."""

    begin: Callable[[str, int], None]
    worked: Callable[[int], None]
    done: Callable[[str, int, float], None]


class Run:
    """The tasks of some figures that are not done yet; ``go`` does them."""

    rows: int

    def __init__(self, folder: Path, figures: list[str], scale: Scale, jobs: int) -> None:
        self._jobs = jobs
        self._runs = runs_in(folder)
        # The files of all figures, because the report reads all: an unreadable one is refused before anything runs.
        self._costs = {figure: costs_of(folder, figure) for figure in FIGURES}
        self._results = {figure: results_of(folder, figure) for figure in FIGURES}
        self._left = {
            figure: [task for task in tasks_of(figure, scale) if task.missing(self._results[figure])]
            for figure in figures
        }
        self.rows = rows_in(figures, scale)
        self._stop = threading.Event()

    @property
    def rows_missing(self) -> int:
        """How many rows are still to come."""
        return sum(len(task.missing(self._results[task.figure])) for tasks in self._left.values() for task in tasks)

    @property
    def work(self) -> int:
        """How many items are still to come, with noise draws counted as the items that take as long."""
        return sum(task.work for tasks in self._left.values() for task in tasks)

    def go(self, watcher: Watcher) -> None:
        """Do all tasks. After an interrupt all written rows stay, and a new run continues from there."""
        begun, start, before = datetime.now(UTC), time.perf_counter(), self.rows_missing
        if before:
            sweeps.load_compiler()
        try:
            for figure, tasks in self._left.items():
                if tasks:
                    self._complete(figure, tasks, watcher)
        finally:
            if made := before - self.rows_missing:
                self._runs.append(
                    {
                        "begun": begun.isoformat(timespec="milliseconds"),
                        "seconds": round(time.perf_counter() - start, 1),
                        "rows": made,
                        "jobs": self._jobs,
                        "peak_mib": peak_memory_mib(),
                        "machine": machine(),
                    }
                )

    def _complete(self, figure: str, tasks: list[Task], watcher: Watcher) -> None:
        begun = time.perf_counter()
        watcher.begin(figure, sum(task.work for task in tasks))

        def work(task: Task) -> None:
            clock = Clock(watcher.worked, self._stop.is_set)
            task.run(task, self._results[figure], clock)
            self._costs[figure].append(clock.row(figure=figure, dataset=task.dataset, repetition=task.repetition))

        with ThreadPoolExecutor(1 if tasks[0].alone else self._jobs) as pool:
            waiting = {pool.submit(work, task) for task in tasks}
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                self._stop.set()
                for future in waiting:
                    future.cancel()
                raise
        watcher.done(figure, len(self._results[figure]), time.perf_counter() - begun)
