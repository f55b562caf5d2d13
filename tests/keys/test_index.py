"""The key index: every kind of key, equal to a dictionary's look-up; refusals in one sentence, without a key in it."""

import datetime
import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal import ItemError, ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.keys.index import KeyIndex

WORDS = ["", "a", "b", "äöü", "/home", "/search", "/pay", "1234567", "12345678", "123456789abcd", "x" * 200]
ROWS = ["/pay", "", "nobody", "12345678", "x" * 200, "x" * 199, "a", "a", "äöü", "123456789abce", "123456789abcd"]
DAYS = [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(2030, 1, 1)]


def oracle(keys: list[Any], rows: list[Any]) -> list[int]:
    return [keys.index(row) if row in keys else -1 for row in rows]


STRING_SHAPES = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy objects": lambda rows: np.array(rows, dtype=object),
    "pandas": pd.Series,
    "pandas objects": lambda rows: pd.Series(rows, dtype=object),
    "pandas category": lambda rows: pd.Series(rows, dtype="category"),
    "pandas index": pd.Index,
    "polars": pl.Series,
    "polars categorical": lambda rows: pl.Series(rows, dtype=pl.Categorical),
    "arrow": pa.array,
    "arrow large": lambda rows: pa.array(rows, pa.large_string()),
    "arrow view": lambda rows: pa.array(rows, pa.string_view()),
    "arrow dictionary": lambda rows: pa.array(rows).dictionary_encode(),
    "arrow slice": lambda rows: pa.array(["before", *rows, "after"])[1:-1],
    "arrow view slice": lambda rows: pa.array(["x" * 30, *rows], pa.string_view())[1:],
    "arrow chunks": lambda rows: pa.chunked_array([rows[:3], rows[3:3], rows[3:]], pa.string()),
    "dictionary chunks": lambda rows: pa.chunked_array([rows[:3], rows[3:]], pa.string()).dictionary_encode(),
    "generator": lambda rows: (row for row in rows),
}


@pytest.mark.parametrize("declared", STRING_SHAPES)
def test_key_index__declares_strings_in_any_shape(declared: str) -> None:
    index = KeyIndex(STRING_SHAPES[declared](WORDS))
    assert index.size == len(WORDS)
    assert index.keys.to_pylist() == WORDS
    assert index.codes(ROWS).tolist() == oracle(WORDS, ROWS)


@pytest.mark.parametrize("shape", STRING_SHAPES)
def test_key_index__looks_up_strings_in_any_shape(shape: str) -> None:
    codes = KeyIndex(WORDS).codes(STRING_SHAPES[shape](ROWS))
    assert codes.dtype == np.int32
    assert codes.tolist() == oracle(WORDS, ROWS)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("keys", [[3, 1, 2, 100], [5, -(2**62), 2**62, 7]], ids=["dense", "sparse"])
def test_key_index__takes_integers_of_every_width(dtype: str, keys: list[int]) -> None:
    rows = np.array([0, 1, 2, 3, 5, 7, 100, 101, 127], dtype=dtype)
    for batch in (rows, pa.array(rows), pd.Series(rows), pl.Series(rows), rows.tolist(), rows[::-1][::-1]):
        assert KeyIndex(keys).codes(batch).tolist() == oracle(keys, rows.tolist())
    assert KeyIndex(keys).codes(np.array([3, 2, 1], dtype=">i4")).tolist() == oracle(keys, [3, 2, 1])


def test_key_index__takes_integers_beyond_64_bits_and_of_both_signs() -> None:
    high = [2**63 + 5, 7, 2**64 - 1]
    unsigned = KeyIndex(high)
    assert unsigned.keys.to_pylist() == high
    assert unsigned.codes(np.array([7, 2**64 - 1, 8], dtype=np.uint64)).tolist() == [1, 2, -1]
    assert unsigned.codes([-1, 7]).tolist() == [-1, 1]  # as 64 bits, -1 and 2**64 - 1 are the same
    assert KeyIndex([-1, 7]).codes(np.array([2**64 - 1, 7], dtype=np.uint64)).tolist() == [-1, 1]
    wide = [2**70, -3, 5]
    assert KeyIndex(wide).codes([5, 2**70, -(2**70)]).tolist() == [2, 0, -1]


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_key_index__equals_a_dictionary_for_any_integers(keys: list[int], others: list[int]) -> None:
    rows = keys[::2] + others + keys[::-1]
    assert KeyIndex(keys).codes(np.array(rows, dtype=np.int64)).tolist() == oracle(keys, rows)


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=40), min_size=1, unique=True), st.lists(st.binary(max_size=40)))
def test_key_index__equals_a_dictionary_for_any_bytes(keys: list[bytes], others: list[bytes]) -> None:
    rows = keys[::2] + others + keys[::-1] + [key + b"\0" for key in keys] + [key[:-1] for key in keys]
    assert KeyIndex(keys).codes(rows).tolist() == oracle(keys, rows)
    assert KeyIndex(pa.array(keys, pa.binary_view())).codes(pa.array(rows, pa.binary_view())).tolist() == oracle(
        keys, rows
    )


def test_key_index__takes_other_kinds_of_key() -> None:
    assert KeyIndex([True, False]).codes(np.array([False, True, True])).tolist() == [1, 0, 0]
    assert KeyIndex(DAYS).codes(pa.array([*DAYS, DAYS[0]], pa.date64())).tolist() == [0, 1, 2, 0]
    assert KeyIndex(pa.array([b"ab", b"cd"], pa.binary(2))).codes([b"cd", b"abc"]).tolist() == [1, -1]
    pairs = [("AA", "JFK"), ("UA", "SFO")]
    assert KeyIndex(pairs).codes([pairs[1], ("UA", "JFK"), pairs[0]]).tolist() == [1, -1, 0]
    assert KeyIndex(pairs).keys.to_pylist() == [list(pair) for pair in pairs]
    ids = [uuid.UUID(int=1), uuid.UUID(int=2)]
    assert KeyIndex(ids).codes([ids[1]]).tolist() == [1]
    mixed = KeyIndex(["a", 1])
    assert mixed.codes([1, "a", "1"]).tolist() == [1, 0, -1]
    assert mixed.codes(["a", "b"]).tolist() == [0, -1]
    assert mixed.keys.to_pylist() == ["a", "1"]


def test_key_index__takes_an_instant_in_every_unit_for_the_same() -> None:
    instants = [datetime.datetime(2024, 1, 1, 12), datetime.datetime(1960, 1, 1)]
    for home in ("s", "ms", "us", "ns"):
        index = KeyIndex(pa.array(instants, pa.timestamp(home)))
        assert index.keys.to_pylist() == instants
        for unit in ("s", "ms", "us", "ns"):
            assert index.codes(pa.array(instants[::-1], pa.timestamp(unit))).tolist() == [1, 0]
    seconds = KeyIndex(pa.array(instants, pa.timestamp("s")))
    assert seconds.codes([instants[0] + datetime.timedelta(milliseconds=1)]).tolist() == [-1]
    assert KeyIndex(pa.array([1], pa.timestamp("ns"))).codes(pa.array([2**62], pa.timestamp("s"))).tolist() == [-1]
    assert seconds.codes(np.array(["2024-01-01T12", "2024-01-02"], dtype="M8[s]")).tolist() == [0, -1]


NULLS = [
    ["a", None, "b"],
    np.array(["a", None, "b"], dtype=object),
    pa.array(["a", None, "b"]),
    pa.array(["a", None, "b"], pa.string_view()),
    pa.array(["a", None, "b"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays([0, 1, 2], pa.array(["a", None, "b"])),
    pd.Series(["a", None, "b"]),
    pd.Series(["a", float("nan"), "b"], dtype=object),
    pd.Series(["a", pd.NA, "b"], dtype=object),
    pl.Series(["a", None, "b"]),
    pl.Series(["a", None, "b"], dtype=pl.Categorical),
]


@pytest.mark.parametrize("batch", NULLS, ids=lambda batch: type(batch).__name__)
def test_key_index__refuses_or_drops_null_keys(batch: Any) -> None:
    index = KeyIndex(["a", "b"])
    with pytest.raises(ItemError, match="null keys"):
        index.codes(batch)
    assert index.codes(batch, null_keys="drop").tolist() == [0, -1, 1]
    assert KeyIndex([1, 2]).codes(pa.array([2, None], pa.int64()), "drop").tolist() == [1, -1]
    assert KeyIndex([(1, "a")]).codes([(1, "a"), None], "drop").tolist() == [0, -1]
    masked = np.ma.MaskedArray([1, 2], mask=[True, False])
    assert KeyIndex([1, 2]).codes(masked, "drop").tolist() == [-1, 1]
    assert index.codes(pa.nulls(3), "drop").tolist() == [-1, -1, -1]


def test_key_index__ignores_a_null_in_a_dictionary_that_no_row_uses() -> None:
    batch = pa.DictionaryArray.from_arrays([0, 2, 0, 0], pa.array(["a", None, "b"]))
    assert KeyIndex(["b", "a"]).codes(batch).tolist() == [1, 0, 1, 1]


def test_key_index__tells_apart_two_dictionaries_at_one_address() -> None:
    index = KeyIndex(WORDS)
    for turn in range(50):
        words = [WORDS[(turn + k) % len(WORDS)] for k in range(4)]
        batch = pa.DictionaryArray.from_arrays(pa.array([3, 2, 1, 0, 3, 3]), pa.array(words))
        assert index.codes(batch).tolist() == [WORDS.index(words[k]) for k in (3, 2, 1, 0, 3, 3)]
        assert index.codes(batch).tolist() == [WORDS.index(words[k]) for k in (3, 2, 1, 0, 3, 3)]


def test_key_index__looks_up_a_large_dictionary_that_comes_again_once() -> None:
    index, dictionary = KeyIndex(WORDS), pa.array([*WORDS[::-1], "of no key"])
    for turn in range(5):
        places = [turn % len(WORDS), len(WORDS), 0]
        batch = pa.DictionaryArray.from_arrays(pa.array(places), dictionary)
        assert index.is_settled_for(batch) is (turn > 1)
        assert index.codes(batch).tolist() == [len(WORDS) - 1 - places[0], -1, len(WORDS) - 1]


@pytest.mark.parametrize(
    "empty", [[], np.array([], dtype=np.int64), pa.array([], pa.string()), pl.Series([], dtype=int)]
)
def test_key_index__gives_no_codes_for_an_empty_batch(empty: Any) -> None:
    keys = ["a"] if getattr(empty, "type", None) == pa.string() else [1]
    codes = KeyIndex(keys).codes(empty)
    assert codes.size == 0
    assert codes.dtype == np.int32


@pytest.mark.parametrize(
    ("keys", "batch"),
    [
        (["a"], [1]),
        ([1], ["secret"]),
        ([1], [True]),
        ([True], [1]),
        (["a"], [b"a"]),
        (DAYS, [datetime.datetime(2024, 1, 1)]),
        ([datetime.datetime(2024, 1, 1)], [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]),
        (["a"], pa.array([1]).dictionary_encode()),
        (["a"], [("secret", 1)]),
        ([("a", 1)], ["secret"]),
        ([1], [1.0]),
        ([1], pd.Series([1.0, None])),
        ([1], pa.array([1.5])),
        (["a"], [["secret"]]),
        (["a"], [{"secret"}]),
        (["a"], pa.array([["secret"]])),
        (["a"], ["\ud800"]),
        (["a"], ["a", 1]),
        (["a"], np.array([1j])),
        (["a"], "secret"),
        (["a"], 5),
    ],
)
def test_key_index__refuses_another_kind_of_key(keys: list[Any], batch: Any) -> None:
    index = KeyIndex(keys)
    with pytest.raises(ItemTypeError) as refusal:
        index.codes(batch)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__
    assert index.codes(keys).tolist() == list(range(len(keys)))


def test_key_index__refuses_two_dimensions() -> None:
    for batch in (np.zeros((2, 2), dtype=int), pa.table({"a": [1]}), pd.DataFrame({"a": [1]})):
        with pytest.raises(ItemError, match="one-dimensional"):
            KeyIndex([1]).codes(batch)


@pytest.mark.parametrize(
    ("keys", "error", "sentence"),
    [
        (["a", "b", "a"], ParameterError, "same key twice"),
        ([1, 2, 1], ParameterError, "same key twice"),
        ([1, True], ParameterError, "same key twice"),
        (["a", None], ParameterError, "nulls"),
        (pa.nulls(2), ParameterError, "nulls"),
        ([], ParameterError, "empty"),
        ([["x"]], ParameterTypeError, "list is not hashable"),
        ([("x", []), ("y", [])], ParameterTypeError, "not hashable"),
        ([0.5], ParameterTypeError, "floating-point"),
        (np.array([0.5]), ParameterTypeError, "floating-point"),
        ("abc", ParameterTypeError, "not str"),
        ({"a": 1}, ParameterTypeError, "not dict"),
        (np.zeros((2, 2), dtype=int), ParameterError, "one-dimensional"),
        (["x" * 2**20], ParameterError, "longer"),
    ],
)
def test_key_index__refuses_bad_declarations(keys: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        KeyIndex(keys)


def test_key_index__refuses_more_keys_than_memory_was_declared_for() -> None:
    assert KeyIndex(range(5), max_keys=5).size == 5
    with pytest.raises(ParameterError, match="max_keys=4"):
        KeyIndex(range(5), max_keys=4)
    for wrong, error in ((0, ParameterError), (2**31, ParameterError), (True, ParameterTypeError)):
        with pytest.raises(error, match="max_keys"):
            KeyIndex([1], max_keys=wrong)


def test_key_index__grows_as_keys_come_and_forgets_them_again() -> None:
    for keys in ([f"key {k}" for k in range(5000)], list(range(0, 5000 * 7**9, 7**9)), [(k, "x") for k in range(500)]):
        index = KeyIndex(max_keys=len(keys))
        assert index.codes(keys[:100]).tolist() == list(range(100))
        assert index.codes(keys[::-1]).tolist() == grown_backwards(len(keys), 100)
        with pytest.raises(ItemError, match="max_keys"):
            index.codes(["another"] if isinstance(keys[0], str) else [-1] if isinstance(keys[0], int) else [(-1, "x")])
        assert index.size == len(keys)
        index.forget(50)
        assert index.size == 50
        assert index.codes(keys[49:51]).tolist() == [49, 50]
        assert index.keys.to_pylist()[:50] == KeyIndex(keys[:50]).keys.to_pylist()


def test_key_index__leaves_the_kind_of_keys_open_after_a_refused_first_batch() -> None:
    index = KeyIndex()
    index.codes(["a", "b"])
    index.forget(0)
    assert (index.size, index.kind) == (0, None)
    assert index.codes([5, 6, 5]).tolist() == [0, 1, 0]


def grown_backwards(size: int, known: int) -> list[int]:
    """Codes of all keys backwards, where the first ``known`` have theirs: the rest get theirs as they come."""
    return [k if k < known else size - 1 - k + known for k in range(size - 1, -1, -1)]
