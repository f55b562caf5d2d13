"""Frugal-1U: the paper's algorithm, and the two facts that its privacy rests on, by enumeration."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels import coins
from tests.support import naive

quantiles = st.floats(1e-9, 1 - 1e-9, exclude_min=True, exclude_max=True)
coin_values = st.integers(0, coins.COINS - 1)
reals = st.floats(-100, 100) | st.integers(-100, 100)


@given(q=quantiles, coin=coin_values, estimate=st.integers(-50, 50), item=reals)
def test_step_is_the_papers_algorithm(q: float, coin: int, estimate: int, item: float) -> None:
    assert step(estimate, item, coin, *coins.thresholds(q)) == naive.frugal_1u(
        [item], q, [naive.rand_of(coin)], estimate
    )


@pytest.mark.parametrize("permission", [naive.NOTHING, naive.UP, naive.DOWN, naive.BOTH])
def test_contraction_exhaustively(permission: tuple[bool, bool]) -> None:
    """Theorem 1: fed the same item and coin, two estimates never end farther apart than they were."""
    estimates = range(-6, 7)
    items = [Fraction(k, 2) for k in range(-16, 17)]  # on the grid, and between its points
    for a, b, item in itertools.product(estimates, estimates, items):
        after = abs(naive.walk([item], [permission], a) - naive.walk([item], [permission], b))  # type: ignore[list-item]
        assert after <= abs(a - b)


@given(q=quantiles, coin=coin_values, a=st.integers(-60, 60), b=st.integers(-60, 60), item=reals)
def test_contraction_on_real_items(q: float, coin: int, a: int, b: int, item: float) -> None:
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


def test_sensitivity_is_two_exhaustively() -> None:
    """Theorem 2: one replaced item moves the estimate by at most 2, for ever, and 2 is reached."""
    assert largest_move(naive.walk) == 2


def test_a_start_at_the_first_item_is_caught() -> None:
    """The paper's speed-up, which its authors' program keeps in the private versions."""

    def from_first_item(stream: tuple[int, ...], tape: tuple[tuple[bool, bool], ...], start: int) -> int:
        return naive.walk(stream, tape, stream[0])

    assert largest_move(from_first_item) > 2


def test_removing_an_item_under_a_fixed_coin_tape_is_not_covered() -> None:
    """Why neighbours replace and never remove: what comes after meets other coins, and no bound is left."""
    pairs = 20
    tape = [naive.UP, naive.NOTHING] * pairs
    stream = [100, -100] * pairs
    assert naive.walk(stream, tape) == pairs
    assert naive.walk(stream[1:], tape[:-1]) == 0


@given(
    qs=st.tuples(quantiles, quantiles),
    tape=st.lists(st.tuples(reals, coin_values), max_size=60),
    starts=st.tuples(st.integers(-20, 20), st.integers(0, 20)),
)
def test_estimates_that_share_coins_never_cross(
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


def test_it_finds_the_quantile() -> None:
    """Eight standard deviations of the jitter: a false alarm less than once in 10^14 runs; coins are seeded."""
    rng = np.random.default_rng(5)
    stream = rng.normal(50, 2, 1_000_000)
    f = dpf.Frugal1U([0.1, 0.5, 0.99], decimals=3, start=45.0, coin_seed=5)
    f.update_many(stream)
    for q, estimate in zip(f.quantiles, f.estimates, strict=True):
        truth = np.quantile(stream, q)
        density = np.mean(np.abs(stream - truth) < 0.1) / 200  # per grid step
        assert abs(estimate - truth) * 1000 < 8 * np.sqrt(q * (1 - q) / density)


def test_several_quantiles_equal_single_ones() -> None:
    stream = np.random.default_rng(1).normal(0, 30, 5_000)
    several = dpf.Frugal1U([0.9, 0.1, 0.5], decimals=1, coin_seed=3)
    several.update_many(stream)
    for q, estimate in zip(several.quantiles, several.estimates, strict=True):
        single = dpf.Frugal1U(q, decimals=1, coin_seed=3)
        single.update_many(stream)
        assert single.estimate == estimate


def test_start_is_in_data_units() -> None:
    assert dpf.Frugal1U(0.5, decimals=2, start=12.34).estimate == 12.34


def test_estimate_is_for_one_quantile() -> None:
    with pytest.raises(dpf.ParameterError, match="use estimates"):
        _ = dpf.Frugal1U([0.1, 0.2]).estimate
