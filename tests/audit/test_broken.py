"""Each broken estimator has its one mistake and no other: what it plants is seen in one run, without statistics."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.audit.broken import (
    BROKEN,
    CountsTwice,
    EdgesFromRawCounts,
    FromFirstItem,
    PerKeyCoins,
    QuietSegments,
    QuietWalk,
    SkipsMissing,
    WithoutReAnchoring,
    quieter,
)
from dpfrugal.audit.broken_tables import BROKEN_TABLES
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.noise_tape import Seeded, no_noise, replace_noise

ONE = dpf.PureDP(epsilon=1.0)
NAN = float("nan")


@pytest.fixture(autouse=True)
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is released is the raw state, so a mistake shows itself."""
    replace_noise(monkeypatch, no_noise)


def walked(make: Any, *batches: list[float], **options: Any) -> list[float]:
    """What is released after each batch, with known coins."""
    estimator = make(0.5, ONE, coin_seed=3, **options)
    released = []
    for batch in batches:
        estimator.update_many(batch)
        released.append(estimator.release().value)
    return released


guarantees = st.one_of(
    st.floats(0.1, 5).map(lambda epsilon: dpf.PureDP(epsilon=epsilon)),
    st.floats(0.1, 5).map(lambda rho: dpf.ZCDP(rho=rho)),
)


@given(guarantees, st.integers(1, 9), st.sampled_from([0.25, 0.5, 0.7]))
def test_quieter__has_that_share_of_the_noise(guarantee: Guarantee, moved: int, share: float) -> None:
    sensitivity = Sensitivity.of(moved)
    weaker = quieter(guarantee, sensitivity, share)
    assert type(weaker) is type(guarantee)
    assert weaker.noise_scale(sensitivity) == pytest.approx(share * guarantee.noise_scale(sensitivity))


def test_quiet__walk_and_segments_state_less_than_they_promise() -> None:
    assert QuietWalk(0.5, ONE).guarantee.size == pytest.approx(1 / 0.7)
    assert QuietSegments(0.5, ONE).guarantee.size == pytest.approx(2.0)


def test_first_item__moves_the_start() -> None:
    (near,), (far,) = (walked(FromFirstItem, [first, 0.0, 0.0]) for first in (0.0, 1e6))
    assert far - near > 900_000
    sound = [walked(dpf.DPFrugal1U, [first, 0.0, 0.0])[0] for first in (0.0, 1e6)]
    assert abs(sound[1] - sound[0]) <= 2


def test_no_re_anchoring__goes_on_from_the_raw_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise of +1000 at every release a sound walk goes on from there, this one from where it was."""
    replace_noise(monkeypatch, lambda values: [value + 1_000 for value in values])
    batches = [0.0] * 5, [0.0]
    sound, raw = (walked(make, *batches)[1] for make in (dpf.DPFrugal1U, WithoutReAnchoring))
    assert sound > 1_900
    assert raw < 1_100


def test_skipped_coins__let_a_missing_item_move_all_later_coins() -> None:
    """Of 40 items one is missing: a sound walk ends within two steps of the other, this one anywhere."""
    items = list(np.random.default_rng(1).choice([-1e6, 1e6], 40))
    apart = []
    for make in (dpf.DPFrugal1U, SkipsMissing):
        ends = [walked(make, [first, *items], nan_policy="omit")[0] for first in (1e6, NAN)]
        apart.append(abs(ends[0] - ends[1]))
    assert apart[0] <= 2
    assert apart[1] > 2


def test_per_key_coins__let_a_row_that_changes_its_key_move_both() -> None:
    rows = list(np.random.default_rng(2).choice([-1e6, 1e6], 40))
    keys = list(np.random.default_rng(4).choice(["a", "b"], 40))

    def released(make: Any, first: str) -> np.ndarray:
        estimator = make(0.5, ONE, keys=["a", "b"], coin_seed=3)
        estimator.update_many([first, *keys], [1e6, *rows])
        return np.array(estimator.release()["value"].to_pylist())

    sound, broken = (np.abs(released(make, "a") - released(make, "b")) for make in (dpf.KeyedDPFrugal1U, PerKeyCoins))
    assert sound.sum() <= 2
    assert broken.sum() > 2


@pytest.mark.parametrize(("make", "moves"), [(dpf.PrivateQuantile, False), (EdgesFromRawCounts, True)])
def test_raw_edges__follow_the_counts(make: Any, moves: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise hides all of the counts here: the next edges may not know them."""
    edges = []
    for items in ([-1e9] * 50, [1e9] * 50):
        replace_noise(monkeypatch, lambda values: [7] * len(values))
        estimator = make(0.5, ONE)
        estimator.update_many(items)
        estimator.release(close=True)
        edges.append(estimator.edges)
    assert np.array_equal(*edges) is not moves


def test_counted_twice__adds_the_counts_of_the_segment_before(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for make in (dpf.PrivateQuantile, CountsTwice):
        replace_noise(monkeypatch, Seeded(3))
        estimator = make(0.5, ONE)
        for _ in range(2):
            estimator.update_many([0.5] * 20)
            estimator.release(close=True)
        counts.append(math.fsum(estimator.noisy_counts))
    assert counts[0] != counts[1]


def test_mistakes__each_have_cases_with_neighbours() -> None:
    assert BROKEN.keys() > BROKEN_TABLES.keys()
    for name, make in BROKEN.items():
        assert make(), name
