"""Compiled coins equal ``coins``: one by one, and a block at once."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.kernels import coins, compiled_coins

words = st.integers(0, 2**64 - 1)


@settings(max_examples=50)
@given(words)
def test_mix64__equals_its_readable_form(word: int) -> None:
    with np.errstate(over="ignore"):
        assert int(compiled_coins.mix64(np.uint64(word))) == coins.mix64(word)


@settings(max_examples=50)
@given(words, st.integers(0, 2**40))
def test_coin__equals_its_readable_form(key: int, position: int) -> None:
    with np.errstate(over="ignore"):
        assert int(compiled_coins.coin(np.uint64(key), position)) == coins.coin(key, position)


@settings(max_examples=20)
@given(words, st.integers(0, 2**30))
def test_block_coins__are_the_coins_of_its_positions_and_their_upper_halves(key: int, block: int) -> None:
    first = block * coins.BLOCK
    found: NDArray[Any] = np.empty(coins.BLOCK, dtype=np.uint32)
    upper: NDArray[Any] = np.empty(coins.BLOCK, dtype=np.uint16)
    with np.errstate(over="ignore"):
        compiled_coins.block_coins(np.uint64(key), np.int64(first), found, upper)
    expected = [coins.coin(key, first + lane) for lane in range(coins.BLOCK)]
    assert found.tolist() == expected
    assert upper.tolist() == [each >> 16 for each in expected]
