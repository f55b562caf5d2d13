"""The estimator that ``--algorithm`` names: every option reaches it, and a guess is never shown as a number."""

import math
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.cli.estimator_from_options import estimator_from, known, last_release, record, shown_values
from dpfrugal.cli.options import EstimatorOptions
from dpfrugal.estimators.releases import SegmentRelease

WALK, SEGMENTS = {"algorithm": "dp-frugal-1u"}, {"algorithm": "private-quantile"}


def asked(**options: Any) -> EstimatorOptions:
    return EstimatorOptions([[0.5, 0.9]], **{"epsilon": 1.0, **options})  # type: ignore[list-item]


def test_algorithm__names_the_estimator() -> None:
    assert type(estimator_from(asked(**WALK), None, None)) is dpf.DPFrugal1U
    assert type(estimator_from(asked(**SEGMENTS), None, None)) is dpf.PrivateQuantile


@pytest.mark.parametrize("way", [WALK, SEGMENTS], ids=lambda way: way["algorithm"])
@pytest.mark.parametrize(
    ("option", "name"),
    [
        ({"epsilon": 0.5}, "guarantee"),
        ({"max_items_per_person": 4}, "max_items_per_person"),
        ({"nan_policy": "omit"}, "nan_policy"),
    ],
    ids=str,
)
def test_options__reach_the_estimator(way: dict[str, str], option: dict[str, Any], name: str) -> None:
    plain, changed = (estimator_from(asked(**way, **extra), None, None).parameters() for extra in ({}, option))
    assert [key for key in plain if plain[key] != changed[key]] == [name]


def test_start__is_where_the_estimator_begins() -> None:
    """A walk of one item under a guarantee that adds no noise has moved by at most a step; edges lie around it."""
    walk = estimator_from(asked(**WALK, epsilon=1e6, start=500.0), None, None)
    walk.update(500.0)
    assert all(abs(value - 500.0) <= 1 for value in walk.release().values)
    segments = estimator_from(asked(**SEGMENTS, start=500.0), None, None)
    assert isinstance(segments, dpf.PrivateQuantile)
    assert np.abs(segments.edges - 500.0).min() < 1e-6


def test_decimals__are_the_grid_of_a_walk_and_the_digits_of_segments() -> None:
    walk = estimator_from(asked(**WALK, decimals=2), None, None)
    walk.update_many(np.full(1_000, 3.0))
    release = last_release(walk)
    assert all(len(text.partition(".")[2]) == 2 for text in shown_values(release, asked(**WALK, decimals=2)))
    with pytest.raises(dpf.ParameterError, match="decimals"):
        estimator_from(asked(**SEGMENTS, decimals=400), None, None)


def test_guess__is_blank_as_text_and_null_as_json() -> None:
    ends = ((1.0, 2.0), (-math.inf, math.inf))
    release = SegmentRelease(
        values=(1.5, 7.25), quantiles=(0.5, 0.9), guarantee=dpf.PureDP(epsilon=1.0), items=9, stable=True,
        bounds=lambda confidence: ends,
    )  # fmt: skip
    assert known(release) == [True, False]
    assert shown_values(release, asked(**SEGMENTS)) == ["1.5", ""]
    assert shown_values(release, asked(**SEGMENTS, decimals=3)) == ["1.500", ""]
    assert record(release)["values"] == [1.5, None]


def test_last_release__rests_on_all_items() -> None:
    segments = estimator_from(asked(**SEGMENTS), None, None)
    segments.update_many(np.arange(5_000.0))
    assert last_release(segments).items == 5_000
