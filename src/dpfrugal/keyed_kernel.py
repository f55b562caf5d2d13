"""The walk of many keys over one stream, compiled by numba. Equal to ``frugal.step`` bit for bit.

Rows go by in blocks of 64, whose coins are computed at once, in a loop that vectorises. A row then moves the estimates
of its key, which may lie anywhere in memory: the next block's are asked for while this block's are moved.

``codes`` are the places of the rows' keys; a negative one moves nothing. ``scale`` is None for integers that already
are grid points, and 10.0**decimals for floats. The estimates of key c are ``estimates[c * quantiles]`` and the next
ones. ``steps`` is None where every step is one grid unit; see ``steps`` for its bytes.

2^estate_bits neighbouring keys make an estate, and estates are dealt out in turn to ``parties``, a power of two. The
rows go by once for each party: where all estimates together take more pages of memory than the processor keeps track
of, that is faster. Calls for different parties may run at the same time: no two of them write to one estimate.
"""

from typing import Any

import numpy as np

from dpfrugal.bits import prefetch
from dpfrugal.coins import BLOCK
from dpfrugal.compiler import cached
from dpfrugal.kernels import block_coins, inlined
from dpfrugal.steps import EXPONENT


@inlined
def move(place: Any, item: Any, coin: Any, estimates: Any, steps: Any, up_from: Any, down_from: Any) -> Any:
    """``frugal.step`` of one estimate, in its own steps."""
    estimate = estimates[place]
    up = (item > estimate) & (coin >= up_from)
    down = (item < estimate) & (coin >= down_from)
    moved = np.int64(up) - np.int64(down)
    if steps is not None:
        moved <<= np.int64(steps[place] & EXPONENT)
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
def listed(codes: Any, estate_bits: Any, parties: Any, party: Any, rows: Any) -> Any:
    """Write down the rows whose keys are declared and of this party. Returns how many.

    A row is written down before it is known to belong there: the processor could only guess the answer.
    """
    count = np.int64(0)
    for lane in range(codes.shape[0]):
        rows[count] = lane
        here = (codes[lane] >> estate_bits) & (parties - 1) == party
        count += np.int64(here & (codes[lane] >= 0))
    return count


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
    estate_bits: Any,
    parties: Any,
    first_party: Any,
    last_party: Any,
) -> Any:
    """Move the estimates past all rows, in place, and then the clock, which is the first row's position."""
    position, size, quantiles = clock[0], codes.shape[0], up_from.shape[0]
    coins, upper_coins = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint16)
    rows, now = np.empty((2, BLOCK + 1), np.int32), 0
    for party in range(first_party, last_party + 1):
        first, stop = 0, min(size, BLOCK - position % BLOCK)
        count = listed(codes[first:stop], estate_bits, parties, party, rows[now])
        while first < size:
            after = min(size, stop + BLOCK)
            count_after = listed(codes[stop:after], estate_bits, parties, party, rows[1 - now])
            for i in range(count_after):
                prefetch(estimates, np.int64(codes[stop + rows[1 - now, i]]) * quantiles)
            lead = (position + first) % BLOCK
            block_coins(key, position + first - lead, coins, upper_coins)
            for i in range(count):
                lane = rows[now, i]
                code, value = codes[first + lane], items[first + lane]
                move_key(code, value, scale, coins[lead + lane], estimates, steps, up_from, down_from)
            first, stop, count, now = stop, after, count_after, 1 - now
    clock[0] = position + size
