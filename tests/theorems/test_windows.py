"""Theorem 20 (a), exactly: what neighbours hold of a window, for all small windows and all orders of priorities."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from dpfrugal.estimators.windows.held_items import HeldItems

Row = tuple[int, int] | None  # the group and the code of an item; None where it is omitted or not there
ROWS: tuple[Row, ...] = (None, (0, 7), (0, 9), (1, 7), (1, 9))
Held = dict[int, Counter[int]]


def held(items: HeldItems, rows: tuple[Row, ...], priorities: tuple[int, ...], who: list[int] | None) -> Held:
    """What a window holds of each group."""
    there = [(*row, priority, at) for at, (row, priority) in enumerate(zip(rows, priorities, strict=True)) if row]
    columns = {"groups": np.array([row[0] for row in there], dtype=np.int32)}
    if who is not None:
        columns["who"] = np.array([who[row[3]] for row in there], dtype=np.int32)
    codes = np.array([row[1] for row in there], dtype=np.int64)
    items.add(codes, np.array([row[2] for row in there], dtype=np.uint32), **columns)
    arrays, found = items.arrays(), {0: Counter[int](), 1: Counter[int]()}
    for group, code in zip(arrays["groups"].tolist(), arrays["codes"].tolist(), strict=True):
        found[group][code] += 1
    return found


def change(one: Held, other: Held) -> tuple[int, int, list[int]]:
    """How many rows are only in one, and only in the other; and of each group the larger of both."""
    lost = [(one[group] - other[group]).total() for group in (0, 1)]
    gained = [(other[group] - one[group]).total() for group in (0, 1)]
    return sum(lost), sum(gained), [max(pair) for pair in zip(lost, gained, strict=True)]


def neighbours(hold: int, *, per_group: bool = False) -> Iterator[tuple[bool, tuple[int, int, list[int]]]]:
    """All windows of four items, with priorities in all orders and with ties, and what another first item changes.

    The first value says whether an item is added or removed.
    """
    orders = [*itertools.permutations(range(4)), (0, 0, 1, 1), (1, 1, 1, 0), (2, 2, 2, 2)]
    for others in itertools.combinations_with_replacement(ROWS, 3):
        for order in orders:
            several = {
                first: held(HeldItems(hold, ("groups",), per_group=per_group), (first, *others), order, None)
                for first in ROWS
            }
            for pair in itertools.combinations(ROWS, 2):
                yield None in pair, change(*(several[first] for first in pair))


@pytest.mark.parametrize("hold", [1, 3])
def test_windows__of_neighbours_hold_rows_that_differ_by_one(hold: int) -> None:
    found = list(neighbours(hold))
    assert max(lost for _, (lost, _, _) in found) == max(gained for _, (_, gained, _) in found) == 1
    assert any(added and lost == gained == 1 for added, (lost, gained, _) in found), "one more may replace another"


@pytest.mark.parametrize("hold", [1, 2])
def test_windows__with_a_bound_for_each_key_differ_by_a_row_in_two_groups(hold: int) -> None:
    found = list(neighbours(hold, per_group=True))
    assert max(max(groups) for _, (_, _, groups) in found) == 1
    assert max(sum(groups) for added, (_, _, groups) in found if added) == 1
    replaced = any((lost, gained) == (2, 2) for _, (lost, gained, _) in found)
    assert replaced == (hold == 1), "a row of each of two groups, where four items can fill both"


def most_changed(kind: Callable[[], HeldItems]) -> int:
    """By how many rows windows differ where all items of a person, here the first three, differ."""
    worst, who, others = 0, [0, 0, 0, 1, 2], ((0, 7), (1, 9))
    for priorities in itertools.permutations(range(5)):
        several = [
            held(kind(), (*rows, *others), priorities, who)
            for rows in ((None, None, None), ((0, 5), (0, 5), (0, 5)), ((1, 6), None, (0, 5)), ((1, 6), (1, 6), None))
        ]
        worst = max([worst, *(max(change(*pair)[:2]) for pair in itertools.combinations(several, 2))])
    return worst


def test_windows__of_neighbours_in_all_items_of_a_person_differ_by_those_that_count() -> None:
    columns = ("groups", "who")
    assert most_changed(lambda: HeldItems(2, columns, per_person=1)) == 1
    assert most_changed(lambda: HeldItems(4, columns, per_person=2)) == 2
    assert most_changed(lambda: HeldItems(2, columns)) > 1, "a person who takes other people's places is detected"
