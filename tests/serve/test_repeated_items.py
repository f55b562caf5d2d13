"""Repetitions, against a set of what came before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.serve.repeated_items import SeenItems

batches = st.lists(st.lists(st.integers(-5, 5), max_size=8), max_size=6)


def identities(batch: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(batch, dtype=np.int64)


def firsts(batch: list[int], known: set[int]) -> list[bool]:
    new = []
    for identity in batch:
        new.append(identity not in known)
        known.add(identity)
    return new


@given(batches, batches, batches)
def test_seen_items__are_those_of_this_window_and_of_the_one_before(
    one: list[list[int]], two: list[list[int]], three: list[list[int]]
) -> None:
    seen, before = None, set[int]()
    for window in (one, two, three):
        seen, here = SeenItems(seen), set[int]()
        for batch in window:
            known = before | here
            assert seen.new(identities(batch)).tolist() == firsts(batch, known)
            here |= set(batch)
        before = here


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_seen_items__what_is_not_remembered_counts_each_time_however_it_is_cut(size: int) -> None:
    deliveries, seen = [1, 2, 1, 3, 4, 4, 2, 3, 5, 5, 4], SeenItems(most=3)
    new = [seen.new(identities(deliveries[at : at + size])) for at in range(0, len(deliveries), size)]
    assert np.concatenate(new).tolist() == [i not in (2, 6, 7) for i in range(len(deliveries))]


def test_seen_items__an_item_more_changes_itself_and_one_other() -> None:
    deliveries = np.random.default_rng(1).permutation(np.repeat(np.arange(100), 2)).tolist()
    plain, with_one = SeenItems(most=40), SeenItems(most=40)
    with_one.new(identities([-1]))
    changed = {
        identity
        for at in range(0, 200, 20)
        for identity, a, b in zip(
            deliveries[at : at + 20],
            plain.new(identities(deliveries[at : at + 20])),
            with_one.new(identities(deliveries[at : at + 20])),
            strict=True,
        )
        if a != b
    }
    assert len(changed) == 1
