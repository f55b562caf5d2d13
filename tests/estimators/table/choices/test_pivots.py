"""Pivots and slopes: no worse than any other choice of a few, and rising."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpfrugal.estimators.table.choices.levels import ranges, steps_of
from dpfrugal.estimators.table.choices.pivots import promising, relative_slopes, squares_of

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


def sizes_of(steps: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([float(part.l1) for part in ranges(steps, "replace")])  # type: ignore[arg-type]


def error(pivots: tuple[int, ...], quantiles: tuple[Fraction, ...] = DECILES) -> float:
    """The predicted error at equal slopes under ε = 1."""
    steps = steps_of(quantiles, pivots)
    return float(sizes_of(steps).sum() * np.sqrt(squares_of(steps).sum(axis=1)).max())


def test_squares_of__a_quantile_inherits_from_the_pivots_beside_it() -> None:
    steps = steps_of(DECILES[:3], (1,))
    squares = squares_of(steps)
    assert squares.shape == (3, 2)
    assert squares[1].tolist() == [1.0, 0.0]  # the pivot: its own error alone
    assert all(0 < before < 1 and own == 1 for before, own in squares[[0, 2]])


@pytest.mark.parametrize("number", [1, 2])
def test_promising__is_no_worse_than_any_pivots_of_as_many(number: int) -> None:
    found = promising(DECILES, sizes_of, 1)
    assert 1 <= len(found) <= 3
    assert all(list(pivots) == sorted(set(pivots)) for pivots in found)
    every = (error(pivots) for pivots in itertools.combinations(range(9), number))
    assert error(found[0]) <= min(every) * (1 + 1e-9)


def test_promising__of_one_quantile_is_that_one() -> None:
    assert promising((Fraction(1, 2),), sizes_of, 1) == [(0,)]


@pytest.mark.parametrize("power", [1, 2])
def test_relative_slopes__have_a_smaller_error_than_equal_ones(power: int) -> None:
    steps = steps_of(DECILES, (3, 5))
    sizes, squares = sizes_of(steps), squares_of(steps)
    slopes = relative_slopes(sizes, squares, power)
    assert max(slopes) == 1
    assert min(slopes) > 0

    def predicted(parts: list[float]) -> float:
        each = np.array(parts)
        cost = (sizes * each**power).sum() ** (1 / power)
        return float(cost * np.sqrt((squares @ each**-2.0).max()))

    # Within a twentieth: the search minimises a norm that stands for the maximum.
    assert predicted([float(part) for part in slopes]) <= predicted([1.0] * sizes.size) * 1.05
    assert relative_slopes(sizes[:1], squares[:, :1], power) == [1]
