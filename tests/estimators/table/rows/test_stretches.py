"""Rows by rank that are known by stretches answer what sorted rows answer, also where one asks beyond them."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.rows.order_statistics import SortedRows
from dpfrugal.estimators.table.rows.stretches import LEAST, MOST, GroupStretches, Stretch, StretchRows

tables = st.lists(st.integers(-6, 6), min_size=1, max_size=20).map(sorted)
ends = st.one_of(st.none(), st.integers(-8, 8))


def stretch(rows: Sequence[int], low: int, high: int) -> Stretch:
    """What there is to know of sorted rows between two codes."""
    codes, numbers = np.unique([row for row in rows if low <= row <= high], return_counts=True)
    below = sum(row < low for row in rows)
    return Stretch(low, high, below, codes.astype(np.int64), below + np.cumsum(numbers))


@given(tables, st.lists(st.tuples(st.integers(-8, 8), st.integers(-8, 8)), max_size=3), st.data())
def test_stretch_rows__answer_as_sorted_rows_whatever_is_known(
    rows: list[int], known: list[tuple[int, int]], data: st.DataObject
) -> None:
    least, most = sorted(data.draw(st.tuples(st.integers(-8, 8), st.integers(-8, 8))))
    clips = data.draw(st.sampled_from([(None, None), (least, most), (None, most), (least, None)]))
    asked = 0

    def everything() -> Stretch:
        nonlocal asked
        asked += 1
        return stretch(rows, LEAST, MOST)

    found = StretchRows(len(rows), [stretch(rows, *sorted(each)) for each in known], everything, *clips)
    expected = SortedRows(np.array(rows, dtype=np.int64), *clips)
    for _ in range(3):
        ask = data.draw(st.tuples(st.integers(-2, len(rows)), st.integers(-2, len(rows) + 1), ends, ends))
        one, other = found.window(*ask), expected.window(*ask)
        for name in ("codes", "below", "upto"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert asked <= 1


def test_stretch_rows__within_what_is_known_nothing_is_asked() -> None:
    def everything() -> Stretch:
        raise AssertionError

    rows = StretchRows(6, [stretch([1, 2, 2, 3, 5, 9], 2, 5)], everything)
    assert rows.window(1, 4, None, None).codes.tolist() == [2, 3, 5]


@given(st.lists(tables, min_size=1, max_size=4), st.integers(-8, 0), st.integers(0, 8), st.booleans(), st.data())
def test_group_stretches__give_each_group_its_rows_and_windows(
    groups: list[list[int]], low: int, high: int, counted: bool, data: st.DataObject
) -> None:
    inside = [[row for row in rows if low <= row <= high] for rows in groups]
    held = [sorted(set(rows)) if counted else rows for rows in inside]
    several = GroupStretches(
        sizes=np.array([len(rows) for rows in groups]),
        lows=np.full(len(groups), low),
        highs=np.full(len(groups), high),
        below=np.array([sum(row < low for row in rows) for rows in groups]),
        codes=np.array([row for rows in held for row in rows], dtype=np.int64),
        starts=np.cumsum([0, *(len(rows) for rows in held)]),
        numbers=np.array([rows.count(row) for rows in inside for row in sorted(set(rows))], dtype=np.int64)
        if counted
        else None,
    )
    for group, rows in enumerate(groups):
        one, other = several.stretch(group), stretch(rows, low, high)
        assert (one.low, one.high, one.below, one.end) == (other.low, other.high, other.below, other.end)
        assert (one.codes.tolist(), one.upto.tolist()) == (other.codes.tolist(), other.upto.tolist())
        assert several.ends[group] == other.end
    first = np.array([data.draw(st.integers(int(b), int(e))) for b, e in zip(several.below, several.ends, strict=True)])
    last = np.array([data.draw(st.integers(int(f) - 1, int(e) - 1)) for f, e in zip(first, several.ends, strict=True)])
    windows = several.windows((first, last))
    for group, rows in enumerate(groups):
        found = windows.codes[windows.starts[group] : windows.starts[group + 1]].tolist()
        assert found == rows[first[group] : last[group] + 1]
        assert not found or windows.before[group] == first[group]
