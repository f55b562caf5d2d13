"""``coins.mix64`` and ``coins.coin``, compiled, and the coins of a whole block at once. Equal to ``coins.coin``.

A block's coins are the low and the high halves of 32 consecutive words, which a loop without branches computes as
vectors.
"""

from typing import Any

import numpy as np

from dpfrugal.kernels.coins import BLOCK, COIN_BITS, COINS, GAMMA, HALF, MIX_1, MIX_2
from dpfrugal.kernels.compiler import inlined

_GAMMA, _MIX_1, _MIX_2 = np.uint64(GAMMA), np.uint64(MIX_1), np.uint64(MIX_2)
_LOW, _BITS = np.uint64(COINS - 1), np.uint64(COIN_BITS)
_16, _27, _30, _31, _48 = (np.uint64(n) for n in (16, 27, 30, 31, 48))


@inlined
def mix64(word: Any) -> Any:
    """``coins.mix64``."""
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@inlined
def coin(key: Any, position: Any) -> Any:
    """``coins.coin``."""
    lane = position % BLOCK
    word = mix64(key + np.uint64(position // BLOCK * HALF + lane % HALF) * _GAMMA)
    return np.uint32(word >> _BITS) if lane >= HALF else np.uint32(word & _LOW)


@inlined
def block_coins(key: Any, position: Any, coins: Any, upper_coins: Any) -> Any:
    """The coins of the block at ``position``, a multiple of ``BLOCK``, and their upper halves."""
    first = key + np.uint64(position // BLOCK * HALF) * _GAMMA
    for lane in range(HALF):
        word = mix64(first + np.uint64(lane) * _GAMMA)
        coins[lane] = np.uint32(word & _LOW)
        coins[HALF + lane] = np.uint32(word >> _BITS)
        upper_coins[lane] = np.uint16(word >> _16)
        upper_coins[HALF + lane] = np.uint16(word >> _48)
