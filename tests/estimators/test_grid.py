"""The grid saturates, floors and never wraps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.grid import HIGHEST_ITEM, LARGEST_ESTIMATE, LOWEST_ITEM, Grid

decimals = st.integers(0, 15)


@given(decimals=decimals, item=st.integers(-(2**80), 2**80))
def test_grid__is_exact_for_integers_until_they_saturate(decimals: int, item: int) -> None:
    exact = item * 10**decimals
    assert Grid(decimals).index(item) == min(max(exact, LOWEST_ITEM), HIGHEST_ITEM)


@given(decimals=decimals, item=st.floats(allow_nan=False))
def test_grid__floors_floats_after_scaling(decimals: int, item: float) -> None:
    index = Grid(decimals).index(item)
    scaled = item * 10.0**decimals
    if math.isinf(scaled):
        assert index == (HIGHEST_ITEM if scaled > 0 else LOWEST_ITEM)
    else:
        assert index == min(max(math.floor(Fraction(scaled)), LOWEST_ITEM), HIGHEST_ITEM)


@given(
    decimals=decimals,
    items=hnp.arrays(
        st.sampled_from([np.int64, np.uint64, np.int32, np.uint8, np.float64, np.float32]),
        st.integers(0, 30),
        elements=None,
        fill=st.nothing(),
    ),
)
def test_grid__maps_arrays_as_single_items(decimals: int, items: np.ndarray) -> None:
    if items.dtype.kind == "f":
        items = items[~np.isnan(items)]
    grid = Grid(decimals)
    assert grid.indices(items).tolist() == [grid.index(item) for item in items.tolist()]


def test_grid__puts_infinity_beyond_every_estimate() -> None:
    assert Grid(3).index(math.inf) > LARGEST_ESTIMATE + 2**61
    assert Grid(3).index(-math.inf) < -LARGEST_ESTIMATE - 2**61


@pytest.mark.parametrize("decimals", [-1, 16, 10**9])
def test_grid__refuses_decimals_out_of_range(decimals: int) -> None:
    with pytest.raises(ParameterError, match="decimals must be between 0 and 15"):
        Grid(decimals)


@pytest.mark.parametrize("decimals", [1.0, "2", None, True])
def test_grid__refuses_decimals_of_other_types(decimals: object) -> None:
    with pytest.raises(ParameterTypeError, match="decimals"):
        Grid(decimals)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [math.nan, math.inf, 1e30, 10**400])
def test_grid__refuses_starts_beyond_its_ends(start: float) -> None:
    with pytest.raises(ParameterError, match="start"):
        Grid(2).start(start)


@pytest.mark.parametrize("start", ["0", None, 1j, True])
def test_grid__refuses_starts_of_other_types(start: object) -> None:
    with pytest.raises(ParameterTypeError, match="start"):
        Grid(2).start(start)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [5, 5.0, np.int32(5), np.float32(5)])
def test_grid__accepts_any_number_as_a_start(start: float) -> None:
    assert Grid(2).start(start) == 500
