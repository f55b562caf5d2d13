"""The statistic for river: it releases on its schedule and only then, and is a statistic as river has them."""

import copy
import pickle

import numpy as np
import pytest
from river import stats
from river.stats.base import Univariate

import dpfrugal as dpf
from dpfrugal.engines.river import RiverQuantile

ONE = dpf.PureDP(epsilon=1.0)


def test_river_quantile__is_a_univariate_statistic_that_comes_close() -> None:
    median = RiverQuantile(0.5, ONE, release_every=5_000)
    assert isinstance(median, Univariate)
    assert median.get() is None
    for each in np.random.default_rng(1).permutation(20_000) % 1_000:
        median.update(each)
    value = median.get()
    assert value is not None
    assert 400 < value < 600
    assert median.name == "private_quantile_0.5"
    assert repr(median).startswith("RiverQuantile: ")


def test_river_quantile__changes_only_on_its_schedule() -> None:
    """Whatever the items are: the values are seen to change at multiples of ``release_every`` and nowhere else."""
    for items in (range(400), [7] * 400, [10**6 * (each % 2) for each in range(400)]):
        statistic = RiverQuantile(0.5, ONE, release_every=100, estimator=dpf.DPFrugal1U)
        seen: list[object] = []
        releases: list[object] = []
        for each in items:
            statistic.update(each)
            seen.append(statistic.last)
            if not releases or releases[-1] is not statistic.last:
                releases.append(statistic.last)
        assert seen[98] is None
        assert [seen.index(release) for release in releases] == [0, 99, 199, 299, 399]


def test_river_quantile__of_another_quantile_can_be_chained() -> None:
    linked = stats.Shift(1) | RiverQuantile(0.9, ONE, release_every=3, estimator=dpf.DPFrugal1U)
    for each in range(10):
        linked.update(each)
    assert linked.get() is not None


def test_river_quantile__is_cloned_without_its_items_and_never_copied() -> None:
    statistic = RiverQuantile(0.9, ONE, release_every=3)
    for each in range(4):
        statistic.update(each)
    clone = statistic.clone()
    assert (clone.q, clone.release_every, clone.guarantee, clone.get()) == (0.9, 3, ONE, None)
    assert clone.clone({"q": 0.5}).q == 0.5
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(dpf.PrivacyError, match="cannot be copied or pickled"):
            copied(statistic)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"q": 1.5}, "q must"), ({"release_every": 0}, "release_every must"), ({"guarantee": 1.0}, "guarantee must")],
)
def test_river_quantile__refuses_wrong_parameters(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(dpf.DPFrugalError, match=said):
        RiverQuantile(**({"q": 0.5, "guarantee": ONE} | wrong))  # type: ignore[arg-type]


def test_river_quantile__refuses_what_is_no_number() -> None:
    with pytest.raises(dpf.DPFrugalError):
        RiverQuantile(0.5, ONE).update("7")  # type: ignore[arg-type]
