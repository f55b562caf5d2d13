"""The walk of many keys over one stream of rows. Equal to ``estimators.keyed.walk.walk_keys_plainly`` bit for bit.

Rows are processed in blocks of 64, whose coins are computed at once, in a loop that vectorises. A row then moves the
estimates of its key, which may lie anywhere in memory: where the estimates do not fit a near cache, those of the next
block are prefetched while this block's are moved, which makes the walk of a million keys about 1.5 times as fast.

``codes`` are the numbers of the rows' keys; a negative one moves nothing. ``scale`` is None for integers that already
are grid points, and 10.0**decimals for floats. The estimates of key c are ``estimates[c * quantiles]`` and the next
ones. ``steps`` is None where every step is one grid unit; see ``layout.STEP_EXPONENT`` for its bytes.

Keys go to threads round-robin in blocks of 2^block_bits. A call moves the keys of one thread; which rows of a block are
theirs is one word of 64 bits. Calls for different threads may run at the same time, as no two write to one estimate.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.bit_layout import STEP_EXPONENT
from dpfrugal.kernels.coins import BLOCK
from dpfrugal.kernels.compiled_coins import block_coins
from dpfrugal.kernels.compiler import cached, inlined
from dpfrugal.kernels.intrinsics import lowest, prefetch

SIGN: Final = 1 << 31
_0, _1 = np.uint64(0), np.uint64(1)


@inlined
def move(place: Any, item: Any, coin: Any, estimates: Any, steps: Any, up_from: Any, down_from: Any) -> Any:
    """``frugal.step`` of one estimate, times the size of its steps."""
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
    """One row: all estimates of its key. Outside the loop, the first one is a third faster, and often the only one."""
    item = value if scale is None else np.floor(value * scale)
    quantiles = up_from.shape[0]
    place = np.int64(code) * quantiles
    move(place, item, coin, estimates, steps, up_from[0], down_from[0])
    for k in range(1, quantiles):
        move(place + k, item, coin, estimates, steps, up_from[k], down_from[k])


@inlined
def rows_of(codes: Any, block_bits: Any, mask: Any, thread: Any) -> Any:
    """Which of up to 64 rows have a key of this thread."""
    rows = _0
    for lane in range(codes.shape[0]):
        rows |= np.uint64((codes[lane] >> block_bits) & mask == thread) << np.uint64(lane)
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
    block_bits: Any,
    threads: Any,
    thread: Any,
) -> Any:
    """Move the estimates of a thread's keys past all rows, in place, and then the clock: the first row's position.

    The number of threads is a power of two.
    """
    position, size, quantiles = clock[0], codes.shape[0], up_from.shape[0]
    # The mask keeps the sign: a negative code is no thread's.
    share = np.int32(block_bits), np.int32(threads - 1 - SIGN), np.int32(thread)
    coins, upper_coins = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint16)
    first, stop = 0, min(size, BLOCK - position % BLOCK)
    rows = rows_of(codes[first:stop], *share)
    while first < size:
        after = min(size, stop + BLOCK)
        rows_after = rows_of(codes[stop:after], *share)
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
