"""Predicted errors: those of walks of Laplace steps that return, on a fine lattice."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpfrugal.estimators.table.choices.walk_errors import bound_of_one, bounds, bridge, deviation_of_one, deviations

STEP = 1 / 32


def lattice(answers: int) -> list[NDArray[np.float64]]:
    """For each answer the distribution of its place, by the definition: one step after the other."""
    places = np.arange(-20 * 32, 20 * 32 + 1)
    step = np.exp(-np.abs(places) * STEP)
    forwards = [step]
    for _ in range(answers):
        forwards.append(np.convolve(forwards[-1], step, "same"))
    found = [forwards[j] * forwards[answers - 1 - j] for j in range(answers)]
    return [each / each.sum() for each in found]


@pytest.mark.parametrize("answers", [1, 2, 3, 9])
def test_deviations__are_those_of_walks_that_return(answers: int) -> None:
    places = np.arange(-20 * 32, 20 * 32 + 1) * STEP
    expected = [math.sqrt(float(np.sum(each * places**2))) for each in lattice(answers)]
    assert deviations(answers) == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-4])
def test_bounds__are_exceeded_no_more_often_than_they_say(beta: float) -> None:
    for answers in (1, 3, 9):
        places = np.abs(np.arange(-20 * 32, 20 * 32 + 1) * STEP)
        for bound, each in zip(bounds(answers, beta), lattice(answers), strict=True):
            assert each[places > bound + STEP].sum() <= beta
            assert each[places > bound - 2 * STEP].sum() > beta / 1.2, "and hardly less often"


def test_bounds__of_one_answer_are_those_of_a_laplace_variable() -> None:
    for beta in (0.5, 1e-3, 1e-9, 1e-100):
        on_the_grid = bridge(1, 40.0 + math.log(1 / beta)).bounds(beta)
        exact = bound_of_one(2.0, 2.0, beta)
        assert exact == pytest.approx(math.log(1 / beta) / 2)
        assert exact <= on_the_grid[0] <= 1.001 * exact + 0.1


def test_bound_of_one__is_exceeded_as_often_as_it_says() -> None:
    """With the density exp(−above·d) above 0 and exp(−below·|d|) below it: by sums over a fine grid."""
    places = (np.arange(200_000) + 0.5) * 1e-3
    above, below = np.exp(-0.6 * places), np.exp(-0.4 * places)
    both = above + below
    assert deviation_of_one(0.6, 0.4) == pytest.approx(math.sqrt((both * places**2).sum() / both.sum()), rel=1e-4)
    for beta in (0.3, 0.05, 1e-4):
        bound = bound_of_one(0.6, 0.4, beta)
        assert both[places > bound].sum() / both.sum() == pytest.approx(beta, rel=0.01)


def test_deviations__of_very_many_answers_are_finite() -> None:
    found = deviations(999)
    assert all(0.5 < each < 40 for each in found)
    assert found[499] == max(found)
