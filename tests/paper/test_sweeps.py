"""The sweeps of Figures 1 to 4: each row has a setting and a convention, and an estimator that sees all of it."""

import itertools

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.exact_quantiles import ranks
from dpfrugal.paper.noise_conventions import AS_PUBLISHED, CONVENTIONS, ON_GRID, OWN_COUNTS
from dpfrugal.paper.settings import ALGORITHMS, DISTRIBUTIONS, PANELS, Scale
from dpfrugal.paper.sweeps import KEY, Contender, conventions_of, exactly, tasks

SCALE = Scale(items=1_000, repetitions=3)


@pytest.mark.parametrize("figure", PANELS)
def test_panel__has_a_task_for_each_repetition_with_every_setting_in_both_conventions(figure: str) -> None:
    found = tasks(figure, SCALE)
    assert [task.repetition for task in found] == [1, 2, 3]
    for task in found:
        wanted = itertools.product(PANELS[figure].settings(SCALE.items), CONVENTIONS)
        assert [(row["items"], row["quantile"], row["convention"]) for row in task.rows] == [
            (setting.items, setting.quantile, convention) for setting, convention in wanted
        ]
        assert task.work == max(row["items"] for row in task.rows)
        assert all(set(row) == set(KEY) for row in task.rows)


def test_distributions__are_one_stream_for_all_algorithms_on_every_dataset() -> None:
    found = tasks(DISTRIBUTIONS, SCALE)
    assert [(task.dataset, task.repetition) for task in found] == list(itertools.product(DATASETS, (1, 2, 3)))
    names = {(row["algorithm"], row["convention"]) for task in found for row in task.rows}
    assert names == {*itertools.product(ALGORITHMS, CONVENTIONS), ("PrivateQuantile", OWN_COUNTS)}


def contender(convention: str) -> Contender:
    (task, *_) = tasks(DISTRIBUTIONS, SCALE)
    row = next(row for row in task.rows if row["convention"] == convention)
    return Contender(row, seed=7)


@pytest.mark.parametrize(("convention", "kind"), [(ON_GRID, dpf.DPFrugal1U), (OWN_COUNTS, dpf.PrivateQuantile)])
def test_contender__has_an_estimator_with_the_guarantee_of_its_row(convention: str, kind: type) -> None:
    one = contender(convention)
    assert type(one._estimator) is kind
    assert one._estimator is not None
    assert one._estimator.guarantee == one.setting.guarantee
    assert not one.published


def test_contender__as_published_releases_the_shared_walk() -> None:
    one = contender(AS_PUBLISHED)
    assert one._estimator is None
    assert one.published
    assert conventions_of(one.setting) == CONVENTIONS
    walk = Frugal1U([0.99], decimals=3, coin_seed=7)
    items = np.random.default_rng(1).normal(50, 5, 2_000)
    walk.update_many(items)
    one.update(items)
    assert abs(one.released(walk) - walk.estimate) < 200, "noise of scale 2: once in 10^43 runs"


def test_exact_quantiles__by_selection_are_those_of_the_stream() -> None:
    (chunk,) = DATASETS["D3"].stream(5, [900])
    ascending = np.sort(chunk)
    assert exactly("D3", 5, 900, 0.3) == tuple(ascending[rank - 1] for rank in ranks(0.3, 900))
