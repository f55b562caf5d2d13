"""Running tasks: figure after figure, several streams at once, resumable at every row.

Jobs are threads: the generators, the kernels and OpenDP let go of the interpreter's lock while they work.
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
# How often the main thread looks up from waiting: Ctrl-C is noticed then.
LOOK_UP_SECONDS: Final = 0.1


def identity(scale: Scale) -> dict[str, Any]:
    """What results must have in common to stand in one report."""
    return {
        "dpfrugal": __version__,
        "numpy": np.__version__,
        "generator": GENERATOR,
        "items": scale.items,
        "repetitions": scale.repetitions,
    }


def tasks_of(figure: str, scale: Scale) -> list[Task]:
    """Everything a figure is made of."""
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
    """What each stream of a figure has cost."""
    return ResultsFile(folder / f"{figure}.costs.csv", *COST_COLUMNS)


def runs_in(folder: Path) -> ResultsFile:
    """The runs that have added rows."""
    return ResultsFile(folder / "runs.csv", *RUN_COLUMNS)


def files_of(figure: str) -> list[str]:
    """What is kept of a figure."""
    return [f"{figure}.csv", f"{figure}.costs.csv"]


@dataclass(frozen=True)
class Watcher:
    """Whom to tell: of a figure that begins with so much work, of work done, of a figure that is complete."""

    begin: Callable[[str, int], None]
    worked: Callable[[int], None]
    done: Callable[[str, int, float], None]


class Run:
    """What is left to do of some figures, and doing it."""

    def __init__(self, folder: Path, figures: list[str], scale: Scale, jobs: int) -> None:
        self._jobs = jobs
        self._runs = runs_in(folder)
        # All of them, because the report reads all: one that cannot be read is refused before anything is run.
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
        """How many items are still to come, noise draws included as what they cost."""
        return sum(task.work for tasks in self._left.values() for task in tasks)

    def go(self, watcher: Watcher) -> None:
        """Do all of it. After an interrupt every row that was written stays, and a new run goes on from there."""
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
                    done, waiting = wait(waiting, timeout=LOOK_UP_SECONDS, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                self._stop.set()
                for future in waiting:
                    future.cancel()
                raise
        watcher.done(figure, len(self._results[figure]), time.perf_counter() - begun)
