"""Rows in the type in which they were read, and codes: the same order, exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.rows.native_rows import TYPES, as_native, codes_of_rows, ends_of, least_from, most_upto


@given(st.lists(st.floats(allow_nan=False, width=32)), st.integers(-0x7FF0000000000000, 0x7FF0000000000000))
def test_native_rows__ends_of_float32_enclose_exactly(values: list[float], code: int) -> None:
    rows, limits = np.array(values, dtype=np.float32), np.array([code])
    codes = codes_of_rows(rows)
    assert (rows >= least_from(limits, rows.dtype)[0]).tolist() == (codes >= code).tolist()
    assert (rows <= most_upto(limits, rows.dtype)[0]).tolist() == (codes <= code).tolist()


@pytest.mark.parametrize("name", ["f2", "f4", ">f8", "g", "i1", "u2", "u4", "u8", "i8", ">i4"])
def test_native_rows__are_of_few_types_and_keep_their_values(name: str) -> None:
    rows = np.array([1, 2, 3], dtype=name)[::2]
    native = as_native(rows)
    assert native.dtype in TYPES
    assert native.flags.c_contiguous
    assert native.tolist() == rows.tolist()
    least, most = ends_of(native.dtype)
    assert ((codes_of_rows(native) >= least) & (codes_of_rows(native) <= most)).all()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_native_rows__ends_of_every_type_enclose_exactly(dtype: np.dtype[np.generic]) -> None:
    least, most = ends_of(dtype)
    rows = least_from(np.array([least, 0, 1, most]), dtype)
    codes = codes_of_rows(rows)
    assert (codes >= [least, 0, 1, most]).all()
    assert codes.tolist() == sorted(codes.tolist())
    assert (codes_of_rows(most_upto(np.array([least, 0, 1, most]), dtype)) <= [least, 0, 1, most]).all()


def test_native_rows__unsigned_rows_keep_their_order_as_codes() -> None:
    rows = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    codes = codes_of_rows(rows)
    assert codes.tolist() == sorted(set(codes.tolist()))
    assert (codes[0], codes[-1]) == (-(2**63), 2**63 - 1)
