"""Rows within intervals, counted and collected in one scan. Equal to ``estimators.table.scanning.scan_by_numpy``.

Rows are compared 64 at a time, which gives a word of bits per comparison: counting is counting bits, and only the rows
whose bits say that they lie within an interval are touched one by one.
"""

from typing import Any

import numpy as np

from dpfrugal.kernels.coins import BLOCK
from dpfrugal.kernels.compiler import cached
from dpfrugal.kernels.intrinsics import compared, lowest, ones


@cached
def scan(
    rows: Any, lows: Any, highs: Any, collected: Any, below: Any, upto: Any, found: Any, size: Any, first: Any
) -> Any:
    """Count rows below each low and up to each high, and copy those within the collected intervals to ``found``.

    It starts at the row ``first`` and stops where ``found``, of which ``size`` places are taken, might not have room
    for a whole block; returns the row at which it stopped, and the places taken then.
    """
    end, one = rows.shape[0], np.uint64(1)
    room = found.shape[0] - BLOCK * lows.shape[0]
    while first + BLOCK <= end and size <= room:
        for k in range(lows.shape[0]):
            are_below, are_upto = compared(rows, first, lows[k], highs[k])
            below[k] += np.int64(ones(are_below))
            upto[k] += np.int64(ones(are_upto))
            if collected[k]:
                within = are_upto & ~are_below
                while within:
                    found[size] = rows[first + lowest(within)]
                    size += 1
                    within &= within - one
        first += BLOCK
    if first + BLOCK > end and size <= room:
        for i in range(first, end):
            for k in range(lows.shape[0]):
                if rows[i] < lows[k]:
                    below[k] += 1
                if rows[i] <= highs[k]:
                    upto[k] += 1
                    if collected[k] and rows[i] >= lows[k]:
                        found[size] = rows[i]
                        size += 1
        first = end
    return first, size
