"""Whatever holds keys comes as the same Arrow arrays, in order; what is no key is refused by its kind."""

import datetime
import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.keys.arrays import has_type, in_order, is_null, kind_of, parts, strings_of, views_of, without_views

NAMES = ["b", "", "a", "b"]
DATE = datetime.date(2024, 2, 29)
TIME = datetime.datetime(2024, 2, 29, 12)


def keys_of(batch: Any) -> list[Any]:
    return [key for part in parts(batch) for key in (part if isinstance(part, list) else part.to_pylist())]


BATCHES: dict[str, Any] = {
    "list": NAMES,
    "tuple": tuple(NAMES),
    "generator": (name for name in NAMES),
    "numpy": np.array(NAMES),
    "numpy of objects": np.array(NAMES, dtype=object),
    "pandas": pd.Series(NAMES),
    "polars": pl.Series(NAMES),
    "arrow": pa.array(NAMES),
    "arrow, chunked": pa.chunked_array([NAMES[:1], [], NAMES[1:]]),
    "arrow, a part": pa.array(["x", *NAMES, "y"]).slice(1, 4),
    "arrow, a dictionary": pa.array(NAMES).dictionary_encode(),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_parts__have_the_keys_of_every_container_in_order(batch: Any) -> None:
    assert keys_of(batch) == NAMES


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ([1, -2], "integers"),
        ([2**63, 0], "integers"),
        (NAMES, "strings"),
        ([b"\xff", b""], "bytes"),
        ([True, False], "truth values"),
        ([DATE], "dates"),
        ([TIME], "timestamps"),
        ([TIME.replace(tzinfo=datetime.UTC)], "timestamps with a time zone"),
        ([None, None], None),
    ],
)
def test_kind_of__names_what_keys_are(keys: list[Any], kind: str | None) -> None:
    (part,) = parts(keys)
    assert kind_of(part.type) == kind
    assert part.to_pylist() == keys
    encoded = part.dictionary_encode() if kind else part
    assert kind_of(encoded.type) == kind


@pytest.mark.parametrize("keys", [[(1, 2), "a"], [1, True], [2**64], [1, "a"], [DATE, TIME], [frozenset()]])
def test_parts__leave_objects_that_arrow_has_no_type_for_in_a_list(keys: list[Any]) -> None:
    assert list(parts(keys)) == [keys]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_parts__take_every_kind_of_missing_key_for_null(missing: Any) -> None:
    assert is_null(missing)
    (part,) = parts(["a", missing])
    assert part.to_pylist() == ["a", None]


@pytest.mark.parametrize("key", [0, "", b"", False, "nan", (), 0.5])
def test_is_null__is_false_for_keys_that_are_merely_empty(key: Any) -> None:
    assert not is_null(key)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        ("one string", ItemTypeError),
        (b"bytes", ItemTypeError),
        ({"a": 1}, ItemTypeError),
        (7, ItemTypeError),
        ([0.5], ItemTypeError),
        ([np.float32(31337)], ItemTypeError),
        (np.array([31337.0]), ItemTypeError),
        (np.array([1j]), ItemTypeError),
        (np.zeros((2, 2), dtype=int), ItemError),
        (pd.DataFrame({"a": [31337]}), ItemError),
        (pl.DataFrame({"a": [31337]}), ItemError),
    ],
)
def test_parts__refuse_what_holds_no_keys_and_show_none_of_it(batch: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as refused:
        list(parts(batch))
    assert str(refused.value).startswith("keys must ")
    assert "31337" not in str(refused.value)


@pytest.mark.parametrize("arrow_type", [pa.float64(), pa.decimal128(5, 2), pa.list_(pa.int64()), pa.struct([])])
def test_kind_of__refuses_types_that_are_no_keys(arrow_type: Any) -> None:
    with pytest.raises(ItemTypeError, match="keys must"):
        kind_of(arrow_type)


def test_parts__convert_numbers_of_the_other_byte_order_and_masks() -> None:
    swapped = np.array([1, 256], dtype=np.int32).astype(np.dtype(np.int32).newbyteorder())
    assert keys_of(swapped) == [1, 256]
    assert keys_of(np.ma.array([1, 2, 3], mask=[False, True, False])) == [1, None, 3]


@pytest.mark.parametrize(
    ("batch", "typed"),
    [
        (NAMES, False),
        (np.array(NAMES, dtype=object), False),
        (pd.Series(NAMES, dtype=object), False),
        (np.array([1]), True),
        (pa.array(NAMES), True),
        (pl.Series(NAMES), True),
    ],
)
def test_has_type__is_true_where_the_container_says_what_it_holds(batch: Any, typed: bool) -> None:
    assert has_type(batch) is typed


def test_in_order__decodes_a_dictionary_in_the_order_of_its_rows() -> None:
    views = pa.array(["x", "y"]).cast(pa.string_view())
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), views)
    assert in_order(coded).to_pylist() == ["y", "x", None, "y"]
    plain = pa.array(["x"])
    assert in_order(plain) is plain


def text_of(array: Any) -> list[bytes]:
    strings = strings_of(array)
    data, ends = strings.data.tobytes(), strings.offsets.tolist()
    assert strings.size == len(array)
    assert strings.longest == max(map(len, array.to_pylist()), default=0)
    return [data[first:last] for first, last in itertools.pairwise(ends)]


@given(st.lists(st.binary(max_size=20)), st.integers(0, 3), st.sampled_from(["binary", "large_binary", "binary_view"]))
def test_strings_of__are_the_bytes_of_every_layout_and_of_slices(keys: list[bytes], first: int, layout: str) -> None:
    array = pa.array(keys, pa.binary()).cast(getattr(pa, layout)()).slice(first)
    assert text_of(array) == keys[first:]


def test_strings_of__reads_fixed_sizes_and_copies_no_plain_strings() -> None:
    assert text_of(pa.array([b"ab", b"cd"], pa.binary(2)).slice(1)) == [b"cd"]
    plain = pa.array(["ab", "cd"])
    assert strings_of(plain).data.ctypes.data == plain.buffers()[2].address


def test_without_views__keeps_strings_nulls_and_other_types() -> None:
    names = ["a", None, "longer than twelve bytes", ""]
    plain = without_views(pa.array(names).cast(pa.string_view()))
    assert (plain.type, plain.to_pylist()) == (pa.large_string(), names)
    numbers = pa.array([1, 2])
    assert without_views(numbers) is numbers


def test_views_of__are_lengths_and_strings_or_where_they_lie() -> None:
    names = ["short", "longer than twelve bytes", "", "exactly 12 b"]
    array = pa.array(["skipped", *names]).cast(pa.string_view()).slice(1)
    views = views_of(array)
    assert views is not None
    assert views.size == 4
    assert views.numbers[:, 0].tolist() == [len(name) for name in names]
    assert views.numbers[0].tobytes()[4:9] == b"short"
    number, first = views.numbers[1, 2:].tolist()
    assert views.buffer(number)[first : first + 24].tobytes() == names[1].encode()
    assert views.plain(slice(1, 3)).data.tobytes() == names[1].encode()
    assert views_of(pa.array(names)) is None
    assert views_of(array.slice(4)) is None
