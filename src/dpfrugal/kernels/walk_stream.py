"""The walk of Frugal-1U over an array of items, for one or several quantiles. Equal to ``frugal.step`` bit for bit.

Items are processed in blocks of 64. Three facts make this fast:

* Coins depend on positions only, so the coins of a block are computed at once, in a loop that vectorises. The items of
  a block become points: 16-bit distances from an origin that is close to all estimates, in units of 2^shift. All
  quantiles share both.
* The first n items of a block move an estimate by at most n. An item farther away than that, a far item, stays on its
  side of the estimate, whatever the others do: far items are counted, by comparing points and the upper halves of
  coins. The other items are near. A few near items are decided one by one; their position relative to the estimate
  follows from counting the earlier far items.
* With many near items, a step is a count of edges. An item moves an estimate m up if m is below its ``top``, and down
  if m is at or above its ``bottom``, so the step leads to m + 1 - [top <= m] - [bottom <= m]. An edge e of a later item
  is crossed after that step exactly if e - [e <= top] + [e >= bottom] is crossed before it. So four steps lead to m + 4
  less the number of eight edges at or below m, and eight edges are the eight bytes of a word: a subtraction and a
  count of bits. After g groups of four items, c edges have been crossed, and m is 4g - c.

``scale`` is None for integers that already are grid points, and 10.0**decimals for floats, whose grid points are exact
as floats while every estimate stays within ±2^53. The estimates must lie within 2^30 of each other, and there may be
at most 2^28 items. ``kernel_choice.advance`` ensures all that. NaN moves nothing, and its coin is used up.

Only ``walk`` and ``walk_singly`` are cached on disk. The other functions are part of them: fewer files load sooner.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.coins import BLOCK
from dpfrugal.kernels.compiled_coins import block_coins, coin
from dpfrugal.kernels.compiler import cached, inlined
from dpfrugal.kernels.intrinsics import lowest, ones, sides

GROUP: Final = 4
GROUPS: Final = BLOCK // GROUP
EDGES: Final = 2 * GROUP
# The point of an item that is none.
NOT_A_NUMBER: Final = -(2**15)
# Points are clipped to ±FARTHEST, which no estimate reaches; their distances to estimates then fit 16 bits.
FARTHEST: Final = 2**14 - 1
# Consecutive blocks that share the origin, and for each quantile the choice between few and many near items.
BATCH_OF_BLOCKS: Final = 128
# With more near items than this, counting edges is faster.
MOST_NEAR: Final = 8
CACHE_LINE: Final = 64

_1, _ONE_EACH, _TOP_EACH = np.uint64(1), np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@inlined
def block_points(items: Any, scale: Any, origin: Any, shift: Any, points: Any) -> Any:
    """The points of a block: distances from the origin in units of 2^shift. Returns the NaNs met."""
    farthest = np.int64(FARTHEST) << shift
    low, high = origin - farthest, origin + farthest
    nans = np.int32(0)
    for lane in range(BLOCK):
        if scale is None:
            points[lane] = np.int16(np.int64(min(max(items[lane], low), high) - origin) >> shift)
        else:
            point = np.floor(items[lane] * scale)
            nans = np.int32(nans + np.int32(point != point))
            # Not max and min: the comparison is false for NaN, which must not reach the conversion.
            raised = point if point > np.float64(low) else np.float64(low)
            clipped = raised if raised < np.float64(high) else np.float64(high)
            points[lane] = np.int16(np.int32(clipped - np.float64(origin)) >> np.int32(shift))
    if nans > 0:
        for lane in range(BLOCK):
            if items[lane] != items[lane]:
                points[lane] = np.int16(NOT_A_NUMBER)
    return nans


@inlined
def near_moves(
    items: Any, scale: Any, coins: Any, up: Any, down: Any, near: Any, estimate: Any, thresholds: Any
) -> Any:
    """How far the few near items of a block move an estimate, given the far ones that move it up and down.

    The first one is decided whether or not it exists: a branch on that would often be mispredicted.
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
def transpose(points: Any, coins: Any, transposed_points: Any, transposed_coins: Any) -> Any:
    """The first items of all groups, then the second ones, and so on, so that ``block_edges`` vectorises."""
    for group in range(GROUPS):
        for rank in range(GROUP):
            transposed_points[rank * GROUPS + group] = points[group * GROUP + rank]
            transposed_coins[rank * GROUPS + group] = coins[group * GROUP + rank]


@inlined
def edges(point: Any, coin: Any, scale: Any, estimate: Any, up_from: Any, down_from: Any) -> Any:
    """The top and the bottom of an item, as distances from the estimate at the start of the block."""
    byte = np.int8(min(max(np.int16(point - estimate), np.int16(-128)), np.int16(127)))
    distance = min(max(byte, np.int8(-BLOCK)), np.int8(BLOCK))
    is_number = scale is None or point != NOT_A_NUMBER
    top = distance if (coin >= up_from) & is_number else np.int8(-BLOCK)
    bottom = np.int8(distance + 1) if (coin >= down_from) & is_number else np.int8(BLOCK)
    return top, bottom


@inlined
def before(edge: Any, top: Any, bottom: Any) -> Any:
    """The edge that is crossed before an item's step exactly if ``edge`` is crossed after it."""
    return np.int8(edge - (np.int8(1) - np.int8(edge > top)) + (np.int8(1) - np.int8(bottom > edge)))


@inlined
def block_edges(points: Any, coins: Any, scale: Any, estimate: Any, up_from: Any, down_from: Any, room: Any) -> Any:
    """Eight edges per group, as bytes: edge e of group g is crossed if byte 128 + 4g - e, less c, is 128 or more.

    No byte borrows from the next: the edges of a group lie within [-67, 68], and an estimate is within ±60 when it
    gets there, so all differences stay within [0, 255].
    """
    for g in range(GROUPS):
        top, bottom = edges(points[g], coins[g], scale, estimate, up_from, down_from)
        top_1, bottom_1 = edges(points[GROUPS + g], coins[GROUPS + g], scale, estimate, up_from, down_from)
        top_2, bottom_2 = edges(points[2 * GROUPS + g], coins[2 * GROUPS + g], scale, estimate, up_from, down_from)
        top_3, bottom_3 = edges(points[3 * GROUPS + g], coins[3 * GROUPS + g], scale, estimate, up_from, down_from)
        top_3, bottom_3 = before(top_3, top_2, bottom_2), before(bottom_3, top_2, bottom_2)
        top_3, bottom_3 = before(top_3, top_1, bottom_1), before(bottom_3, top_1, bottom_1)
        top_2, bottom_2 = before(top_2, top_1, bottom_1), before(bottom_2, top_1, bottom_1)
        top_3, bottom_3 = before(top_3, top, bottom), before(bottom_3, top, bottom)
        top_2, bottom_2 = before(top_2, top, bottom), before(bottom_2, top, bottom)
        top_1, bottom_1 = before(top_1, top, bottom), before(bottom_1, top, bottom)
        start = np.int32(128 + GROUP * g)
        room[EDGES * g] = np.uint8(start - top)
        room[EDGES * g + 1] = np.uint8(start - bottom)
        room[EDGES * g + 2] = np.uint8(start - top_1)
        room[EDGES * g + 3] = np.uint8(start - bottom_1)
        room[EDGES * g + 4] = np.uint8(start - top_2)
        room[EDGES * g + 5] = np.uint8(start - bottom_2)
        room[EDGES * g + 6] = np.uint8(start - top_3)
        room[EDGES * g + 7] = np.uint8(start - bottom_3)


@inlined
def crossed(words: Any) -> Any:
    """How many edges of a block an estimate crosses."""
    count = np.uint64(0)
    for group in range(GROUPS):
        count += ones((words[group] - count * _ONE_EACH) & _TOP_EACH)
    return np.int32(count)


@inlined
def aligned(size: Any) -> Any:
    """Bytes that begin a cache line: vectors that straddle two lines are read at half the speed."""
    buffer = np.empty(size + CACHE_LINE, np.uint8)
    start = CACHE_LINE - np.int64(buffer.ctypes.data) % CACHE_LINE
    return buffer[start : start + size]


@cached
def walk_singly(
    items: Any, missing: Any, scale: Any, estimates: Any, up_from: Any, down_from: Any, key: Any, position: Any
) -> Any:
    """``frugal.walk_plainly``: item by item, for incomplete blocks and for nulls. Returns the NaNs met."""
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
def frame(estimates: Any, margins: Any) -> Any:
    """The origin and the shift of the points of a batch of blocks, such that no estimate leaves their range.

    The margin of a lane is how far the earlier items of a block can move an estimate, in units of 2^shift, rounded up:
    items whose points are farther away than that are far.
    """
    half_spread = (estimates.max() - estimates.min()) // 2
    shift = np.int64(0)
    while (half_spread + BATCH_OF_BLOCKS * BLOCK) >> shift > FARTHEST - 2 * BLOCK:
        shift += 1
    for lane in range(BLOCK):
        margins[lane] = np.int16(-(-lane >> shift))
    return estimates.min() + half_spread, shift


@cached
def walk(items: Any, scale: Any, estimates: Any, up_from: Any, down_from: Any, key: Any, position: Any) -> Any:
    """Move every estimate past all items, in place; the items are read once. Returns the NaNs met."""
    size, quantiles = items.shape[0], estimates.shape[0]
    coins, transposed_coins = aligned(8 * BLOCK).view(np.uint32).reshape(2, BLOCK), aligned(4 * BLOCK).view(np.uint32)
    points, transposed_points = aligned(4 * BLOCK).view(np.int16).reshape(2, BLOCK), aligned(2 * BLOCK).view(np.int16)
    upper_coins = aligned(4 * BLOCK).view(np.uint16).reshape(2, BLOCK)
    margins, fine_points = aligned(2 * BLOCK).view(np.int16), aligned(2 * BLOCK).view(np.int16)
    edge_bytes = aligned(quantiles * EDGES * GROUPS).reshape(quantiles, EDGES * GROUPS)
    edge_words = edge_bytes.view(np.uint64)
    has_near, many_near = np.zeros(quantiles, np.bool_), np.zeros(quantiles, np.bool_)
    first = min(size, -position % BLOCK)
    nans = walk_singly(items[:first], None, scale, estimates, up_from, down_from, key, position)
    while first + BLOCK <= size:
        origin, shift = frame(estimates, margins)
        has_near[:], many_near[:] = False, False
        stop = first + min(BATCH_OF_BLOCKS, (size - first) // BLOCK) * BLOCK
        block_coins(key, position + first, coins[0], upper_coins[0])
        next_nans = block_points(items[first : first + BLOCK], scale, origin, shift, points[0])
        now = 0
        while first < stop:
            block_nans, after, transposed = next_nans, first + BLOCK, False
            if after < stop:  # One block ahead: loading what was just stored stalls.
                block_coins(key, position + after, coins[1 - now], upper_coins[1 - now])
                next_nans = block_points(items[after : after + BLOCK], scale, origin, shift, points[1 - now])
            for k in range(quantiles):
                thresholds = up_from[k], down_from[k]
                if block_nans == 0 and not many_near[k]:
                    point = np.int16((estimates[k] - origin) >> shift)
                    up, down, near = sides(points[now], margins, upper_coins[now], point, *thresholds)
                    has_near[k], many_near[k] = has_near[k] | (near != 0), ones(near) > MOST_NEAR
                    if not many_near[k]:
                        if has_near[k]:
                            here = estimates[k]
                            estimates[k] += near_moves(
                                items[first:after], scale, coins[now], up, down, near, here, thresholds
                            )
                        estimates[k] += np.int64(ones(up)) - np.int64(ones(down))
                        continue
                many_near[k], point = True, np.int16(estimates[k] - origin)
                if shift > 0:  # too coarse for edges
                    block_points(items[first:after], scale, estimates[k], 0, fine_points)
                    transpose(fine_points, coins[now], transposed_points, transposed_coins)
                    point = np.int16(0)
                elif not transposed:
                    transpose(points[now], coins[now], transposed_points, transposed_coins)
                    transposed = True
                block_edges(transposed_points, transposed_coins, scale, point, *thresholds, edge_bytes[k])
            # In a loop of their own: the processor overlaps these chains of dependent counts.
            for k in range(quantiles):
                if many_near[k]:
                    estimates[k] += BLOCK - crossed(edge_words[k])
            nans += block_nans
            first, now = after, 1 - now
    return nans + walk_singly(items[first:], None, scale, estimates, up_from, down_from, key, position + first)
