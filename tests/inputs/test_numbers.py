"""Items as chunks of plain numbers: the kernel's types, no copy where none is needed, and exact beyond 2^53."""

import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.inputs.numbers import CHUNK, KERNEL_TYPES, chunks, number


@pytest.mark.parametrize(
    ("item", "plain"),
    [
        (3, 3),
        (0.5, 0.5),
        (np.int8(-7), -7),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.25), 0.25),
        (Fraction(1, 4), 0.25),
        (decimal.Decimal("2.5"), 2.5),
        (Fraction(10**400), math.inf),
        (-Fraction(10**400), -math.inf),
        (10**400, 10**400),
    ],
    ids=lambda value: type(value).__name__,
)
def test_number__gives_a_plain_int_or_float(item: Any, plain: float) -> None:
    assert number(item) == plain
    assert type(number(item)) in (int, float)


@pytest.mark.parametrize("item", [None, math.nan, decimal.Decimal("NaN"), decimal.Decimal("sNaN")], ids=repr)
def test_number__takes_what_is_missing_for_nan(item: Any) -> None:
    assert math.isnan(number(item))


@pytest.mark.parametrize(
    "item", [True, np.bool_(False), "4242", b"4242", 4242j, [4242], object()], ids=lambda value: type(value).__name__
)
def test_number__refuses_other_objects_by_their_type(item: Any) -> None:
    with pytest.raises(ItemTypeError, match=f"not {'bool' if isinstance(item, np.bool_) else type(item).__name__}"):
        number(item)


@pytest.mark.parametrize("dtype", KERNEL_TYPES, ids=str)
def test_chunks__passes_on_an_array_of_a_kernel_type_without_a_copy(dtype: np.dtype[Any]) -> None:
    array = np.arange(3 * CHUNK).astype(dtype)
    (chunk,) = chunks(array)
    assert np.shares_memory(chunk.values, array)
    assert chunk.values.size == array.size
    assert chunk.missing is None
    assert list(chunks(array[:0])) == []


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "u8", "f2", ">f8", ">i4", "longdouble"])
def test_chunks__converts_other_types_a_chunk_at_a_time(dtype: str) -> None:
    array = (np.arange(2 * CHUNK + 5) % 120).astype(dtype)
    several = list(chunks(array))
    assert [chunk.values.size for chunk in several] == [CHUNK, CHUNK, 5]
    assert all(chunk.values.dtype in KERNEL_TYPES and chunk.values.flags.c_contiguous for chunk in several)
    assert np.concatenate([chunk.values for chunk in several]).tolist() == array.tolist()


@given(st.lists(st.integers(-(2**70), 2**70) | st.floats(allow_nan=False), max_size=30))
def test_chunks__keeps_integers_among_floats_exact(items: list[float]) -> None:
    found = [item for chunk in chunks(items) for item in chunk.values.tolist()]
    expected = [min(max(item, -(2**63)), 2**63 - 1) if isinstance(item, int) else item for item in items]
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_chunks__saturates_unsigned_integers() -> None:
    (chunk,) = chunks(np.array([2**64 - 1, 2**63, 5], dtype=np.uint64))
    assert chunk.values.tolist() == [2**63 - 1, 2**63 - 1, 5]


def test_chunks__marks_nulls_and_masked_items() -> None:
    for batch in (pa.array([1, None, 3]), np.ma.masked_array([1, 2, 3], mask=[False, True, False])):
        (chunk,) = chunks(batch)
        assert chunk.missing is not None
        assert chunk.missing.tolist() == [False, True, False]
        assert chunk.values[~chunk.missing].tolist() == [1, 3]
    (chunk,) = chunks(pa.nulls(4))
    assert chunk.missing is not None
    assert chunk.missing.all()


def test_chunks__reads_an_iterator_lazily() -> None:
    taken = []

    def items() -> Any:
        for k in range(3 * CHUNK):
            taken.append(k)
            yield float(k)

    first = next(chunks(items()))
    assert first.values.tolist() == [float(k) for k in range(CHUNK)]
    assert len(taken) <= CHUNK + 1


@pytest.mark.parametrize(
    "batch", ["4242", b"4242", {4242: 1}, 4242, None, object(), ["4242"], np.array(["4242"])], ids=type
)
def test_chunks__refuses_what_are_no_numbers_and_shows_none(batch: Any) -> None:
    with pytest.raises(ItemTypeError) as refusal:
        list(chunks(batch))
    assert "4242" not in str(refusal.value)


def test_chunks__refuses_more_than_one_dimension() -> None:
    for batch in (np.zeros((2, 2)), np.array(1.0), pa.table({"a": [1.0]})):
        with pytest.raises(ItemError, match="one-dimensional"):
            list(chunks(batch))


@pytest.mark.parametrize("form", ["numpy", "arrow", "arrow with nulls", "pandas", "polars", "list"])
def test_chunks__that_may_be_unsigned_hold_integers_to_two_to_the_64(form: str) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    items = [2**64 - 1, 2**63, 2**63 - 1, 5]
    made: dict[str, Any] = {
        "numpy": np.array(items, dtype=np.uint64),
        "arrow": pa.array(items, pa.uint64()),
        "arrow with nulls": pa.array([*items, None], pa.uint64()),
        "pandas": pd.Series(items, dtype="uint64"),
        "polars": pl.Series(items, dtype=pl.UInt64),
        "list": items,
    }
    found = [item for chunk in chunks(made[form], unsigned=True) for item in chunk.values.tolist()]
    assert found[:4] == items


def test_chunks__of_a_list_give_each_integer_a_type_whatever_lies_beside_it() -> None:
    items = [1, 2**53 + 1, 2**64, 2**63, -(2**63) - 1, 10**400, -(10**400), 3]
    found = [item for chunk in chunks(items, unsigned=True) for item in chunk.values.tolist()]
    assert found == [1, 2**53 + 1, 2.0**64, 2**63, -(2.0**63), float("inf"), -float("inf"), 3]
