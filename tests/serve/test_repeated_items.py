"""Repetitions, against a set of what came before."""

import numpy as np
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


def test_seen_items__beyond_their_number_nothing_more_is_remembered() -> None:
    seen = SeenItems(most=2)
    assert seen.new(identities([1, 2])).all()
    for _ in range(2):
        assert seen.new(identities([3, 1, 3])).tolist() == [True, False, False]
