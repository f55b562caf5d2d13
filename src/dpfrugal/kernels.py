"""The walk of Frugal-1U over an array, compiled by numba. Equal to ``frugal.step`` bit for bit.

Two facts make it fast:

* Coins depend on positions only, so a block's coins are computed at once, in a loop that vectorises.
* A block of ``BLOCK`` items moves an estimate by at most ``BLOCK``. An item farther away than that stays on
  its side of the estimate for the whole block, so a block of far items is counted, not walked. Once a block
  has had to be walked the next one is walked straight away, until one turns out to be far again.

``scale`` is None for integers that already are grid points, and 10.0**decimals for floats. Floats are compared
as floats (``floor(x·scale) > m`` is ``x·scale >= m + 1``), which is exact while every estimate stays within
±2^53; ``walk.advance`` sees to that. NaN is neither above nor below anything: it moves nothing and keeps its coin.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from dpfrugal.coins import BLOCK, COIN_BITS, COINS, GAMMA, HALF, MIX_1, MIX_2

Function = TypeVar("Function", bound=Callable[..., Any])

_GAMMA, _MIX_1, _MIX_2 = np.uint64(GAMMA), np.uint64(MIX_1), np.uint64(MIX_2)
_LOW, _BITS = np.uint64(COINS - 1), np.uint64(COIN_BITS)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_NEVER_UP, _NEVER_DOWN = np.int32(-(2**31)), np.int32(2**31 - 1)


def compiled(function: Function) -> Function:
    """Numba's compiler with its disk cache, or without it where no cache folder can be written."""
    try:
        return njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # "cannot cache function: no locator available"
        return njit(nogil=True)(function)  # type: ignore[no-any-return]


@compiled
def mix64(word: Any) -> Any:
    """``coins.mix64``."""
    word = (word ^ (word >> _30)) * _MIX_1
    word = (word ^ (word >> _27)) * _MIX_2
    return word ^ (word >> _31)


@compiled
def coin(key: Any, position: Any) -> Any:
    """``coins.coin``."""
    lane = position % BLOCK
    word = mix64(key + np.uint64(position // BLOCK * HALF + lane % HALF) * _GAMMA)
    return np.uint32(word >> _BITS) if lane >= HALF else np.uint32(word & _LOW)


@compiled
def block_coins(key: Any, position: Any, coins: Any) -> Any:
    """The ``BLOCK`` coins from ``position``, a multiple of ``BLOCK``, on."""
    first = key + np.uint64(position // BLOCK * HALF) * _GAMMA
    for lane in range(HALF):
        word = mix64(first + np.uint64(lane) * _GAMMA)
        coins[lane] = np.uint32(word & _LOW)
        coins[HALF + lane] = np.uint32(word >> _BITS)


@compiled
def walk_singly(
    items: Any, missing: Any, scale: Any, estimates: Any, up_from: Any, down_from: Any, key: Any, position: Any
) -> Any:
    """Item by item, for what is left of a block, and where nulls must be skipped. Returns the NaNs met."""
    nans = 0
    for i in range(items.shape[0]):
        item = items[i] if scale is None else np.floor(items[i] * scale)
        nans += item != item
        if missing is None or not missing[i]:
            this_coin = coin(key, position + i)
            for k in range(estimates.shape[0]):
                up = (item > estimates[k]) & (this_coin >= up_from[k])
                down = (item < estimates[k]) & (this_coin >= down_from[k])
                estimates[k] += np.int64(up) - np.int64(down)
    return nans


@compiled
def count_far(items: Any, scale: Any, estimate: Any, up_from: Any, down_from: Any, coins: Any) -> Any:
    """How many of a block's items are far from the estimate, and where they move it."""
    lowest_near, lowest_above = estimate - BLOCK, estimate + BLOCK + 1
    far, move = 0, 0
    for lane in range(BLOCK):
        item = items[lane] if scale is None else items[lane] * scale
        above, below = item >= lowest_above, item < lowest_near
        far += above + below
        move += above & (coins[lane] >= up_from)
        move -= below & (coins[lane] >= down_from)
    return far, move


@compiled
def walk_block(
    items: Any, scale: Any, estimate: Any, up_from: Any, down_from: Any, coins: Any, highs: Any, lows: Any
) -> Any:
    """One block, item by item, on offsets from the estimate. Returns the move, the near items and the NaNs."""
    near: Any = 0
    nans, reach = 0, BLOCK + 1
    for lane in range(BLOCK):
        if scale is None:
            offset = np.int32(min(max(items[lane], estimate - reach), estimate + reach) - estimate)
            is_number = True
        else:
            scaled = np.floor(items[lane] * scale)
            is_number = scaled == scaled
            distance = scaled - np.float64(estimate) if is_number else 0.0
            offset = np.int32(min(max(distance, -float(reach)), float(reach)))
        nans += not is_number
        near += (offset > -BLOCK) & (offset < BLOCK)
        highs[lane] = offset if (coins[lane] >= up_from) & is_number else _NEVER_UP
        lows[lane] = offset if (coins[lane] >= down_from) & is_number else _NEVER_DOWN
    move: Any = np.int32(0)
    for lane in range(BLOCK):
        move += np.int32(highs[lane] > move) - np.int32(lows[lane] < move)
    return move, near, nans


@compiled
def walk(items: Any, scale: Any, estimates: Any, up_from: Any, down_from: Any, key: Any, position: Any) -> Any:
    """Move every estimate past all items, in place; the items are read once. Returns the NaNs met."""
    size = items.shape[0]
    head = min(size, -position % BLOCK)
    nans = walk_singly(items[:head], None, scale, estimates, up_from, down_from, key, position)
    coins = np.empty(BLOCK, np.uint32)
    highs, lows = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    walking = np.zeros(estimates.shape[0], np.bool_)
    first = head
    while first + BLOCK <= size:
        block_coins(key, position + first, coins)
        block = items[first : first + BLOCK]
        block_nans = 0
        for k in range(estimates.shape[0]):
            if not walking[k]:
                far, move = count_far(block, scale, estimates[k], up_from[k], down_from[k], coins)
                if far == BLOCK:
                    estimates[k] += move
                    continue
            move, near, block_nans = walk_block(
                block, scale, estimates[k], up_from[k], down_from[k], coins, highs, lows
            )
            walking[k] = near > 0
            estimates[k] += move
        nans += block_nans
        first += BLOCK
    return nans + walk_singly(items[first:], None, scale, estimates, up_from, down_from, key, position + first)
