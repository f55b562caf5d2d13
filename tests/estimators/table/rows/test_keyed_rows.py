"""Rows with the codes of their keys: counted, chosen and sorted by group as one would by hand."""

import datetime
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS
from dpfrugal.estimators.table.rows import keyed_rows
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows, coded
from tests.support.naive_groups import by_group, chosen

table = st.lists(st.tuples(st.integers(-1, 4), st.integers(-9, 9), st.integers(0, 3)), max_size=60)


def read(rows: list[tuple[int, int, int]], cut: int, threads: int, persons: bool = False, **options: Any) -> KeyedRows:
    keyed = KeyedRows("raise", threads, **options)
    priorities = np.arange(len(rows), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for part in (slice(0, cut), slice(cut, None)):
        groups, values, who = (np.array([row[k] for row in rows[part]], dtype=np.int32) for k in range(3))
        beside = (who, priorities[part]) if persons else (None, None)
        keyed.add(pa.array(values.astype(np.int64)), groups, *beside)
    return keyed


@pytest.mark.parametrize("threads", [1, 2])
@settings(max_examples=40)
@given(table, st.integers(0, 60))
def test_keyed_rows__are_sorted_by_group_wherever_batches_end(
    threads: int, rows: list[tuple[int, int, int]], cut: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_rows, "WORTH_A_THREAD", 1)
        keyed = read(rows, cut, threads)
        assert keyed.rows == len(rows)
        assert keyed.counts(5).tolist() == [sum(group == g for group, _, _ in rows) for g in range(5)]
        relabel = np.array([1, -1, 0, 2, -1], dtype=np.int32)
        codes, starts = keyed.by_group(relabel, 3, keyed.kind)
    found = [codes[first:last].tolist() for first, last in itertools.pairwise(starts)]
    there = [(int(relabel[group]), value) for group, value, _ in rows if group >= 0]
    assert found == by_group([group for group, _ in there], [value for _, value in there], 3)


@settings(max_examples=40)
@given(table, st.integers(0, 60), st.integers(1, 3), st.sampled_from([None, 1, 2]))
def test_keep_chosen__sets_aside_what_is_beyond_the_limits(
    rows: list[tuple[int, int, int]], cut: int, most_items: int, most_keys: int | None
) -> None:
    keyed = read(rows, cut, 1, persons=True)
    keyed.keep_chosen(most_items, most_keys)
    priorities = [k * 0x9E3779B97F4A7C15 % 2**64 for k in range(len(rows))]
    keys, who = [row[0] for row in rows], [row[2] for row in rows]
    kept = chosen(priorities, who, keys, most_items, most_keys)
    expected = [sum(k and group == g for k, group in zip(kept, keys, strict=True)) for g in range(5)]
    assert keyed.counts(5).tolist() == expected


def test_keyed_rows__beyond_the_most_are_only_counted() -> None:
    rows = [(k % 3, k, 0) for k in range(30)]
    keyed = read(rows, 10, 1, most_rows=15)
    assert not keyed.held
    assert (keyed.rows, keyed.counts(3).tolist()) == (30, [10, 10, 10])
    assert read(rows, 10, 1, most_rows=30).held


def test_keyed_rows__of_unwanted_keys_are_left_out() -> None:
    wanted = np.array([-1, 0, -1], dtype=np.int32)
    keyed = read([(k % 3, k, 0) for k in range(30)], 7, 1, wanted=wanted)
    assert keyed.rows == 30
    assert keyed.counts(3).tolist() == [0, 10, 0]


def test_keyed_rows__refuse_or_leave_out_what_is_missing() -> None:
    values, groups = pa.array([1.0, None, float("nan"), 4.0]), np.zeros(4, dtype=np.int32)
    with pytest.raises(ItemError, match="The data has NaN or null rows"):
        KeyedRows("raise", 1).add(values, groups, None, None)
    keyed = KeyedRows("omit", 1)
    keyed.add(values, groups, None, None)
    assert (keyed.rows, keyed.counts(1).tolist()) == (4, [2])


def test_keyed_rows__have_one_kind() -> None:
    keyed, none = KeyedRows("raise", 1), np.zeros(1, dtype=np.int32)
    assert keyed.kind is INTEGERS  # of no rows
    keyed.add(pa.array([3]), none, None, None)
    assert keyed.kind is INTEGERS
    keyed.add(pa.array([2.5]), none, None, None)
    assert keyed.kind is FLOATS
    codes, _ = keyed.by_group(np.zeros(1, dtype=np.int32), 1, FLOATS)
    assert [FLOATS.answer(code) for code in codes.tolist()] == [2.5, 3.0]
    mixed = KeyedRows("raise", 1)
    for array in (pa.array([1.5]), pa.array([datetime.date(2026, 1, 1)])):
        mixed.add(array, none, None, None)
    with pytest.raises(ItemTypeError, match="data must be of one type; it has date and float"):
        _ = mixed.kind


def test_coded__says_which_rows_are_there() -> None:
    kind, codes, present = coded(pa.array([5, None, 7]).dictionary_encode())
    assert (kind, codes.tolist()) == (INTEGERS, [5, 7])
    assert present is not None
    assert present.tolist() == [True, False, True]
    assert coded(pa.array([1, 2]))[2] is None
