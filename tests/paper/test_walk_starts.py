"""A walk from its first item is not private."""

from pathlib import Path

from dpfrugal.paper.settings import Scale
from dpfrugal.paper.walk_starts import FIRST_ITEM, PUBLIC, lengths, tasks
from tests.paper.small_runs import rows_of


def test_starts__at_the_first_item_are_not_private(everything: Path) -> None:
    apart: dict[str, list[int]] = {}
    for row in rows_of(everything / "results", "start"):
        apart.setdefault(row["start"], []).append(int(row["steps_apart"]))
    assert max(apart["a public constant"]) <= 2
    assert min(apart["the first item"]) > 10**8


def test_starts__are_tried_at_three_lengths_for_each_repetition() -> None:
    found = tasks(Scale(items=10_000, repetitions=2))
    assert [task.repetition for task in found] == [1, 2]
    assert lengths(Scale(items=10_000, repetitions=2)) == [100, 1_000, 10_000]
    for task in found:
        assert {(row["items"], row["start"]) for row in task.rows} == {
            (items, start) for items in (100, 1_000, 10_000) for start in (FIRST_ITEM, PUBLIC)
        }
