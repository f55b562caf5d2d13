"""The paper's α, and how often noise reaches it."""

import math
from pathlib import Path

import numpy as np
import pytest

from dpfrugal.paper.accuracy import BETA, alphas
from dpfrugal.paper.noise_conventions import AS_PUBLISHED
from dpfrugal.paper.settings import ALGORITHMS, Algorithm, Scale, default_setting
from dpfrugal.privacy import noise
from tests.paper.small_runs import rows_of, run

SPACING = 20


@pytest.mark.parametrize(
    ("algorithm", "formula", "two_sided"),
    [("L", 6.4378, 6.4378), ("G", 9.1867, 10.7770), ("ρ", 2.4758, 2.9044)],
)
def test_conventions__have_alpha_to_four_digits(algorithm: Algorithm, formula: float, two_sided: float) -> None:
    found = alphas(algorithm)
    assert (round(found.formula, 4), round(found.two_sided, 4)) == (formula, two_sided)
    assert found.printed == int(formula * 10) / 10  # the paper cuts its digits off


def test_alpha__that_is_whole_is_the_smallest_that_the_noise_exceeds_rarely_enough() -> None:
    """By the exact distribution of the noise: one step less is reached more often than β."""
    for algorithm in ALGORITHMS:
        guarantee = default_setting(algorithm, "D5", 10).guarantee
        scale, whole = guarantee.noise_scale(2), int(alphas(algorithm).whole)
        steps = np.arange(-4_000, 4_001)
        logs = -np.abs(steps) / scale if algorithm == "L" else -(steps**2) / (2 * scale**2)
        masses = np.exp(logs) / np.exp(logs).sum()
        reached = [float(masses[np.abs(steps) >= alpha].sum()) for alpha in (whole, whole - 1)]
        assert reached[0] <= BETA < reached[1]


def test_counts__are_of_the_noise_that_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of 0, 20, 40, … steps: how many reach an α is known."""
    draws = 1_000  # the fewest
    monkeypatch.setattr(noise, "add_noise", lambda values, *_: [SPACING * k for k in range(len(values))])
    run(tmp_path, "accuracy", scale=Scale(items=100, repetitions=1), jobs=1)
    for row in rows_of(tmp_path, "accuracy"):
        steps = float(row["alpha"]) * (1000 if row["convention"] == AS_PUBLISHED else 1)
        assert int(row["reached"]) == draws - math.ceil(steps / SPACING - 1e-9)
        assert int(row["draws"]) == draws
