"""Processor instructions equal the Python functions that specify them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from dpfrugal.kernels import compiler, intrinsics
from dpfrugal.kernels.bit_layout import PRIME
from dpfrugal.kernels.coins import BLOCK

pytestmark = pytest.mark.skipif(compiler.is_off(), reason="nothing is compiled")
words = st.integers(0, 2**64 - 1)
shorts = st.lists(st.integers(-300, 300), min_size=BLOCK, max_size=BLOCK)


@njit
def bits(word: Any) -> Any:
    return intrinsics.ones(word), intrinsics.lowest(word)


@njit
def multiplied(one: Any, other: Any) -> Any:
    return intrinsics.product(one, other)


@njit
def compared(rows: Any, first: Any, low: Any, high: Any) -> Any:
    intrinsics.prefetch(rows, first)  # whatever it is asked for, it changes nothing
    return intrinsics.compared(rows, first, low, high)


@njit
def sides(points: Any, margins: Any, coins: Any, estimate: Any, up_from: Any, down_from: Any) -> Any:
    return intrinsics.sides(points, margins, coins, estimate, up_from, down_from)


@settings(max_examples=50)
@given(words)
def test_ones_and_lowest__equal_their_specification(word: int) -> None:
    assert bits(np.uint64(word)) == (intrinsics.ones(word), intrinsics.lowest(word))


@settings(max_examples=50)
@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
def test_product__is_modulo_the_prime(one: int, other: int) -> None:
    assert int(multiplied(np.uint64(one), np.uint64(other))) == one * other % PRIME


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
@settings(max_examples=20)
@given(st.lists(st.integers(-9, 9), min_size=70, max_size=70), st.integers(0, 6), st.integers(-9, 9), st.integers(0, 9))
def test_compared__equals_its_specification(dtype: Any, numbers: list[int], first: int, low: int, width: int) -> None:
    rows: NDArray[Any] = np.array(numbers, dtype=dtype)
    ends = dtype(low), dtype(low + width)
    assert compared(rows, first, *ends) == tuple(map(int, intrinsics.compared(rows, first, *ends)))


@settings(max_examples=30)
@given(shorts, shorts, st.integers(-100, 100), words)
def test_sides__equals_its_specification(points: list[int], coins: list[int], estimate: int, thresholds: int) -> None:
    lanes = np.array(points, dtype=np.int16), np.arange(BLOCK, dtype=np.int16) % 5
    tossed = np.array(coins, dtype=np.int16).view(np.uint16)
    up_from, down_from = np.uint32(thresholds >> 32), np.uint32(thresholds & (2**32 - 1))
    found = sides(*lanes, tossed, np.int16(estimate), up_from, down_from)
    assert found == tuple(map(int, intrinsics.sides(*lanes, tossed, estimate, up_from, down_from)))
