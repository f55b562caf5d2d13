"""Several columns as the key: equal to a dictionary of tuples; declared in any shape, or added as they come."""

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal import ItemError, ItemTypeError, ParameterError, ParameterTypeError
from dpfrugal.keys.columns import NULL, KeyColumns

KEYS = [("de", 1), ("at", 1), ("de", 2)]
NAMES = ["country", "size"]
ROWS = pa.table({"country": ["at", "de", "ch", "de", None], "size": [1, 2, 1, 3, 1]})
COLUMNS = [pa.table({"country": [a for a, _ in KEYS], "size": [b for _, b in KEYS]})]

SHAPES: dict[str, Any] = {
    "tuples": KEYS,
    "lists": [list(key) for key in KEYS],
    "arrow": COLUMNS[0],
    "arrow in another order": COLUMNS[0].select(["size", "country"]),
    "pandas": COLUMNS[0].to_pandas(),
    "polars": pl.from_arrow(COLUMNS[0]),
    "mapping": COLUMNS[0].to_pydict(),
    "more columns": COLUMNS[0].append_column("other", pa.array([1, 2, 3])),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_key_columns__declare_keys_of_several_columns(shape: str) -> None:
    keys = KeyColumns(NAMES, SHAPES[shape])
    assert keys.codes([ROWS[name].chunk(0) for name in NAMES], "drop").tolist() == [1, 2, -1, -1, NULL]
    assert pa.table(keys.columns()).to_pylist() == COLUMNS[0].to_pylist()
    assert (keys.code(("at", 1)), keys.code(("at", 2)), keys.code(("at", None))) == (1, -1, -1)


@settings(max_examples=80)
@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), unique=True, min_size=1, max_size=20),
    st.lists(st.tuples(*[st.none() | st.integers(0, 4)] * 3), max_size=30),
    st.booleans(),
)
def test_key_columns__equal_a_dictionary_of_tuples(keys: list[Any], rows: list[Any], text: bool) -> None:
    def columns(several: list[Any]) -> list[Any]:
        kind = pa.string() if text else pa.int64()
        return [pa.array([row[k] for row in several], pa.int64()).cast(kind) for k in range(3)]

    declared = KeyColumns(["a", "b", "c"], dict(zip("abc", columns(keys), strict=True)))
    known = {key: code for code, key in enumerate(keys)}
    expected = [NULL if None in row else known.get(row, -1) for row in rows]
    assert declared.codes(columns(rows), "drop").tolist() == expected
    growing, firsts = KeyColumns(["a", "b", "c"]), list(dict.fromkeys(row for row in rows if None not in row))
    for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        found = growing.codes(columns(part), "drop").tolist()
        assert found == [NULL if None in row else firsts.index(row) for row in part]
    shown = growing.columns()
    if firsts:
        assert [tuple(map(int, row)) for row in zip(*(shown[k].to_pylist() for k in "abc"), strict=True)] == firsts


@pytest.mark.parametrize("null_keys", ["raise", "drop"])
def test_key_columns__find_nulls_in_dictionaries_too(null_keys: Any) -> None:
    entries = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["de", None]))
    keys = KeyColumns(["country"], ["de"])
    if null_keys == "drop":
        assert keys.codes([entries], "drop").tolist() == [0, NULL, NULL]
    else:
        with pytest.raises(ItemError, match="null keys"):
            keys.codes([entries])


def test_key_columns__of_one_column_are_a_batch_of_keys_or_a_table() -> None:
    for keys in (["de", "at"], pa.array(["de", "at"]), pd.DataFrame({"country": ["de", "at"]})):
        assert KeyColumns(["country"], keys).columns()["country"].to_pylist() == ["de", "at"]


def test_key_columns__refuse_in_sentences_without_a_key() -> None:
    with pytest.raises(ParameterError, match="same key twice"):
        KeyColumns(NAMES, [*KEYS, ("at", 1)])
    with pytest.raises(ParameterError, match="must not hold nulls"):
        KeyColumns(NAMES, [("at", None), ("de", 1)])
    with pytest.raises(ParameterError, match="at least one key"):
        KeyColumns(NAMES, [])
    with pytest.raises(ParameterError, match="'size' is not among them"):
        KeyColumns(NAMES, pd.DataFrame({"country": ["de"]}))
    for wrong in (["de", "at"], [("de",)], "de", 7):
        with pytest.raises(ParameterTypeError, match="list of tuples of 2"):
            KeyColumns(NAMES, wrong)
    with pytest.raises(ParameterTypeError, match="floating-point"):
        KeyColumns(NAMES, [("de", 1.5)])
    with pytest.raises(ItemTypeError, match="must be integers, as declared"):
        KeyColumns(NAMES, KEYS).codes([pa.array(["de"]), pa.array(["1"])])
    with pytest.raises(ItemError, match="max_keys=2"):
        KeyColumns(NAMES, max_keys=2).codes([pa.array(["a", "a", "a"]), pa.array([1, 2, 3])])
