"""A task: one repetition of one experiment on one stream, and the rows of results that it writes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpfrugal.paper.cpu_time import Clock
from dpfrugal.paper.results import ResultsFile


@dataclass(frozen=True)
class Task:
    """``run`` writes each row as soon as it is known, except those that exist already.

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
        """The rows that do not exist yet."""
        return [row for row in self.rows if row not in results]
