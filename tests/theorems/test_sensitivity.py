"""Theorems 1 and 2: two estimates never move apart, and one replaced item moves an estimate by at most 2."""

import itertools
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels import coins
from tests.support import naive

quantiles = st.floats(1e-9, 1 - 1e-9, exclude_min=True, exclude_max=True)
coin_values = st.integers(0, coins.COINS - 1)
reals = st.floats(-100, 100) | st.integers(-100, 100)


@pytest.mark.parametrize("permission", [naive.NOTHING, naive.UP, naive.DOWN, naive.BOTH])
def test_theorem_1__estimates_never_move_apart_exhaustively(permission: tuple[bool, bool]) -> None:
    """Theorem 1: fed the same item and coin, two estimates never end farther apart than they were."""
    estimates = range(-6, 7)
    items = [Fraction(k, 2) for k in range(-16, 17)]  # on the grid, and between its points
    for a, b, item in itertools.product(estimates, estimates, items):
        after = abs(naive.walk([item], [permission], a) - naive.walk([item], [permission], b))  # type: ignore[list-item]
        assert after <= abs(a - b)


@given(q=quantiles, coin=coin_values, a=st.integers(-60, 60), b=st.integers(-60, 60), item=reals)
def test_theorem_1__estimates_never_move_apart_on_real_items(q: float, coin: int, a: int, b: int, item: float) -> None:
    thresholds = coins.thresholds(q)
    assert abs(step(a, item, coin, *thresholds) - step(b, item, coin, *thresholds)) <= abs(a - b)


Walk = Callable[[tuple[int, ...], tuple[tuple[bool, bool], ...], int], int]


def largest_move(walk: Walk, length: int = 3, alphabet: tuple[int, ...] = (-3, -1, 0, 1, 3)) -> int:
    """How far one replaced item can move the end of a walk: over all streams, coins, kinds of q and starts."""
    largest = 0
    for kinds in (naive.COINS_OF_HIGH_Q, naive.COINS_OF_LOW_Q):
        for tape in itertools.product(kinds, repeat=length):
            for start in (-2, 0, 1):
                ends = {s: walk(s, tape, start) for s in itertools.product(alphabet, repeat=length)}
                for stream, end in ends.items():
                    for other in naive.neighbours(stream, alphabet):
                        largest = max(largest, abs(end - ends[other]))
    return largest


def test_theorem_2__one_item_moves_the_estimate_by_two_exhaustively() -> None:
    """Theorem 2: one replaced item moves the estimate by at most 2, for ever, and 2 is reached."""
    assert largest_move(naive.walk) == 2


def test_theorem_2__enumeration_catches_a_start_at_the_first_item() -> None:
    """The paper's speed-up, which its authors' program keeps in the private versions."""

    def from_first_item(stream: tuple[int, ...], tape: tuple[tuple[bool, bool], ...], start: int) -> int:
        return naive.walk(stream, tape, stream[0])

    assert largest_move(from_first_item) > 2


def test_theorem_2__does_not_cover_removing_an_item() -> None:
    """Why neighbours replace and never remove: what comes after meets other coins, and no bound is left."""
    pairs = 20
    tape = [naive.UP, naive.NOTHING] * pairs
    stream = [100, -100] * pairs
    assert naive.walk(stream, tape) == pairs
    assert naive.walk(stream[1:], tape[:-1]) == 0
