"""The walk of Frugal-1U over an array, compiled by numba. Equal to ``frugal.step`` bit for bit.

The items go by in blocks of 64. Three facts make it fast:

* Coins depend on positions only, so a block's coins are computed at once, in a loop that vectorises. Its items
  become 32-bit offsets from a base that all estimates are near to. Both are shared by all quantiles.
* A block moves an estimate by at most 64. An item farther away than that stays on its side of the estimate for
  the whole block, so a block of far items is counted, not walked.
* A step is a count of edges. An item moves an estimate m up below its ``top`` and down from its ``bottom`` on,
  so the step leads to m + 1 - [top <= m] - [bottom <= m]. A later item's edge e is met through the step before it
  exactly if e - [e <= top] + [e >= bottom] is met in its place. So four steps lead to m + 4 - (how many of eight
  edges lie at or below m), and eight edges are eight bytes of one word: a subtraction and a count of bits.
  After g groups of four, c edges have been crossed and m is 4g - c.

``scale`` is None for integers that already are grid points, and 10.0**decimals for floats, whose grid points are
exact as floats while every estimate stays within ±2^53. The estimates must lie within 2^30 of each other, and the
items be at most 2^28. ``walk.advance`` sees to all that. NaN moves nothing and keeps its coin.

Only ``walk`` and ``walk_singly`` are cached on disk, the rest being part of them: fewer files load sooner.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from numba import njit
from numba.extending import intrinsic, overload

from dpfrugal.coins import BLOCK, COIN_BITS, COINS, GAMMA, HALF, MIX_1, MIX_2

Function = TypeVar("Function", bound=Callable[..., Any])

GROUP: Final = 4
GROUPS: Final = BLOCK // GROUP
EDGES: Final = 2 * GROUP
# Offsets are clipped here, beyond any estimate's reach; their distances to estimates then fit 32 bits.
FARTHEST: Final = 2**30
NOT_A_NUMBER: Final = -(2**31)
# One near item outweighs all the moves of a block.
NEAR: Final = 1 << 16
CACHE_LINE: Final = 64

_GAMMA, _MIX_1, _MIX_2 = np.uint64(GAMMA), np.uint64(MIX_1), np.uint64(MIX_2)
_LOW, _BITS = np.uint64(COINS - 1), np.uint64(COIN_BITS)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_ONE_EACH, _TOP_EACH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)

inlined = njit(nogil=True, forceinline=True)


def cached(function: Function) -> Function:
    """Numba's compiler with its disk cache, or without it where no cache folder can be written."""
    try:
        return njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # "cannot cache function: no locator available"
        return njit(nogil=True)(function)  # type: ignore[no-any-return]


def ones(word: Any) -> Any:
    """How many bits of a word are set."""
    return np.uint64(int(word).bit_count())


@intrinsic
def _population_count(_: Any, word: Any) -> Any:
    return word(word), lambda context, builder, signature, arguments: builder.ctpop(arguments[0])


@overload(ones)
def _compiled_ones(word: Any) -> Any:
    def compiled_ones(word: Any) -> Any:
        return _population_count(word)

    return compiled_ones


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
def block_coins(key: Any, position: Any, coins: Any) -> Any:
    """The coins of the block at ``position``, a multiple of ``BLOCK``."""
    first = key + np.uint64(position // BLOCK * HALF) * _GAMMA
    for lane in range(HALF):
        word = mix64(first + np.uint64(lane) * _GAMMA)
        coins[lane] = np.uint32(word & _LOW)
        coins[HALF + lane] = np.uint32(word >> _BITS)


@inlined
def block_offsets(items: Any, scale: Any, base: Any, offsets: Any) -> Any:
    """A block's grid points, seen from the base. Returns the NaNs met."""
    lowest, highest = base - FARTHEST, base + FARTHEST
    nans = np.int32(0)
    for lane in range(BLOCK):
        if scale is None:
            offsets[lane] = np.int32(min(max(items[lane], lowest), highest) - base)
        else:
            point = np.floor(items[lane] * scale)
            nans = np.int32(nans + np.int32(point != point))
            # Not max and min: the comparison is false for NaN, which must not reach the conversion.
            raised = point if point > np.float64(lowest) else np.float64(lowest)
            clipped = raised if raised < np.float64(highest) else np.float64(highest)
            offsets[lane] = np.int32(clipped - np.float64(base))
    if nans > 0:
        for lane in range(BLOCK):
            if items[lane] != items[lane]:
                offsets[lane] = np.int32(NOT_A_NUMBER)
    return nans


@inlined
def count_far(offsets: Any, coins: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
    """Where a block of far items moves an estimate; ``NEAR`` or so and more, if it has near ones."""
    move = np.int32(0)
    for lane in range(BLOCK):
        distance = np.int32(offsets[lane] - mark)
        above = distance > 0
        step = np.int32(1) if above else np.int32(-1)
        allowed = coins[lane] >= (up_from if above else down_from)
        near = np.int32(NEAR) if abs(distance) <= BLOCK else np.int32(0)
        move = np.int32(move + (step if allowed else np.int32(0)) + near)
    return move


@inlined
def by_turn(offsets: Any, coins: Any, offsets_by_turn: Any, coins_by_turn: Any) -> Any:
    """The first items of all groups, then the second ones, and so on: groups side by side for ``block_edges``."""
    for group in range(GROUPS):
        for turn in range(GROUP):
            offsets_by_turn[turn * GROUPS + group] = offsets[group * GROUP + turn]
            coins_by_turn[turn * GROUPS + group] = coins[group * GROUP + turn]


@inlined
def edges(offset: Any, coin: Any, scale: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
    """An item's top and bottom, seen from the estimate at the block's start, and its distance."""
    byte = np.int8(min(max(np.int32(offset - mark), np.int32(-128)), np.int32(127)))
    distance = min(max(byte, np.int8(-BLOCK)), np.int8(BLOCK))
    is_number = scale is None or offset != NOT_A_NUMBER
    top = distance if (coin >= up_from) & is_number else np.int8(-BLOCK)
    bottom = np.int8(distance + 1) if (coin >= down_from) & is_number else np.int8(BLOCK)
    return top, bottom, np.int8(abs(distance))


@inlined
def before(edge: Any, top: Any, bottom: Any) -> Any:
    """The edge to look for before an item's step instead of ``edge`` after it."""
    return np.int8(edge - (np.int8(1) - np.int8(edge > top)) + (np.int8(1) - np.int8(bottom > edge)))


@inlined
def block_edges(offsets: Any, coins: Any, scale: Any, mark: Any, up_from: Any, down_from: Any, words: Any) -> Any:
    """Eight edges per group, as bytes: edge e of group g is crossed if byte 128 + 4g - e, less c, is 128 or more.

    No byte borrows from the next: a group's edges lie within [-67, 68] and it is reached within ±60, so all stay
    within [0, 255]. Returns whether the block has near items.
    """
    all_far = np.int8(BLOCK)
    for g in range(GROUPS):
        top, bottom, away = edges(offsets[g], coins[g], scale, mark, up_from, down_from)
        top_1, bottom_1, away_1 = edges(offsets[GROUPS + g], coins[GROUPS + g], scale, mark, up_from, down_from)
        top_2, bottom_2, away_2 = edges(offsets[2 * GROUPS + g], coins[2 * GROUPS + g], scale, mark, up_from, down_from)
        top_3, bottom_3, away_3 = edges(offsets[3 * GROUPS + g], coins[3 * GROUPS + g], scale, mark, up_from, down_from)
        all_far = np.int8(all_far & away & away_1 & away_2 & away_3)
        top_3, bottom_3 = before(top_3, top_2, bottom_2), before(bottom_3, top_2, bottom_2)
        top_3, bottom_3 = before(top_3, top_1, bottom_1), before(bottom_3, top_1, bottom_1)
        top_2, bottom_2 = before(top_2, top_1, bottom_1), before(bottom_2, top_1, bottom_1)
        top_3, bottom_3 = before(top_3, top, bottom), before(bottom_3, top, bottom)
        top_2, bottom_2 = before(top_2, top, bottom), before(bottom_2, top, bottom)
        top_1, bottom_1 = before(top_1, top, bottom), before(bottom_1, top, bottom)
        start = np.int32(128 + GROUP * g)
        words[EDGES * g] = np.uint8(start - top)
        words[EDGES * g + 1] = np.uint8(start - bottom)
        words[EDGES * g + 2] = np.uint8(start - top_1)
        words[EDGES * g + 3] = np.uint8(start - bottom_1)
        words[EDGES * g + 4] = np.uint8(start - top_2)
        words[EDGES * g + 5] = np.uint8(start - bottom_2)
        words[EDGES * g + 6] = np.uint8(start - top_3)
        words[EDGES * g + 7] = np.uint8(start - bottom_3)
    return all_far == 0


@inlined
def crossed(words: Any) -> Any:
    """How many of a block's edges an estimate crosses."""
    count = np.uint64(0)
    for group in range(GROUPS):
        count += ones((words[group] - count * _ONE_EACH) & _TOP_EACH)
    return np.int32(count)


@inlined
def scratch(size: Any) -> Any:
    """Bytes that start a cache line: vectors that straddle two lines are read at half the speed."""
    buffer = np.empty(size + CACHE_LINE, np.uint8)
    start = CACHE_LINE - np.int64(buffer.ctypes.data) % CACHE_LINE
    return buffer[start : start + size]


@cached
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


@cached
def walk(items: Any, scale: Any, estimates: Any, up_from: Any, down_from: Any, key: Any, position: Any) -> Any:
    """Move every estimate past all items, in place; the items are read once. Returns the NaNs met."""
    size, quantiles = items.shape[0], estimates.shape[0]
    head = min(size, -position % BLOCK)
    nans = walk_singly(items[:head], None, scale, estimates, up_from, down_from, key, position)
    coins, coins_by_turn = scratch(4 * BLOCK).view(np.uint32), scratch(4 * BLOCK).view(np.uint32)
    offsets, offsets_by_turn = scratch(4 * BLOCK).view(np.int32), scratch(4 * BLOCK).view(np.int32)
    room = scratch(quantiles * EDGES * GROUPS)
    edge_bytes = room.reshape(quantiles, EDGES * GROUPS)
    edge_words = room.view(np.uint64).reshape(quantiles, GROUPS)
    base = estimates.min() + (estimates.max() - estimates.min()) // 2
    marks = (estimates - base).astype(np.int32)
    walking, walkers = np.zeros(quantiles, np.bool_), np.empty(quantiles, np.int64)
    first = head
    while first + BLOCK <= size:
        block_coins(key, position + first, coins)
        block_nans = block_offsets(items[first : first + BLOCK], scale, base, offsets)
        walked = 0
        for k in range(quantiles):
            if not walking[k] and block_nans == 0:
                move = count_far(offsets, coins, marks[k], up_from[k], down_from[k])
                if move <= BLOCK:
                    marks[k] += move
                    continue
            if walked == 0:
                by_turn(offsets, coins, offsets_by_turn, coins_by_turn)
            walking[k] = block_edges(
                offsets_by_turn, coins_by_turn, scale, marks[k], up_from[k], down_from[k], edge_bytes[walked]
            )
            walkers[walked] = k
            walked += 1
        # Only now, one after the other: the processor overlaps these chains, but not across the loops above.
        for i in range(walked):
            marks[walkers[i]] += BLOCK - crossed(edge_words[i])
        nans += block_nans
        first += BLOCK
    for k in range(quantiles):
        estimates[k] = base + marks[k]
    return nans + walk_singly(items[first:], None, scale, estimates, up_from, down_from, key, position + first)
