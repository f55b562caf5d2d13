"""Rows of persons, against a dictionary of what each has had; taking back leaves nothing behind."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.kernels.limit_people import return_rows, take_rows

NONE = -1


def naive_take(order: list[int], who: list[int], codes: list[int], most_items: int, most_keys: int) -> list[int]:
    """A row counts if it is one of the first of its person and key, and its key one of the person's first."""
    rows: dict[tuple[int, int], int] = {}
    kept = [NONE] * len(who)
    for i in order:
        person, code = who[i], codes[i]
        theirs = {key for owner, key in rows if owner == person}
        if code >= 0 and (code in theirs or len(theirs) < most_keys) and rows.get((person, code), 0) < most_items:
            rows[person, code] = rows.get((person, code), 0) + 1
            kept[i] = code
    return kept


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4)), min_size=1, max_size=60),
    st.integers(1, 3),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_take_rows__keeps_what_the_limits_allow_and_return_rows_takes_all_of_it_back(
    rows: list[tuple[int, int]], most_items: int, most_keys: int, random: object
) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    who, codes = (np.array(column) for column in zip(*rows, strict=True))
    tallies, keys = np.zeros((4, most_keys), dtype=np.int64), np.full((4, most_keys), NONE, dtype=np.int32)
    kept = np.full(len(rows), NONE, dtype=np.int32)
    take_rows(np.array(order), who, codes.astype(np.int32), tallies, keys, most_items, kept)
    assert kept.tolist() == naive_take(order, who.tolist(), codes.tolist(), most_items, most_keys)
    assert tallies.sum() == (kept >= 0).sum()
    return_rows(who, kept, tallies, keys)
    assert not tallies.any()
    assert (keys == NONE).all()


def test_take_rows__without_a_limit_of_keys_a_person_has_one_tally() -> None:
    who, codes = np.array([0, 0, 0, 1]), np.array([5, 7, 9, 5], dtype=np.int32)
    tallies, keys = np.zeros((2, 1), dtype=np.int64), np.empty((2, 0), dtype=np.int32)
    kept = np.full(4, NONE, dtype=np.int32)
    take_rows(np.arange(4), who, codes, tallies, keys, 2, kept)
    assert (kept.tolist(), tallies.ravel().tolist()) == ([5, 7, NONE, 5], [2, 1])
    return_rows(who, kept, tallies, keys)
    assert not tallies.any()
