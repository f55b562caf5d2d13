"""Small runs of the experiments, and the rows that they have written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpfrugal.cli.paper import paper
from dpfrugal.paper.results import Row
from dpfrugal.paper.runner import Run, Watcher, results_of
from dpfrugal.paper.settings import Scale

TINY = Scale(items=2000, repetitions=2)


SILENT = Watcher(lambda *_: None, lambda *_: None, lambda *_: None)


def rows_of(folder: Path, figure: str) -> list[Row]:
    return sorted(results_of(folder, figure), key=lambda row: tuple(row.values()))


def run(folder: Path, *figures: str, scale: Scale = TINY, jobs: int = 2) -> Run:
    folder.mkdir(exist_ok=True)
    made = Run(folder, list(figures), scale, jobs)
    made.go(SILENT)
    return made


def without_noise(values: Sequence[int], guarantee: object, sensitivity: object) -> list[int]:
    return list(values)


def command(output: Path, *figures: str, fresh: bool = False, scale: Scale = TINY, jobs: int = 2) -> None:
    chosen: dict[str, Any] = {"items": scale.items, "repetitions": scale.repetitions, "jobs": jobs}
    paper(figure=list(figures), output=output, fresh=fresh, **chosen)
