"""The walk of Frugal-1U over an array, compiled by numba. Equal to ``frugal.step`` bit for bit.

The items go by in blocks of 64. Three facts make it fast:

* Coins depend on positions only, so a block's coins are computed at once, in a loop that vectorises. Its items
  become 16-bit points, seen from a base that all estimates are near to. Both are shared by all quantiles.
* A block's first n items move an estimate by at most n. An item farther away than that stays on its side of the
  estimate, so it is counted, not walked; a coarse look at it will do, and at its coin. Of the other items, the near
  ones, a few are decided one by one: where they find the estimate is a count of the far ones before them. Three or
  four estimates are compared with a block together, as a ``party``.
* With many near items, a step is a count of edges. An item moves an estimate m up below its ``top`` and down from
  its ``bottom`` on, so the step leads to m + 1 - [top <= m] - [bottom <= m]. A later item's edge e is met through
  the step before it exactly if e - [e <= top] + [e >= bottom] is met in its place. So four steps lead to m + 4 -
  (how many of eight edges lie at or below m), and eight edges are eight bytes of one word: a subtraction and a
  count of bits. After g groups of four, c edges have been crossed and m is 4g - c. A ``party`` does so for four
  estimates at once.

``scale`` is None for integers that already are grid points, and 10.0**decimals for floats, whose grid points are
exact as floats while every estimate stays within ±2^53. The estimates must lie within 2^30 of each other, and the
items be at most 2^28. ``walk.advance`` sees to all that. NaN moves nothing and keeps its coin.

Only ``walk`` and ``walk_singly`` are cached on disk, the rest being part of them: fewer files load sooner.
"""

from typing import Any, Final

import numpy as np
from numba import njit

from dpfrugal.kernels.coins import BLOCK, COIN_BITS, COINS, GAMMA, HALF, MIX_1, MIX_2
from dpfrugal.kernels.compiler import cached
from dpfrugal.kernels.intrinsics import lowest, ones, sides
from dpfrugal.kernels.party import GROUP, GROUPS, NOT_A_NUMBER, PARTY, sides_together, walk_together

EDGES: Final = 2 * GROUP
# Points are clipped here, beyond any estimate's reach; their distances to estimates then fit 16 bits.
FARTHEST: Final = 2**14 - 1
# So many blocks are seen from the same base, and in the same way: few or many near items.
LEG: Final = 128
# With more near items than this, counting edges is faster.
MOST_NEAR: Final = 8
CACHE_LINE: Final = 64

_GAMMA, _MIX_1, _MIX_2 = np.uint64(GAMMA), np.uint64(MIX_1), np.uint64(MIX_2)
_LOW, _BITS = np.uint64(COINS - 1), np.uint64(COIN_BITS)
_1, _16, _27, _30, _31, _48 = (np.uint64(n) for n in (1, 16, 27, 30, 31, 48))
_ONE_EACH, _TOP_EACH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)

inlined = njit(nogil=True, forceinline=True)


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


@inlined
def block_points(items: Any, scale: Any, base: Any, shift: Any, points: Any) -> Any:
    """A block's grid points, seen from the base in steps of 2^shift. Returns the NaNs met."""
    farthest = np.int64(FARTHEST) << shift
    low, high = base - farthest, base + farthest
    nans = np.int32(0)
    for lane in range(BLOCK):
        if scale is None:
            points[lane] = np.int16(np.int64(min(max(items[lane], low), high) - base) >> shift)
        else:
            point = np.floor(items[lane] * scale)
            nans = np.int32(nans + np.int32(point != point))
            # Not max and min: the comparison is false for NaN, which must not reach the conversion.
            raised = point if point > np.float64(low) else np.float64(low)
            clipped = raised if raised < np.float64(high) else np.float64(high)
            points[lane] = np.int16(np.int32(clipped - np.float64(base)) >> np.int32(shift))
    if nans > 0:
        for lane in range(BLOCK):
            if items[lane] != items[lane]:
                points[lane] = np.int16(NOT_A_NUMBER)
    return nans


@inlined
def near_moves(
    items: Any, scale: Any, coins: Any, up: Any, down: Any, near: Any, estimate: Any, thresholds: Any
) -> Any:
    """Where a block's few near items move an estimate, among the far ones that move it up and down.

    The first of them is decided without asking whether there is one: the processor could only guess the answer.
    """
    up_from, down_from = thresholds
    moved = np.int64(0)
    while True:
        lane = lowest(near) % BLOCK
        this, before = near & (~near + _1), ~near & (near - _1)
        item = items[lane] if scale is None else np.floor(items[lane] * scale)
        here = estimate + moved + np.int64(ones(up & before)) - np.int64(ones(down & before))
        rises = (item > here) & (coins[lane] >= up_from) & (this != 0)
        falls = (item < here) & (coins[lane] >= down_from) & (this != 0)
        moved += np.int64(rises) - np.int64(falls)
        near ^= this
        if near == 0:
            return moved


@inlined
def most_ones(words: Any) -> Any:
    """How many bits are set in the word of a party that has most."""
    return max(max(ones(words[0]), ones(words[1])), max(ones(words[2]), ones(words[3])))


@inlined
def by_turn(points: Any, coins: Any, points_by_turn: Any, coins_by_turn: Any) -> Any:
    """The first items of all groups, then the second ones, and so on: groups side by side for ``block_edges``."""
    for group in range(GROUPS):
        for turn in range(GROUP):
            lane = group * GROUP + turn
            points_by_turn[turn * GROUPS + group] = points[lane]
            coins_by_turn[turn * GROUPS + group] = coins[lane]


@inlined
def edges(point: Any, coin: Any, scale: Any, mark: Any, up_from: Any, down_from: Any) -> Any:
    """An item's top and bottom, seen from the estimate at the block's start."""
    byte = np.int8(min(max(np.int16(point - mark), np.int16(-128)), np.int16(127)))
    distance = min(max(byte, np.int8(-BLOCK)), np.int8(BLOCK))
    is_number = scale is None or point != NOT_A_NUMBER
    top = distance if (coin >= up_from) & is_number else np.int8(-BLOCK)
    bottom = np.int8(distance + 1) if (coin >= down_from) & is_number else np.int8(BLOCK)
    return top, bottom


@inlined
def before(edge: Any, top: Any, bottom: Any) -> Any:
    """The edge to look for before an item's step instead of ``edge`` after it."""
    return np.int8(edge - (np.int8(1) - np.int8(edge > top)) + (np.int8(1) - np.int8(bottom > edge)))


@inlined
def block_edges(points: Any, coins: Any, scale: Any, mark: Any, up_from: Any, down_from: Any, words: Any) -> Any:
    """Eight edges per group, as bytes: edge e of group g is crossed if byte 128 + 4g - e, less c, is 128 or more.

    No byte borrows from the next: a group's edges lie within [-67, 68] and it is reached within ±60, so all stay
    within [0, 255].
    """
    for g in range(GROUPS):
        top, bottom = edges(points[g], coins[g], scale, mark, up_from, down_from)
        top_1, bottom_1 = edges(points[GROUPS + g], coins[GROUPS + g], scale, mark, up_from, down_from)
        top_2, bottom_2 = edges(points[2 * GROUPS + g], coins[2 * GROUPS + g], scale, mark, up_from, down_from)
        top_3, bottom_3 = edges(points[3 * GROUPS + g], coins[3 * GROUPS + g], scale, mark, up_from, down_from)
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


@inlined
def outlook(estimates: Any, reaches: Any) -> Any:
    """From where, and how coarsely, to see a leg's items, so that no estimate leaves the points' range.

    A lane's reach is how far the items before it can move an estimate, in coarse steps and rounded up: items
    whose points are farther away than that are farther away than that many grid points.
    """
    half_spread = (estimates.max() - estimates.min()) // 2
    shift = np.int64(0)
    while (half_spread + LEG * BLOCK) >> shift > FARTHEST - 2 * BLOCK:
        shift += 1
    for lane in range(BLOCK):
        reaches[lane] = np.int16(-(-lane >> shift))
    return estimates.min() + half_spread, shift


@inlined
def upper(threshold: Any) -> Any:
    """The upper half of a threshold."""
    return np.uint16(threshold >> np.uint32(16))


@cached
def walk(items: Any, scale: Any, estimates: Any, up_from: Any, down_from: Any, key: Any, position: Any) -> Any:
    """Move every estimate past all items, in place; the items are read once. Returns the NaNs met."""
    size, quantiles = items.shape[0], estimates.shape[0]
    head = min(size, -position % BLOCK)
    nans = walk_singly(items[:head], None, scale, estimates, up_from, down_from, key, position)
    coins, coins_by_turn = scratch(8 * BLOCK).view(np.uint32).reshape(2, BLOCK), scratch(4 * BLOCK).view(np.uint32)
    upper_coins = scratch(4 * BLOCK).view(np.uint16).reshape(2, BLOCK)
    points, points_by_turn = scratch(4 * BLOCK).view(np.int16).reshape(2, BLOCK), scratch(2 * BLOCK).view(np.int16)
    reaches, own_points = scratch(2 * BLOCK).view(np.int16), scratch(2 * BLOCK).view(np.int16)
    room = scratch(quantiles * EDGES * GROUPS)
    edge_bytes = room.reshape(quantiles, EDGES * GROUPS)
    edge_words = room.view(np.uint64).reshape(quantiles, GROUPS)
    walking, meeting = np.zeros(quantiles, np.bool_), np.zeros(quantiles, np.bool_)
    walkers = np.zeros(quantiles + PARTY, np.int64)
    # A party that items are shown to together; its last places may be empty, and no coin moves those.
    own, words = np.zeros(PARTY, np.int64), np.zeros((3, PARTY), np.uint64)
    ups, downs = np.full(PARTY, 2**16 - 1, np.uint16), np.full(PARTY, 2**16 - 1, np.uint16)
    is_party = 2 < quantiles <= PARTY
    if is_party:
        for k in range(quantiles):
            ups[k], downs[k] = upper(up_from[k]), upper(down_from[k])
    first = head
    while first + BLOCK <= size:
        base, shift = outlook(estimates, reaches)
        walking[:], meeting[:], singly = False, False, True
        stop = first + min(LEG, (size - first) // BLOCK) * BLOCK
        block_coins(key, position + first, coins[0], upper_coins[0])
        next_nans = block_points(items[first : first + BLOCK], scale, base, shift, points[0])
        now = 0
        apart = is_party  # and no estimate has many near items
        if apart:
            own[:quantiles] = estimates
        while first < stop:
            block_nans, after = next_nans, first + BLOCK
            # One block ahead: what was just stored is slow to load.
            if after < stop:
                block_coins(key, position + after, coins[1 - now], upper_coins[1 - now])
                next_nans = block_points(items[after : after + BLOCK], scale, base, shift, points[1 - now])
            walked = 0
            if apart:
                sides_together(points[now], reaches, upper_coins[now], base, shift, own, ups, downs, words)
                apart = block_nans == 0 and most_ones(words[2]) <= MOST_NEAR
                if apart:
                    block = items[first : first + BLOCK]
                    for k in range(quantiles):
                        up, down, near = words[0, k], words[1, k], words[2, k]
                        meeting[k] = meeting[k] | (near != 0)
                        if meeting[k]:
                            thresholds = up_from[k], down_from[k]
                            own[k] += near_moves(block, scale, coins[now], up, down, near, own[k], thresholds)
                        own[k] += np.int64(ones(up)) - np.int64(ones(down))
                    first, now = after, 1 - now
                    continue
                estimates[:] = own[:quantiles]
            for k in range(quantiles):
                if not walking[k] and block_nans == 0:
                    mark = np.int16((estimates[k] - base) >> shift)
                    above, allowed, near = sides(
                        points[now], reaches, upper_coins[now], mark, upper(up_from[k]), upper(down_from[k])
                    )
                    up, down = allowed & above & ~near, allowed & ~(above | near)
                    walking[k], meeting[k] = ones(near) > MOST_NEAR, meeting[k] | (near != 0)
                    if not walking[k]:
                        if meeting[k]:
                            thresholds = up_from[k], down_from[k]
                            estimates[k] += near_moves(
                                items[first : first + BLOCK],
                                scale,
                                coins[now],
                                up,
                                down,
                                near,
                                estimates[k],
                                thresholds,
                            )
                        estimates[k] += np.int64(ones(up)) - np.int64(ones(down))
                        continue
                if singly:
                    mark = np.int16(estimates[k] - base)
                    if shift > 0:  # Too coarse to count edges by.
                        block_points(items[first : first + BLOCK], scale, estimates[k], 0, own_points)
                        by_turn(own_points, coins[now], points_by_turn, coins_by_turn)
                        mark = np.int16(0)
                    elif walked == 0:
                        by_turn(points[now], coins[now], points_by_turn, coins_by_turn)
                    edges_of = edge_bytes[walked]
                    block_edges(points_by_turn, coins_by_turn, scale, mark, up_from[k], down_from[k], edges_of)
                walkers[walked] = k
                walked += 1
            # Only now, one after the other: the processor overlaps these chains, but not across the loops above.
            if singly:
                for i in range(walked):
                    estimates[walkers[i]] += BLOCK - crossed(edge_words[i])
            else:
                walkers[walked : walked + PARTY - 1] = walkers[walked - 1]  # to complete the last party
                for i in range(0, walked, PARTY):
                    party = walkers[i : i + PARTY]
                    walk_together(points[now], coins[now], scale, base, estimates, up_from, down_from, party)
            singly = shift > 0 or walked < 3
            nans += block_nans
            first, now = after, 1 - now
        if apart:
            estimates[:] = own[:quantiles]
    return nans + walk_singly(items[first:], None, scale, estimates, up_from, down_from, key, position + first)
