"""Theorem 3: estimates that share their coins never cross."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels import coins

quantiles = st.floats(1e-9, 1 - 1e-9, exclude_min=True, exclude_max=True)
coin_values = st.integers(0, coins.COINS - 1)
reals = st.floats(-100, 100) | st.integers(-100, 100)


@given(
    qs=st.tuples(quantiles, quantiles),
    tape=st.lists(st.tuples(reals, coin_values), max_size=60),
    starts=st.tuples(st.integers(-20, 20), st.integers(0, 20)),
)
def test_theorem_3__estimates_that_share_coins_never_cross(
    qs: tuple[float, float], tape: list[tuple[Any, int]], starts: tuple[int, int]
) -> None:
    """Theorem 3."""
    low, high = starts[0], starts[0] + starts[1]
    low_q, high_q = sorted(qs)
    for item, coin in tape:
        point = int(np.floor(item))
        low = step(low, point, coin, *coins.thresholds(low_q))
        high = step(high, point, coin, *coins.thresholds(high_q))
        assert low <= high
