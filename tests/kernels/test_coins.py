"""Coins: exact thresholds, the same coin everywhere, and a statistical check that can fail."""

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.kernels import coins
from tests.support.naive import rand_of

FALSE_ALARM = 1e-9


@given(q=st.floats(0, 1, exclude_min=True, exclude_max=True), nudge=st.integers(-2, 2))
def test_thresholds__are_exact(q: float, nudge: int) -> None:
    up_from, down_from = coins.thresholds(q)
    for threshold, bound in ((up_from, 1 - Fraction(q)), (down_from, Fraction(q))):
        coin = threshold + nudge
        if 0 <= coin < coins.COINS - 1:  # the largest coin always allows a step
            assert (coin >= threshold) == (rand_of(coin) > bound)


@given(q=st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_thresholds__give_a_step_probability_of_q_to_32_bits(q: float) -> None:
    up_from, _ = coins.thresholds(q)
    assert abs(Fraction(coins.COINS - up_from, coins.COINS) - Fraction(q)) <= Fraction(1, coins.COINS)


def test_coins__have_the_worked_numbers_of_the_docstring() -> None:
    assert coins.thresholds(0.99) == (42_949_673, 4_252_017_623)


@given(key=st.integers(0, 2**64 - 1), position=st.integers(0, 2**62), count=st.integers(0, 200))
def test_coins__of_a_range_are_those_of_its_positions(key: int, position: int, count: int) -> None:
    expected = [coins.coin(key, position + i) for i in range(count)]
    assert coins.coins(key, position, count).tolist() == expected


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_coin_seed__out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(ParameterError, match="coin_seed"):
        coins.key_from_seed(seed)


@pytest.mark.parametrize("seed", [1.5, "1", True])
def test_coin_seed__of_another_type_is_refused(seed: object) -> None:
    with pytest.raises(ParameterTypeError, match="coin_seed"):
        coins.key_from_seed(seed)  # type: ignore[arg-type]


def test_coins__have_words_that_do_not_repeat() -> None:
    """The counter steps by an odd number, so it visits all 2^64 words; mix64 is a bijection (checked inverse)."""
    assert coins.GAMMA % 2 == 1
    for factor in (coins.MIX_1, coins.MIX_2):
        assert factor * pow(factor, -1, 2**64) % 2**64 == 1  # an odd factor: the multiplication can be undone


def drawn(key: int, count: int) -> NDArray[np.uint32]:
    return np.array([coins.coin(key, position) for position in range(count)], dtype=np.uint32)


def p_values(sample: NDArray[np.uint32]) -> dict[str, float]:
    """Uniformity of each byte, independence of neighbours and of the two halves of a word."""

    def chi_square(table: NDArray[np.int64]) -> float:
        expected = table.sum() / table.size
        statistic = float(((table - expected) ** 2).sum() / expected)
        return float(mpmath.gammainc((table.size - 1) / 2, statistic / 2, mpmath.inf, regularized=True))

    found = {f"byte {b}": chi_square(np.bincount((sample >> (8 * b)) & 255, minlength=256)) for b in range(4)}
    top = (sample >> 28).astype(np.int64)
    for lag in (1, 2, coins.HALF, coins.BLOCK):
        pairs = top[:-lag] * 16 + top[lag:]
        found[f"pairs at lag {lag}"] = chi_square(np.bincount(pairs, minlength=256))
    return found


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_coins__look_random(seed: int) -> None:
    """Eight tests of 60,000 coins, at a false-alarm rate of 1e-9 each; seeded, so it passes or fails for good."""
    assert min(p_values(drawn(coins.key_from_seed(seed), 60_000)).values()) > FALSE_ALARM


def counter_without_mixing(position: int) -> int:
    return (position * coins.GAMMA) % 2**64 >> 32


def same_word_for_both_halves(position: int) -> int:
    return coins.coin(1, position // coins.BLOCK * coins.BLOCK + position % coins.HALF)


@pytest.mark.parametrize("broken", [counter_without_mixing, same_word_for_both_halves])
def test_coins__would_be_caught_if_they_were_not_random(broken: Callable[[int], int]) -> None:
    sample = np.array([broken(position) for position in range(60_000)], dtype=np.uint32)
    assert min(p_values(sample).values()) < FALSE_ALARM


def test_coins__of_neighbouring_seeds_are_unrelated() -> None:
    first, second = drawn(coins.key_from_seed(0), 4_096), drawn(coins.key_from_seed(1), 4_096)
    assert len(set(first.tolist()) & set(second.tolist())) < 8  # by chance 0.004 in all
