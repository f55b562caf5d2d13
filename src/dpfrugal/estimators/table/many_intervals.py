"""An interval around the released value of each of many groups of rows."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base_measure import Base
from dpfrugal.estimators.table.codes import Codes
from dpfrugal.estimators.table.intervals import Margin
from dpfrugal.estimators.table.order_statistics import SortedRows
from dpfrugal.estimators.table.radius import choose_interval


def choose_intervals(
    codes: Codes,
    starts: NDArray[np.int64],
    base: Base,
    values: Codes,
    quantile: Fraction,
    margins: Margin,
    slope: Fraction,
    progress: Callable[[int], None] | None = None,
) -> tuple[Codes, Codes, NDArray[np.bool_]]:
    """The codes of both ends for every group, and whether they are bounded."""
    groups = starts.size - 1
    low, high, bounded = np.empty(groups, np.int64), np.empty(groups, np.int64), np.empty(groups, np.bool_)
    for group in range(groups):
        rows = SortedRows(codes[starts[group] : starts[group + 1]])
        found = choose_interval(rows, base, int(values[group]), quantile, margins.rows(rows.rows), slope)
        low[group], high[group], bounded[group] = found.low, found.high, found.bounded
        if progress is not None and group % 256 == 255:
            progress(group + 1)
    return low, high, bounded
