"""Groups whose windows are all of their rows, as compiled choices take them."""

from collections.abc import Callable

import numpy as np

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.estimators.table.rows.stretches import Windows


def whole(codes: Codes, starts: Codes) -> tuple[Windows, Codes, Callable[[int], OrderStatistics]]:
    sizes = np.diff(starts)
    return (
        Windows(codes, starts, np.zeros_like(sizes)),
        sizes,
        lambda at: SortedRows(codes[starts[at] : starts[at + 1]]),
    )
