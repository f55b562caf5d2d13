"""The two conventions for the noise: the same walk, and a thousand times the noise."""

import statistics
from pathlib import Path

import pytest

from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, CONVENTIONS, ON_GRID, SENSITIVITIES, mean_noise, noise_steps
from dpfrugal.paper.settings import ALGORITHMS, Algorithm, default_setting
from dpfrugal.privacy import noise
from tests.paper.small_runs import rows_of, run, without_noise


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_conventions__publish_a_thousand_times_the_noise_on_the_grid(algorithm: Algorithm) -> None:
    guarantee = default_setting(algorithm, "D5", 10).guarantee
    published, grid = (guarantee.noise_scale(SENSITIVITIES[convention]) for convention in CONVENTIONS)
    assert published == pytest.approx(1000 * grid)
    assert mean_noise(guarantee, AS_PUBLISHED) == pytest.approx(1000 * mean_noise(guarantee, ON_GRID))


def test_conventions__publish_laplace_noise_in_data_units() -> None:
    """|noise| has mean 2 and deviation 2: 4000 draws are off by 0.3 (nine deviations) less than once in 10^9 runs."""
    guarantee = default_setting("L", "D5", 10).guarantee
    means = {c: statistics.fmean(abs(step) / 1000 for step in noise_steps(4000, guarantee, c)) for c in CONVENTIONS}
    assert abs(means[AS_PUBLISHED] - 2) < 0.3
    assert abs(means[ON_GRID] - 2) > 0.3


def test_conventions__walk_the_same_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "add_noise", without_noise)
    run(tmp_path, "1b", "1c", "4")
    for figure in ("1b", "1c", "4"):
        released: dict[tuple[str, ...], set[str]] = {}
        for row in rows_of(tmp_path, figure):
            if row["algorithm"] != "PrivateQuantile":
                key = tuple(row[column] for column in ("dataset", "items", "quantile", "repetition"))
                released.setdefault(key, set()).add(row["released"])
        assert all(len(values) == 1 for values in released.values())
        for (name, items, quantile, repetition), (value,) in released.items():
            seed = DATASETS[name].seed(int(repetition))
            walk = Frugal1U(float(quantile), decimals=3, coin_seed=seed)
            for chunk in DATASETS[name].stream(seed, [int(items)]):
                walk.update_many(chunk)
            assert float(value) == walk.estimate
