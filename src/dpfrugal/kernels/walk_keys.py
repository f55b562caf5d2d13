"""The walk of many keys over one stream, compiled by numba. Equal to ``frugal.step`` bit for bit.

Rows go by in blocks of 64, whose coins are computed at once, in a loop that vectorises. A row then moves the estimates
of its key, which may lie anywhere in memory: where they are far away, the next block's are asked for while this
block's are moved.

``codes`` are the places of the rows' keys; a negative one moves nothing. ``scale`` is None for integers that already
are grid points, and 10.0**decimals for floats. The estimates of key c are ``estimates[c * quantiles]`` and the next
ones. ``steps`` is None where every step is one grid unit; see ``steps`` for its bytes.

2^estate_bits neighbouring keys make an estate, and estates are dealt out in turn to ``parties``, a power of two. A call
moves the keys of one party: which rows of a block are theirs is one word of 64 bits. Calls for different parties may
run at the same time, as no two of them write to one estimate.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.coins import BLOCK
from dpfrugal.kernels.compiled_coins import block_coins
from dpfrugal.kernels.compiler import cached, inlined
from dpfrugal.kernels.intrinsics import lowest, matches, prefetch
from dpfrugal.kernels.layout import STEP_EXPONENT

SIGN: Final = 1 << 31
_0, _1 = np.uint64(0), np.uint64(1)


@inlined
def move(place: Any, item: Any, coin: Any, estimates: Any, steps: Any, up_from: Any, down_from: Any) -> Any:
    """``frugal.step`` of one estimate, in its own steps."""
    estimate = estimates[place]
    up = (item > estimate) & (coin >= up_from)
    down = (item < estimate) & (coin >= down_from)
    moved = np.int64(up) - np.int64(down)
    if steps is not None:
        moved <<= np.int64(steps[place] & STEP_EXPONENT)
    estimates[place] = estimate + moved


@inlined
def move_key(
    code: Any, value: Any, scale: Any, coin: Any, estimates: Any, steps: Any, up_from: Any, down_from: Any
) -> Any:
    """One row: all estimates of its key."""
    item = value if scale is None else np.floor(value * scale)
    quantiles = up_from.shape[0]
    place = np.int64(code) * quantiles
    move(place, item, coin, estimates, steps, up_from[0], down_from[0])
    for k in range(1, quantiles):
        move(place + k, item, coin, estimates, steps, up_from[k], down_from[k])


@inlined
def rows_of(codes: Any, estate_bits: Any, mask: Any, party: Any) -> Any:
    """Which of up to 64 rows have a key of this party; a negative code keeps its sign, and is of none."""
    if codes.shape[0] == BLOCK:
        return matches(codes, estate_bits, mask, party)
    rows = _0
    for lane in range(codes.shape[0]):
        rows |= np.uint64((codes[lane] >> estate_bits) & mask == party) << np.uint64(lane)
    return rows


@cached
def walk_keys(
    codes: Any,
    items: Any,
    scale: Any,
    estimates: Any,
    steps: Any,
    up_from: Any,
    down_from: Any,
    key: Any,
    clock: Any,
    far: Any,
    estate_bits: Any,
    parties: Any,
    party: Any,
) -> Any:
    """Move the estimates of a party past all rows, in place, and then the clock, which is the first row's position."""
    position, size, quantiles = clock[0], codes.shape[0], up_from.shape[0]
    shift, mask, wanted = np.int32(estate_bits), np.int32(parties - 1 - SIGN), np.int32(party)
    coins, upper_coins = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint16)
    first, stop = 0, min(size, BLOCK - position % BLOCK)
    rows = rows_of(codes[first:stop], shift, mask, wanted)
    while first < size:
        after = min(size, stop + BLOCK)
        rows_after = rows_of(codes[stop:after], shift, mask, wanted)
        waiting = rows_after if far else _0
        while waiting != _0:
            prefetch(estimates, np.int64(codes[stop + lowest(waiting)]) * quantiles)
            waiting &= waiting - _1
        lead = (position + first) % BLOCK
        block_coins(key, position + first - lead, coins, upper_coins)
        while rows != _0:
            lane = lowest(rows)
            rows &= rows - _1
            code, value = codes[first + lane], items[first + lane]
            move_key(code, value, scale, coins[lead + lane], estimates, steps, up_from, down_from)
        first, stop, rows = stop, after, rows_after
    clock[0] = position + size
