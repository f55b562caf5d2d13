"""The search for neighbours: on estimators so simple that the farthest pair is known."""

from typing import Any

import numpy as np

from dpfrugal.audit.neighbour_search import (
    FAR,
    OUT_OF_SIGHT,
    WITHOUT_NOISE,
    Case,
    Numbers,
    Pair,
    Periods,
    best_of_all,
    distance,
    extended,
    grown,
    pairs,
    patterns,
    seen,
)
from dpfrugal.privacy.guarantees import Guarantee


def sums(_: Guarantee, periods: Periods) -> Numbers:
    """The sum of all items so far, after each period."""
    return [[float(sum(sum(items) for items in periods[: k + 1]))] for k in range(len(periods))]


def late(_: Guarantee, periods: Periods) -> Numbers:
    """Shows a change of the first item only after four more items."""
    items = [item for period in periods for item in period]
    return [[float(items[0] * max(0, len(items) - 4))]]


def case(run: Any, items: tuple[Any, ...] = (0, 1, 10), **options: Any) -> Case:
    return Case("simple", run, items, **options)


def test_patterns__release_at_the_end_or_after_the_first_item_too() -> None:
    assert list(patterns(1)) == [(1,)]
    assert list(patterns(3)) == [(3,), (1, 2)]


def test_distance__counts_no_number_for_more_than_far() -> None:
    assert distance(np.array([[1.0, 5.0]]), np.array([[2.5, 5.0]])) == 1.5
    assert distance(np.array([[0.0, 0.0]]), np.array([[1e30, 1.0]])) == FAR + 1


def test_seen__has_finite_numbers_only() -> None:
    infinite = case(lambda *_: [[float("nan"), float("inf"), -float("inf"), 3.0]])
    assert seen(infinite, WITHOUT_NOISE, ((1,),)).tolist() == [[OUT_OF_SIGHT, OUT_OF_SIGHT, -OUT_OF_SIGHT, 3.0]]


def test_best_of_all__is_the_pair_that_lies_farthest_apart() -> None:
    best = best_of_all(case(sums), (1, 1))
    (first, second), (other_first, other_second) = best.first, best.second
    # Replacing the first item by one that is 10 away shows in both releases.
    assert abs(first[0] - other_first[0]) == 10
    assert second == other_second
    assert best.distance == 20


def test_extended__adds_the_same_item_to_both_streams() -> None:
    pair = extended(Pair(case(sums), ((0,),), ((10,),), 10.0), 1)
    assert (pair.first, pair.second, pair.distance) == (((0, 1),), ((10, 1),), 10.0)


def test_grown__waits_for_an_effect_that_shows_later_only() -> None:
    pair = grown(Pair(case(late, longest=9), ((0,),), ((10,),), 0.0))
    assert (len(pair.first[0]), pair.distance) == (9, 50.0)
    assert pair.first[0][1:] == pair.second[0][1:]
    in_vain = grown(Pair(case(lambda *_: [[0.0]]), ((0,),), ((1,),), 0.0))
    assert in_vain.first == ((0,),)  # nothing was gained by growing


def test_pairs__are_those_that_a_case_names_or_differ_in_one_item() -> None:
    named = ((((1,),), ((2,),)),)
    assert [(pair.first, pair.second) for pair in pairs(case(sums, neighbours=named))] == list(named)
    for pair in pairs(case(sums)):
        one, other = ([item for period in stream for item in period] for stream in (pair.first, pair.second))
        assert len(one) == len(other)
        assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_pair__swapped_is_the_other_way_round() -> None:
    pair = Pair(case(sums), ((0,),), ((1,),), 1.0)
    assert (pair.swapped().first, pair.swapped().second) == (pair.second, pair.first)
