"""The compiled pass over a chunk is the readable one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.paper.exact_quantiles_kernel import gather

numbers = st.floats(allow_nan=False, width=16)


@given(st.lists(numbers, max_size=30), numbers, numbers)
def test_gather__keeps_what_lies_inside_and_counts_what_lies_below(items: list[float], low: float, high: float) -> None:
    kept = np.full(len(items) + 1, np.nan)
    count, below = gather(np.array(items, dtype=np.float64), low, high, kept)
    inside = [item for item in items if low <= item <= high]
    assert kept[:count].tolist() == inside
    assert below == sum(item < low for item in items)
