"""Hash tables of keys: no collision merges two keys, and none can be made on purpose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.kernels import find_keys
from dpfrugal.kernels.bit_layout import PRIME
from dpfrugal.keys import hash_tables
from dpfrugal.keys.arrays import Strings, Views, strings_of, views_of
from dpfrugal.keys.index import KeyIndex


def test_string_table__does_not_merge_keys_whose_hashes_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the point 0 the polynomial is its last seven bytes: keys that differ before them collide in all 64 bits."""
    table = hash_tables.StringTable()
    table._point = np.uint64(0)
    index = KeyIndex()
    keys = [f"{k:07d}same-en" for k in range(300)]
    index.codes(["x"])
    monkeypatch.setattr(index, "_table", table)
    assert index.codes(keys).tolist() == list(range(300))
    assert index.codes(keys[::-1]).tolist() == list(range(299, -1, -1))
    hashes = {hash_of(key.encode(), 0, 1) for key in keys}
    assert len(hashes) == 1  # the leg that must fail: hashes alone cannot tell them apart
    assert len({hash_of(key.encode(), 12345, 1) for key in keys}) == 300


def hash_of(text: bytes, point: int, seal: int) -> int:
    """The hash as the docstring of ``kernels.find_keys`` has it."""
    total, rest = len(text), text
    while rest:
        total = (total * point + int.from_bytes(rest[:7], "little")) % PRIME
        rest = rest[7:]
    from dpfrugal.kernels.coins import mix64

    return mix64(total ^ seal)


@settings(max_examples=100)
@given(st.binary(max_size=70), st.integers(1, PRIME - 1), st.integers(0, 2**64 - 1))
def test_string_hash__is_the_polynomial(text: bytes, point: int, seal: int) -> None:
    data = np.frombuffer(text, dtype=np.uint8)
    with np.errstate(over="ignore"):
        found = find_keys.string_hash(data, np.uint64(0), np.uint64(len(text)), np.uint64(point), np.uint64(seal))
    assert int(found) == hash_of(text, point, seal)


def test_integer_table__spreads_keys_that_are_made_to_collide() -> None:
    """Multiples of a power of two share a slot of any table that takes the low bits of the key itself."""
    keys = np.arange(20_000, dtype=np.int64) << 40
    table = hash_tables.IntegerTable()
    table.codes(keys, grow=True)
    homes = np.flatnonzero(table._table[:, 0])
    assert table.size == keys.size
    # Runs of full slots stay short: with a load of at most a half, one of 400 has a chance below 1e-9.
    gaps = np.diff(np.flatnonzero(table._table[:, 0] == 0))
    assert homes.size == keys.size
    assert gaps.max() < 400


def strings(keys: list[str]) -> Strings:
    return strings_of(pa.array(keys, pa.large_string()))


TABLES: dict[str, tuple[Callable[[], Any], Callable[[list[int]], Any]]] = {
    "strings": (hash_tables.StringTable, lambda keys: strings([f"key {key}" for key in keys])),
    "integers": (hash_tables.IntegerTable, lambda keys: np.array(keys, dtype=np.int64)),
    "objects": (hash_tables.ObjectTable, lambda keys: [(key, "x") for key in keys]),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("distance", [1, 10**12])
@settings(max_examples=30)
@given(data=st.data())
def test_tables__give_codes_in_the_order_in_which_keys_come(kind: str, distance: int, data: st.DataObject) -> None:
    make, part_of = TABLES[kind]
    table, known = make(), dict[int, int]()
    for batch in data.draw(st.lists(st.lists(st.integers(0, 500), max_size=200), max_size=4)):
        keys = [key * distance for key in batch]
        assert table.codes(part_of(keys)).tolist() == [known.get(key, -1) for key in keys]
        for key in keys:
            known.setdefault(key, len(known))
        assert table.codes(part_of(keys), grow=True).tolist() == [known[key] for key in keys]
        assert table.size == len(known)
    kept = data.draw(st.integers(0, len(known)))
    table.forget(kept)
    assert table.size == kept
    assert table.codes(part_of(list(known))).tolist() == [code if code < kept else -1 for code in known.values()]
    table.settle()
    assert table.codes(part_of(list(known))).tolist() == [code if code < kept else -1 for code in known.values()]
    assert table.nbytes > 0


def test_tables__hold_the_keys_that_they_were_given() -> None:
    numbers, objects, words = hash_tables.IntegerTable(), hash_tables.ObjectTable(), hash_tables.StringTable()
    numbers.codes(np.array([5, -3, 5, 2**62]), grow=True)
    objects.codes([("a",), ("b",), ("a",)], grow=True)
    words.codes(strings(["x", "", "yz", "x"]), grow=True)
    assert numbers.content.tolist() == [5, -3, 2**62]
    assert objects.content == [("a",), ("b",)]
    ends, text = words.content
    assert (ends.tolist(), text.tobytes()) == ([0, 1, 1, 3], b"xyz")


def test_integer_table__is_direct_where_keys_are_dense() -> None:
    table = hash_tables.IntegerTable()
    table.codes(np.arange(100, 300), grow=True)
    table.settle()
    assert table.codes(np.array([99, 100, 299, 300, -(2**63), 2**63 - 1])).tolist() == [-1, 0, 199, -1, -1, -1]


def viewed(keys: list[str], layout: list[int]) -> Any:
    """Keys as Arrow's views, from Polars: ``layout`` says which key each row has."""
    polars = pytest.importorskip("polars")
    return pa.chunked_array(polars.Series(keys).gather(layout)).chunks[0]


@settings(max_examples=40)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=40, unique=True), st.data())
def test_string_table__finds_views_as_it_finds_strings(keys: list[str], data: st.DataObject) -> None:
    """Short strings that views hold themselves, long ones in buffers, and slices of both."""
    rows = data.draw(st.lists(st.integers(0, len(keys) - 1), min_size=1, max_size=300))
    array = viewed(keys, rows)
    array = array.slice(data.draw(st.integers(0, len(array) - 1)))
    known = data.draw(st.integers(0, len(keys)))
    table = hash_tables.StringTable()
    table.codes(strings(keys[:known]), grow=True)
    views = views_of(array)
    assert views is not None
    expected = table.codes(strings_of(array))
    assert table.codes(views).tolist() == expected.tolist()
    assert [keys[code] for code in expected if code >= 0] == [key for key in array.to_pylist() if key in keys[:known]]
    grown = table.codes(views, grow=True)
    assert {table.codes(strings([key]))[0] for key in array.to_pylist()} == set(grown.tolist())


def test_string_table__reads_views_from_one_buffer_after_another_and_scattered(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"a name of more than twelve bytes, number {k:06d}" for k in range(3_000)]
    array = viewed(keys, list(range(3_000)))
    assert len(array.buffers()) > 5  # of which two are not strings
    table = hash_tables.StringTable()
    table.codes(strings(keys), grow=True)
    in_order = views_of(array)
    scattered = views_of(viewed(keys, [k * 1_787 % 3_000 for k in range(3_000)]))
    assert in_order is not None
    assert scattered is not None
    copied = list[slice]()

    def plain(self: Views, rows: slice) -> Strings:
        copied.append(rows)
        return strings_of(self.array[rows])

    monkeypatch.setattr(Views, "plain", plain)
    assert table.codes(in_order).tolist() == list(range(3_000))
    assert copied == []  # no copy
    assert table.codes(scattered).tolist() == [k * 1_787 % 3_000 for k in range(3_000)]
    assert len(copied) == 1  # one, and not a call for every row
