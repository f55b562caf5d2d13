"""Theorem 14: no transcript of a walk tells more of a person than the moves on record."""

import itertools
import math

import pytest

from dpfrugal.budget import person_move_losses
from dpfrugal.budget.person_moves import Exposure, Move
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.privacy.discrete_gaussian import mass

SIGMA, REACH = 1.2, 9


CHANCES = {x: math.exp(-x * x / (2 * SIGMA**2)) / mass(SIGMA) for x in range(-REACH, REACH + 1)}


ITEMS = (-9.0, 9.0)


def transcript(items: tuple[float, ...], cuts: tuple[int, ...], *, late: bool) -> dict[tuple[int, ...], float]:
    """Chances of the releases of a walk under a coin that allows every step, with Gaussian noise and re-anchoring.

    A release comes after each cut; with ``late`` the second one only if the first was above 0, which is looking.
    """
    done: dict[tuple[int, ...], float] = {}

    def go_on(first: int, anchor: int, seen: tuple[int, ...], chance: float) -> None:
        if len(seen) == len(cuts):
            done[seen] = done.get(seen, 0.0) + chance
            return
        last = cuts[len(seen)]
        if late and seen and seen[0] <= 0:
            last = min(last + 1, len(items))
        estimate = anchor
        for item in items[first:last]:
            estimate = step(estimate, item, 1, 0, 0)
        for x, p in CHANCES.items():
            go_on(last, estimate + x, (*seen, estimate + x), chance * p)

    go_on(0, 0, (), 1.0)
    return done


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("mine", [(0,), (2,), (0, 1), (0, 2), (1, 3)])
def test_theorem_14__no_transcript_of_a_walk_tells_more_than_its_exposure(mine: tuple[int, ...], late: bool) -> None:
    """All streams of four items and all neighbours, over two releases; a record of half the shift is found out."""
    cuts: tuple[int, ...] = (2, 3) if late else (2, 4)
    told: dict[float, float] = {}
    streams = [transcript(items, cuts, late=late) for items in itertools.product(ITEMS, repeat=4)]
    for (a, one), (b, other) in itertools.permutations(
        zip(itertools.product(ITEMS, repeat=4), streams, strict=True), 2
    ):
        if all(x == y or place in mine for place, (x, y) in enumerate(zip(a, b, strict=True))):
            for epsilon in (0.0, 1.0, 3.0, 5.0):
                delta = sum(max(0.0, p - math.exp(epsilon) * other.get(seen, 0.0)) for seen, p in one.items())
                told[epsilon] = max(told.get(epsilon, 0.0), delta)
    k = len(mine)
    found = person_move_losses.of_exposure(
        Exposure("gaussian", k, tuple(Move(items, SIGMA, 2 * items, 1) for items in range(1, k + 1)))
    )
    wrong = person_move_losses.of_exposure(
        Exposure("gaussian", k, tuple(Move(i, SIGMA, i, 1) for i in range(1, k + 1)))
    )
    cut_off = 1e-11  # noise beyond REACH is left out of the transcripts
    assert all(delta <= found.delta(epsilon) + cut_off for epsilon, delta in told.items())
    assert any(delta > 1.5 * wrong.delta(epsilon) for epsilon, delta in told.items())
    if mine in {(0,), (0, 1)}:  # all in one release: the bound is reached
        assert told[1.0] == pytest.approx(found.delta(1.0), rel=1e-6)
