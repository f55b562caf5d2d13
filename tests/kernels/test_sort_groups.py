"""The counting sort by group, and the choice of a person's rows: equal to what one would write down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.kernels.sort_groups import FEW_ROWS, choose_rows, count_rows, place_rows, sort_by_priority
from tests.support.naive_groups import by_group

GROUPS = st.lists(st.integers(-2, 4), max_size=50)


@given(GROUPS, st.permutations(range(5)), st.integers(0, 5))
def test_place_rows__puts_each_row_at_the_next_place_of_its_group(
    groups: list[int], order: list[int], there: int
) -> None:
    relabel = np.array([new if new < there else -1 for new in order], dtype=np.int32)
    counts = np.zeros(there, dtype=np.int64)
    codes = np.array(groups, dtype=np.int32)
    count_rows(codes, relabel, counts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    out = np.empty(starts[-1], dtype=np.int64)
    place_rows(codes, relabel, np.arange(len(groups)), starts[:-1].copy(), out)
    new = [int(relabel[group]) if group >= 0 else -1 for group in groups]
    assert [out[starts[g] : starts[g + 1]].tolist() for g in range(there)] == by_group(new, range(len(new)), there)


@pytest.mark.parametrize("rows", [0, 1, 5, FEW_ROWS, FEW_ROWS + 1, 500])
def test_sort_by_priority__keeps_the_order_of_rows_with_one_priority(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for most in (3, 2**63):
        priorities = rng.integers(0, most, 1000, dtype=np.uint64)
        own = np.sort(rng.choice(1000, rows, replace=False))
        expected = sorted(own.tolist(), key=lambda row: int(priorities[row]))
        sort_by_priority(own, priorities)
        assert own.tolist() == expected


def test_choose_rows__opens_the_first_keys_in_order_of_priority() -> None:
    keys = np.array([0, 1, 1, 2, -1, 0], dtype=np.int32)
    priorities = np.array([50, 10, 20, 30, 0, 5], dtype=np.uint64)
    chosen = np.zeros(6, dtype=np.bool_)
    choose_rows(np.arange(6), np.array([0, 6]), priorities, keys, 3, 2, 2, chosen)
    assert chosen.tolist() == [True, True, True, False, False, True]  # keys 0 and 1; key 2 comes third
