"""Limits per person: the bounds hold over any batches, chance decides, and a refused batch leaves no trace."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal import ItemError, ItemTypeError
from dpfrugal.keys import person_limits
from dpfrugal.keys.person_limits import PersonLimits, RowPriorities, chosen_rows
from tests.support.naive_groups import chosen

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), max_size=60)


@settings(max_examples=80)
@given(ROWS, st.integers(1, 6), st.none() | st.integers(1, 6), st.integers(1, 4))
def test_person_limits__let_nobody_have_more_than_the_bounds_and_waste_nothing(
    rows: list[tuple[int, int]], most_items: int, most_keys: int | None, batches: int
) -> None:
    people = PersonLimits(most_items, most_keys)
    had: dict[int, list[int]] = defaultdict(list)
    refused: dict[int, set[int]] = defaultdict(set)
    for batch in (rows[k::batches] for k in range(batches)):
        ids, codes = [who for who, _ in batch], np.array([code for _, code in batch], dtype=np.int32)
        kept = people.taken(ids, codes)
        for who, code, taken in zip(ids, codes.tolist(), kept.tolist(), strict=True):
            assert taken in (code, -1)
            (had[who].append(taken) if taken >= 0 else refused[who].add(code))
        people.settle(codes)
    aside = 0
    for who, seen in Counter(who for who, code in rows if code >= 0).items():
        aside += seen - len(had[who])
        full = {key for key, count in Counter(had[who]).items() if count == most_items}
        if most_keys is None:
            assert len(had[who]) == min(seen, most_items)
        else:
            assert max(Counter(had[who]).values()) <= most_items
            assert len(set(had[who])) <= most_keys
            # A row was set aside because its key had its rows, or because there was no room for its key.
            no_room = len(set(had[who])) == most_keys
            assert all(code in full or (no_room and code not in had[who]) for code in refused[who] - {-1})
    assert people.set_aside == aside


@settings(max_examples=40)
@given(ROWS, ROWS, st.integers(1, 3), st.none() | st.integers(1, 3))
def test_person_limits__keep_no_trace_of_a_refused_batch(
    before: list[tuple[int, int]], refused: list[tuple[int, int]], most_items: int, most_keys: int | None
) -> None:
    people = PersonLimits(most_items, most_keys)

    def take(rows: list[tuple[int, int]]) -> Any:
        codes = np.array([code for _, code in rows], dtype=np.int32)
        people.taken([who for who, _ in rows], codes)
        return codes

    people.settle(take(before))
    state: list[Any] = [people._tallies.copy(), people._keys.copy(), people.people.size, people.set_aside]
    take(refused)
    people.undo()
    after: list[Any] = [people._tallies, people._keys, people.people.size, people.set_aside]
    assert all(np.array_equal(was, now) for was, now in zip(state, after, strict=True))
    people.undo()  # there is nothing left to undo


def test_person_limits__let_chance_decide_within_a_batch() -> None:
    """Each of 10 rows of 20,000 people has the same chance; 7 standard deviations: below 1e-10 for all ten."""
    persons, rows = 20_000, 10
    people = PersonLimits(1)
    codes = np.tile(np.arange(rows, dtype=np.int32), persons)
    kept = people.taken(np.repeat(np.arange(persons), rows), codes)
    counts = np.bincount(kept[kept >= 0], minlength=rows)
    assert counts.sum() == persons
    spread = 7 * np.sqrt(persons * 0.1 * 0.9)
    assert (np.abs(counts - persons / rows) < spread).all()
    first_come = np.bincount(codes[::rows], minlength=rows)  # the leg that must fail: the first row of each
    assert (np.abs(first_come - persons / rows) > spread).all()


def test_person_limits__do_not_depend_on_other_peoples_rows() -> None:
    """With room for all of a person's rows, all are taken, whatever others send."""
    people = PersonLimits(3)
    ids = ["ann"] * 3 + ["bob"] * 50
    kept = people.taken(ids, np.arange(53, dtype=np.int32))
    assert kept[:3].tolist() == [0, 1, 2]
    assert (kept[3:] >= 0).sum() == 3


@pytest.mark.parametrize("shape", [list, np.array, pd.Series, pl.Series, pa.array])
def test_person_limits__take_ids_in_any_shape(shape: Any) -> None:
    people = PersonLimits(1)
    assert (people.taken(shape(["a", "b", "a"]), np.zeros(3, dtype=np.int32)) >= 0).sum() == 2


def test_person_limits__refuse_in_sentences() -> None:
    people = PersonLimits(1)
    codes = np.zeros(2, dtype=np.int32)
    with pytest.raises(ItemError, match="person has null ids"):
        people.taken(["a", None], codes)
    with pytest.raises(ItemError, match="one length"):
        people.taken(["a"], codes)
    assert people.people.size == 0
    people.settle(people.taken(["a", "b"], codes))
    with pytest.raises(ItemTypeError, match="person has ids that cannot be used"):
        people.taken([1, 2], codes)


@settings(max_examples=150)
@given(ROWS, st.integers(1, 6), st.none() | st.integers(1, 6), st.integers(0, 2**32), st.booleans())
def test_chosen_rows__are_those_with_the_smallest_priorities(
    rows: list[tuple[int, int]], most_items: int, most_keys: int | None, seed: int, ties: bool
) -> None:
    priorities = np.random.default_rng(seed).integers(0, 4 if ties else 2**63, len(rows), dtype=np.uint64)
    who = np.array([who for who, _ in rows], dtype=np.int32)
    keys = np.array([key for _, key in rows], dtype=np.int32)
    limits: Any = {"max_items_per_person": most_items, "max_keys_per_person": most_keys}
    expected = chosen(priorities.tolist(), who.tolist(), keys.tolist(), most_items, most_keys)
    assert chosen_rows(priorities, who, keys, **limits).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:  # shares of the people, some of them without anybody
        patch.setattr(person_limits, "WORTH_A_THREAD", 0)
        patch.setattr(person_limits, "available", lambda: 3)
        assert chosen_rows(priorities, who, keys, **limits).tolist() == expected
    if most_keys is None:
        all_count = chosen(priorities.tolist(), who.tolist(), [0] * len(rows), most_items, None)
        assert chosen_rows(priorities, who, **limits).tolist() == all_count


@settings(max_examples=100)
@given(ROWS, st.integers(1, 3), st.none() | st.integers(1, 3), st.integers(0, 2**32), st.data())
def test_chosen_rows__of_a_person_depend_on_nobody_else(
    rows: list[tuple[int, int]], most_items: int, most_keys: int | None, seed: int, data: st.DataObject
) -> None:
    """All other people's rows may change, go and be put elsewhere: the same rows of the first person count."""
    limits: Any = {"max_items_per_person": most_items, "max_keys_per_person": most_keys}
    priorities = np.random.default_rng(seed).integers(0, 2**63, len(rows), dtype=np.uint64)

    def counted(order: list[int], others: dict[int, tuple[int, int]]) -> set[int]:
        now = [others.get(row, rows[row]) for row in order]
        who, keys = (np.array([each[part] for each in now], dtype=np.int32) for part in (0, 1))
        mask = chosen_rows(priorities[order], who, keys, **limits)
        return {row for row, person, taken in zip(order, who, mask, strict=True) if person == 0 and taken}

    order = list(range(len(rows)))
    strangers = [row for row in order if rows[row][0] != 0]
    gone = set(data.draw(st.lists(st.sampled_from(strangers)))) if strangers else set()
    others = {row: data.draw(st.tuples(st.integers(1, 4), st.integers(-1, 5))) for row in strangers}
    moved = data.draw(st.permutations([row for row in order if row not in gone]))
    assert counted(moved, others) == counted(order, {})


def test_row_priorities__are_the_same_however_the_table_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpfrugal.keys.person_limits.secrets.randbits", lambda bits: 7)
    cut, whole = RowPriorities(), RowPriorities().next(1000)
    assert np.concatenate([cut.next(rows) for rows in (1, 0, 300, 699)]).tolist() == whole.tolist()
    monkeypatch.setattr("dpfrugal.keys.person_limits.secrets.randbits", lambda bits: 8)
    assert RowPriorities().next(1000).tolist() != whole.tolist()
