"""A task: its rows are done once."""

from pathlib import Path

from dpfrugal.paper.cpu_time import Clock
from dpfrugal.paper.results import ResultsFile
from dpfrugal.paper.task import Task


def test_task__runs_the_rows_that_are_missing(tmp_path: Path) -> None:
    rows = tuple({"name": name, "repetition": at} for name in ("a", "b") for at in (1, 2))
    results = ResultsFile(tmp_path / "r.csv", ("name", "repetition"), ("value",))
    made: list[dict[str, object]] = []

    def run(task: Task, results: ResultsFile, clock: Clock) -> None:
        for row in task.missing(results):
            made.append(row)
            results.append({**row, "value": 1})

    task = Task("1a", "D5", 1, rows, 10, run)
    results.append({**rows[2], "value": 9})
    task.run(task, results, Clock(lambda _: None, lambda: False))
    assert made == [rows[0], rows[1], rows[3]]
    assert task.missing(results) == []
    assert not task.alone
