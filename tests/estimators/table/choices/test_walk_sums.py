"""Sums in floats: the compiled ones have the states of the readable ones, and weights within both errors."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.choices.chain import Chain
from dpfrugal.estimators.table.choices.walk_sums import compiled_levels, half_rows, readable_levels

fractions = st.fractions(Fraction(1, 30), Fraction(29, 30), max_denominator=30)


def test_half_rows__are_twice_the_rank_whole_and_rest_apart() -> None:
    quantiles = (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3))
    found = half_rows(quantiles, [5, 6])
    assert found.floors.tolist() == [[3, 5, 6], [4, 6, 8]]
    assert found.orders.tolist() == [[1, 0, 2], [0, 0, 0]]
    for size, floors, parts in zip((5, 6), found.floors.tolist(), found.parts.tolist(), strict=True):
        assert np.allclose(np.array(floors) + parts, [float(2 * q * size) for q in quantiles])


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=8),
    st.lists(fractions, min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(1, 3),
    st.data(),
)
def test_compiled_levels__are_those_of_the_readable_form(
    ties: list[int], asked: list[Fraction], cap: int, steep: int, data: st.DataObject
) -> None:
    quantiles, rows, slope = tuple(sorted(asked)), sum(ties), Fraction(1, steep)
    upto = np.cumsum(ties)
    below = upto - ties
    first, last = np.empty((2, 2 * len(ties) + 1), dtype=np.int64)
    first[0], first[2::2], first[1::2] = 0, 2 * upto, 2 * below + 1
    last[:-1:2], last[-1], last[1::2] = 2 * below, 2 * rows, 2 * upto - 1
    size = st.lists(st.sampled_from([0.0, 0.25, 1.0, 1e-30]), min_size=first.size, max_size=first.size)
    masses = np.array(data.draw(size))
    compiled = compiled_levels(first, last, masses, half_rows(quantiles, [rows]), cap, slope, 1.0)
    half = 30  # no fraction of a quantile is finer than a sixtieth of a row
    while any((2 * q * rows * half).denominator != 1 for q in quantiles):
        half += 1
    targets = [int(2 * q * rows * half) for q in quantiles]
    near = [
        [region for region in range(first.size)
         if half * last[region] >= target - 2 * cap * half and half * first[region] <= target + 2 * cap * half
         and masses[region]]
        for target in targets
    ]  # fmt: skip
    chain = Chain((half * first).tolist(), (half * last).tolist(), targets, near)
    readable = readable_levels(chain, half, masses.tolist(), slope, 1.0)
    for one, other in zip(compiled, readable, strict=True):
        for name in ("regions", "sources", "source_ends"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
        assert np.allclose(one.places, other.places, rtol=0, atol=1e-12)
        weights = np.ldexp(one.weights, one.scale - other.scale)
        assert np.all(
            np.abs(weights - other.weights) <= (one.error + other.error) * other.weights + one.lost + other.lost
        )
