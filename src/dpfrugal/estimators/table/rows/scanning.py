"""One scan over rows: how many lie below each of some intervals and up to its end, and which lie within it.

The compiled form compares 64 rows at a time and runs at the speed of reading memory for one interval. numpy scans
until the work repays loading numba.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.rows.native_rows import Rows
from dpfrugal.kernels.compiler import loading, read_only, worth_loading

BLOCK: Final = 1 << 15
# numpy takes 1.5 ns longer per row and interval than compiled code, loading which takes a third of a second.
WORTH_COMPILING: Final = 1 << 28
ROOM: Final = 1 << 16  # rows for which there is room at first

_compared = 0


class Scan:
    """Intervals of rows, from each of ``lows`` to that of ``highs``; those of ``collected`` are collected.

    ``below`` and ``upto`` count the rows scanned so far, ``rows`` their number; ``found`` has those of the collected
    intervals in no order.
    """

    def __init__(self, lows: Rows, highs: Rows, collected: NDArray[np.bool_]) -> None:
        self._lows, self._highs, self._collected = lows, highs, collected
        self.below, self.upto = np.zeros(lows.size, dtype=np.int64), np.zeros(lows.size, dtype=np.int64)
        self.rows = 0
        self._found, self._size = np.empty(ROOM + 64 * lows.size, dtype=lows.dtype), 0

    @property
    def found(self) -> Rows:
        """The rows of the collected intervals, in no order."""
        return self._found[: self._size]

    def read(self, arrays: Iterable[Rows]) -> None:
        """Scan these rows too."""
        global _compared
        for rows in arrays:
            self.rows += rows.size
            work = rows.size * self._lows.size
            if worth_loading(_compared + work, WORTH_COMPILING):
                self._read_compiled(rows)
            else:
                _compared += work
                found = scan_by_numpy(rows, self._lows, self._highs, self._collected, self.below, self.upto)
                while self._size + found.size > self._found.size:
                    self._grow()
                self._found[self._size : self._size + found.size] = found
                self._size += found.size

    def _read_compiled(self, rows: Rows) -> None:
        with loading(("scanning", rows.dtype)):
            from dpfrugal.kernels.select import scan
        first, rows = 0, read_only(rows)
        while first < rows.size:
            with loading(("scanning", rows.dtype)):
                first, self._size = scan(
                    rows,
                    self._lows,
                    self._highs,
                    self._collected,
                    self.below,
                    self.upto,
                    self._found,
                    self._size,
                    first,
                )
            if first < rows.size:
                self._grow()

    def _grow(self) -> None:
        larger = np.empty(2 * self._found.size, dtype=self._found.dtype)
        larger[: self._size] = self.found
        self._found = larger


def scan_by_numpy(
    rows: Rows,
    lows: Rows,
    highs: Rows,
    collected: NDArray[np.bool_],
    below: NDArray[np.int64],
    upto: NDArray[np.int64],
) -> Rows:
    """Add to ``below`` and ``upto`` the rows below each low and up to each high; return those collected."""
    found = [rows[:0]]
    for first in range(0, rows.size, BLOCK):
        block = rows[first : first + BLOCK]
        for k in range(lows.size):
            are_upto = block <= highs[k]
            are_below = block < lows[k]
            below[k] += np.count_nonzero(are_below)
            upto[k] += np.count_nonzero(are_upto)
            if collected[k]:
                found.append(block[are_upto & ~are_below])
    return np.concatenate(found)
