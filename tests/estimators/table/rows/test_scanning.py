"""One scan over rows: what it counts and collects, by numpy and compiled."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.table.rows import scanning
from dpfrugal.estimators.table.rows.scanning import Scan, scan_by_numpy

small = st.integers(-9, 9)


@pytest.mark.parametrize("compiled", [False, True])
@settings(max_examples=25)
@given(
    st.lists(st.lists(small, max_size=150), max_size=4),
    st.lists(st.tuples(small, st.integers(0, 6), st.booleans()), min_size=1, max_size=4),
)
def test_scan__counts_and_collects_what_lies_in_its_intervals(
    compiled: bool, batches: list[list[int]], intervals: list[tuple[int, int, bool]]
) -> None:
    lows, highs = np.array([low for low, _, _ in intervals]), np.array([low + width for low, width, _ in intervals])
    scan = Scan(lows, highs, np.array([collected for _, _, collected in intervals]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning, "worth_loading", lambda *_: compiled)
        scan.read(np.array(batch, dtype=np.int64) for batch in batches)
    rows = [row for batch in batches for row in batch]
    assert scan.rows == len(rows)
    assert scan.below.tolist() == [sum(row < low for row in rows) for low in lows]
    assert scan.upto.tolist() == [sum(row <= high for row in rows) for high in highs]
    expected = [row for low, width, collected in intervals if collected for row in rows if low <= row <= low + width]
    assert sorted(scan.found.tolist()) == sorted(expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_scan__makes_room_for_all_that_it_collects(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "ROOM", 1)
    monkeypatch.setattr(scanning, "worth_loading", lambda *_: compiled)
    rows = np.random.default_rng(1).permutation(5000).astype(np.float64)
    scan = Scan(np.array([1000.0]), np.array([3999.0]), np.array([True]))
    scan.read([rows[:700], rows[700:]])
    assert sorted(scan.found.tolist()) == list(range(1000, 4000))


def test_scan_by_numpy__adds_to_what_was_counted_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "BLOCK", 3)
    below, upto = np.array([100]), np.array([200])
    ends: tuple[NDArray[Any], NDArray[Any]] = (np.array([2]), np.array([4]))
    found = scan_by_numpy(np.arange(8), *ends, np.array([True]), below, upto)
    assert (below.tolist(), upto.tolist(), found.tolist()) == ([102], [205], [2, 3, 4])
