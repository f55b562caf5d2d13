"""Compiled look-ups equal a dictionary, stop where there is no room, and read no byte beside a key."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.kernels import find_keys
from dpfrugal.kernels.bit_layout import LONGEST_KEY
from dpfrugal.kernels.find_keys import UNKNOWN

POINT, SEAL = np.uint64(123456789), np.uint64(987654321)
# Few different keys, so that they repeat; lengths around the 7 and 8 bytes that are read at once.
texts = st.lists(st.text("ab", max_size=18).map(str.encode), min_size=1, max_size=200)
numbers = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=200)


@pytest.fixture(autouse=True)
def _wrapping_arithmetic() -> object:
    """Without the compiler, numpy warns where hashes wrap."""
    with np.errstate(over="ignore"):
        yield


def arrow(
    keys: Sequence[bytes], before: bytes = b"", after: bytes = b""
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets and bytes, with other bytes on both sides."""
    offsets = len(before) + np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return offsets, np.frombuffer(before + b"".join(keys) + after, dtype=np.uint8)


class Table:
    """The arrays of a table of strings with room for so many keys and bytes."""

    def __init__(self, keys: int, room: int) -> None:
        slots = 1 << (2 * keys - 1).bit_length()
        self.table = np.zeros((slots, 2), dtype=np.uint64)
        self.arena = np.zeros(room, dtype=np.uint8)
        self.ends = np.zeros(keys + 2, dtype=np.int64)
        self.size = self.used = 0

    def add(self, keys: Sequence[bytes]) -> tuple[int, list[int]]:
        codes = np.full(len(keys), UNKNOWN, dtype=np.int32)
        row, self.size, self.used = find_keys.add_strings(
            *arrow(keys), self.table, self.arena, POINT, SEAL, codes, 0, self.size, self.used, self.ends
        )
        return int(row), codes.tolist()

    def find(self, keys: Sequence[bytes], before: bytes = b"", after: bytes = b"") -> list[int]:
        codes = np.empty(len(keys), dtype=np.int32)
        find_keys.find_strings(*arrow(keys, before, after), self.table, self.arena, POINT, SEAL, codes)
        return codes.tolist()


def first_seen(keys: Sequence[object]) -> dict[object, int]:
    return {key: code for code, key in enumerate(dict.fromkeys(keys))}


@settings(max_examples=60)
@given(texts, texts)
def test_find_strings__has_the_codes_of_a_dictionary(keys: list[bytes], others: list[bytes]) -> None:
    known, table = first_seen(keys), Table(len(keys), sum(map(len, keys)))
    assert table.add(keys) == (len(keys), [known[key] for key in keys])
    assert table.find(others) == [known.get(key, UNKNOWN) for key in others]
    ends = table.ends.tolist()
    stored = [table.arena.tobytes()[first:last] for first, last in itertools.pairwise(ends[: table.size + 1])]
    assert stored == list(known)


@settings(max_examples=30)
@given(texts, st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8))
def test_find_strings__ignores_the_bytes_beside_a_key(keys: list[bytes], before: bytes, after: bytes) -> None:
    table = Table(len(keys), sum(map(len, keys)))
    _, codes = table.add(keys)
    assert table.find(keys, before, after) == codes
    assert table.find(keys[:1], after, before) == codes[:1]


@settings(max_examples=60)
@given(st.binary(max_size=30), st.data())
def test_same_bytes__is_equality(one: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(one)))
    other = one[:place] + bytes([one[place] ^ 1]) + one[place + 1 :] if place < len(one) else one
    first, second = np.frombuffer(b"x" + one, dtype=np.uint8), np.frombuffer(b"yz" + other, dtype=np.uint8)
    same = find_keys.same_bytes(first, np.uint64(1), second, np.uint64(2), np.uint64(len(one)))
    assert bool(same) == (one == other)


@pytest.mark.parametrize(("most_keys", "room"), [(3, 1000), (1000, 9)])
def test_add_strings__stops_at_the_first_key_without_room(most_keys: int, room: int) -> None:
    table = Table(most_keys, room)
    table.table = np.zeros((8 if most_keys == 3 else 2048, 2), dtype=np.uint64)
    row, codes = table.add([b"aaa", b"bbb", b"aaa", b"ccc", b"ddd", b"eee", b"fff"])
    assert codes[:row] == [0, 1, 0, 2, 3][:row]
    assert codes[row:] == [UNKNOWN] * (7 - row)
    assert (row, table.size) == ((5, 4) if most_keys == 3 else (4, 3))
    assert table.find([b"ccc", b"fff"]) == [2, UNKNOWN]


def test_add_strings__leaves_a_key_that_is_too_long_unknown() -> None:
    table = Table(4, 2 * LONGEST_KEY)
    assert table.add([b"a" * LONGEST_KEY, b"b" * (LONGEST_KEY + 1), b"c"])[1] == [0, UNKNOWN, 1]


@settings(max_examples=30)
@given(texts)
def test_place_strings__fills_another_table_with_the_same_keys(keys: list[bytes]) -> None:
    table = Table(len(keys), sum(map(len, keys)))
    _, codes = table.add(keys)
    table.table = np.zeros((4 * table.table.shape[0], 2), dtype=np.uint64)
    find_keys.place_strings(table.table, table.arena, table.ends, table.size, POINT, SEAL)
    assert table.find(keys) == codes


@settings(max_examples=60)
@given(numbers, numbers)
def test_find_integers__has_the_codes_of_a_dictionary(keys: list[int], others: list[int]) -> None:
    known = first_seen(keys)
    table, values = np.zeros((512, 2), dtype=np.int64), np.empty(256, dtype=np.int64)
    codes, found = np.full(len(keys), UNKNOWN, dtype=np.int32), np.empty(len(others), dtype=np.int32)
    row, size = find_keys.add_integers(np.array(keys), table, SEAL, codes, 0, 0, values)
    assert (row, codes.tolist(), values[:size].tolist()) == (len(keys), [known[key] for key in keys], list(known))
    find_keys.find_integers(np.array(others), table, SEAL, found)
    assert found.tolist() == [known.get(key, UNKNOWN) for key in others]


def test_add_integers__stops_at_the_first_key_without_room() -> None:
    codes = np.full(4, UNKNOWN, dtype=np.int32)
    table, values = np.zeros((64, 2), dtype=np.int64), np.empty(2, dtype=np.int64)
    assert find_keys.add_integers(np.array([5, 5, 6, 7]), table, SEAL, codes, 0, 0, values) == (3, 2)
    assert codes.tolist() == [0, 0, 1, UNKNOWN]


@pytest.mark.parametrize("lowest", [-(2**63), -2, 2**63 - 4])
def test_look_up__knows_a_dense_range_and_nothing_beside_it(lowest: int) -> None:
    direct = np.array([4, UNKNOWN, 0, 7], dtype=np.int32)
    keys = [lowest, lowest + 1, lowest + 2, lowest + 3, 2**63 - 1 if lowest < 0 else -(2**63), 5]
    codes = np.empty(6, dtype=np.int32)
    find_keys.look_up(np.array(keys), lowest, direct, codes)
    assert codes.tolist() == [4, UNKNOWN, 0, 7, UNKNOWN, UNKNOWN]


def test_count_codes__adds_to_counts_and_skips_unknown_rows() -> None:
    counts = np.array([10, 0, 0], dtype=np.int64)
    find_keys.count_codes(np.array([0, 2, UNKNOWN, 2], dtype=np.int32), counts)
    assert counts.tolist() == [11, 0, 2]
