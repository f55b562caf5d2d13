"""A task: one repetition of one experiment on one stream, and the rows it owes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpfrugal.paper.cpu_time import Clock
from dpfrugal.paper.results import ResultsFile


@dataclass(frozen=True)
class Task:
    """``run`` writes each row as soon as it is known, and only those that are not there yet.

    ``work`` is in items; ``alone`` says that nothing else may run beside it.
    """

    figure: str
    dataset: str
    repetition: int
    rows: tuple[dict[str, Any], ...]
    work: int
    run: Callable[["Task", ResultsFile, Clock], None]
    alone: bool = False

    def missing(self, results: ResultsFile) -> list[dict[str, Any]]:
        """The rows that are still owed."""
        return [row for row in self.rows if row not in results]
