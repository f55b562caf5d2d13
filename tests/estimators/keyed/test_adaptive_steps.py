"""Adaptive steps: a rule on released values only; keys far away arrive, settled ones come to rest."""

from dataclasses import replace

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.adaptive_steps import (
    DOWN,
    LARGEST_EXPONENT,
    UP,
    adapted,
    exponents,
)
from dpfrugal.kernels.bit_layout import STEP_EXPONENT

ONE = dpf.PureDP(epsilon=1.0)


@pytest.mark.parametrize(
    ("before", "moved", "after"),
    [
        (0, 9, UP),  # the first move is noted
        (UP, 9, 1 | UP),  # the second doubles the step
        (5 | UP, 9, 6 | UP),
        (5 | DOWN, -9, 6 | DOWN),
        (5 | UP, -9, 4 | DOWN),  # a turn halves it
        (5 | DOWN, 9, 4 | UP),
        (5 | UP, 2, 4),  # and so does what may be noise
        (5, -2, 4),
        (5, 9, 5 | UP),
        (0, 0, 0),
        (DOWN, 9, UP),
        (LARGEST_EXPONENT | UP, 9, LARGEST_EXPONENT | UP),
    ],
)
def test_adapted__follows_the_rule(before: int, moved: float, after: int) -> None:
    assert adapted(np.array([before], dtype=np.uint8), np.array([moved * 1.0]), usual=3.0).tolist() == [after]


def test_adapted__fits_every_step_into_a_byte() -> None:
    assert LARGEST_EXPONENT <= STEP_EXPONENT
    assert STEP_EXPONENT & (UP | DOWN) == 0
    assert exponents(np.array([LARGEST_EXPONENT | DOWN], dtype=np.uint8)).tolist() == [LARGEST_EXPONENT]


def releases(
    keys: int, rows: int, count: int, adaptive_steps: bool, seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Errors and α of several releases: medians 1,000 grid units from the start, so many rows of each key a release."""
    rng = np.random.default_rng(seed)
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=np.arange(keys), adaptive_steps=adaptive_steps, coin_seed=seed)
    errors, alphas = [], []
    for _ in range(count):
        k.update_many(np.tile(np.arange(keys), rows), rng.normal(1_000, 20, keys * rows))
        table = k.release()
        errors.append(np.abs(table["value"].to_numpy() - 1_000))
        alphas.append(table["alpha"].to_numpy())
    return errors, alphas


def test_adaptive_steps__bring_a_key_a_thousand_steps_away_within_ten_releases() -> None:
    """300 keys of 100 rows a release.

    After ten releases a key is within 100 grid units with probability 0.967 (measured over 20,000 keys), independently
    of the others: that fewer than 85% of 300 are has a probability below 1e-15. After thirty, the step is 1 or 2 with
    probability 0.987: below 1e-30. With fixed steps no key arrives: half of 1,000 rows move it.
    """
    errors, alphas = releases(300, 100, 30, True, seed=1)
    assert np.mean(errors[9] < 100) > 0.85
    assert np.mean(errors[29] < 40) > 0.85
    assert np.mean(alphas[29] <= 2 * alphas[0]) > 0.85
    assert alphas[5].mean() > 4 * alphas[0][0], "steps have never grown"
    fixed, still = releases(300, 100, 10, False, seed=1)
    assert np.mean(fixed[9] < 100) == 0
    assert (still[9] == still[0]).all()


def settled_steps(keys: int, releases: int) -> np.ndarray:
    """The steps of keys at their median, density 1/2,507 per grid unit, whose steps were 1,024 at first."""
    rng = np.random.default_rng(2)
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=np.arange(keys), coin_seed=1)
    k._state = replace(k._state, steps=np.full((keys, 1), 10, dtype=np.uint8), widest=1024)
    for _ in range(releases):
        k.update_many(np.tile(np.arange(keys), 200), rng.normal(0, 1_000, 200 * keys))
        table = k.release()
    return np.array(table["alpha"]) / ONE.alpha(0.05, 2, exact=True)


def test_adaptive_steps__shrink_until_noise_is_no_larger_than_jitter() -> None:
    """Noise has a standard deviation of 2√2·s, jitter one of √(s/4f): they are equal at s = 78.

    After twenty releases a step is at most 64 with probability 0.995 (measured): for under 80% of 200, below 1e-40.
    """
    assert np.mean(settled_steps(200, 1) > 78) == 1
    assert np.mean(settled_steps(200, 20) < 78) > 0.8


def test_adaptive_steps__of_a_key_without_rows_come_to_the_smallest() -> None:
    """By noise alone a step is above 2 with probability 0.0075 (measured): for a tenth of 400 keys, below 1e-29."""
    k = dpf.KeyedDPFrugal1U(0.5, ONE, keys=np.arange(400))
    for _ in range(20):
        k.update_many([-1], [0])
        table = k.release()
    assert np.mean(table["alpha"].to_numpy() <= 2 * ONE.alpha(0.05, 2, exact=True)) > 0.9
