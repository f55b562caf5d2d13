"""Sums over all ascending answers against their definition: one choice of regions at a time, in exact fractions."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.choices.chain import Chain, beginning, following


@st.composite
def chains(draw: st.DrawFn) -> tuple[Chain, dict[int, Fraction]]:
    """Regions in ascending order, some of one rank and some empty of mass; each answer may lie in some of them."""
    ends = sorted(draw(st.lists(st.integers(0, 12), min_size=2, max_size=10)))
    first, last = ends[:-1:2] or [0], ends[1::2] or [0]
    first = first[: len(last)]
    targets = sorted(draw(st.lists(st.integers(0, 12), min_size=1, max_size=3)))
    allowed = [sorted(draw(st.sets(st.integers(0, len(first) - 1)))) for _ in targets]
    masses = draw(
        st.lists(st.fractions(Fraction(1, 9), 9, max_denominator=9), min_size=len(first), max_size=len(first))
    )
    return Chain(first, last, targets, allowed), dict(enumerate(masses))


def decay(distance: int) -> Fraction:
    return Fraction(2, 3) ** distance


def naive_distance(chain: Chain, regions: tuple[int, ...]) -> int:
    """The shortest of all walks from 0 through a place in each region, in order, and back to 0."""
    shortest = {0: 0}
    for answer, region in enumerate(regions):
        low, high = chain.ends(answer, region)
        shortest = {
            there: min(walked + abs(there - at) for at, walked in shortest.items()) for there in range(low, high + 1)
        }
    return min(walked + abs(at) for at, walked in shortest.items())


@given(chains())
def test_distance__is_that_of_the_shortest_walk(given: tuple[Chain, dict[int, Fraction]]) -> None:
    chain, _ = given
    for regions in itertools.product(*chain.allowed):
        assert chain.distance(regions) == naive_distance(chain, regions)


@given(chains())
def test_following__sums_every_choice_of_regions_once(given: tuple[Chain, dict[int, Fraction]]) -> None:
    chain, masses = given
    states = beginning(Fraction(1))
    for answer in range(len(chain.targets)):
        states = following(chain, answer, states, masses, decay)
    found = sum((state.weight * decay(abs(state.at)) for state in states), Fraction(0))
    expected = Fraction(0)
    for regions in itertools.product(*chain.allowed):
        if list(regions) == sorted(regions):
            weight = math.prod((masses[region] for region in regions), start=Fraction(1))
            weight /= math.prod(math.factorial(same) for same in Counter(regions).values())
            expected += weight * decay(naive_distance(chain, regions))
    assert found == expected


@given(chains())
def test_following__states_name_those_that_they_came_from(given: tuple[Chain, dict[int, Fraction]]) -> None:
    chain, masses = given
    states = beginning(Fraction(1))
    for answer in range(len(chain.targets)):
        before, states = states, following(chain, answer, states, masses, decay)
        assert [(state.region, state.at) for state in states] == sorted((state.region, state.at) for state in states)
        for state in states:
            low, high = chain.ends(answer, state.region)
            come = before[state.first : state.last]
            weight = sum(each.weight * decay(abs(each.at - state.at)) for each in come)
            assert state.weight == weight * masses[state.region] / state.run
            assert low <= state.at <= high or state.run > 1
            assert all(each.region == state.region for each in come) == (state.run > 1) or not come


def test_following__with_floats_is_the_same_to_rounding() -> None:
    chain = Chain([0, 3, 5], [2, 3, 9], [1, 6], [[0, 1, 2]] * 2)
    masses = {0: Fraction(1), 1: Fraction(5, 2), 2: Fraction(1, 3)}
    exact, floats = beginning(Fraction(1)), beginning(1.0)
    for answer in range(2):
        exact = following(chain, answer, exact, masses, decay)
        floats = following(
            chain, answer, floats, {at: float(mass) for at, mass in masses.items()}, lambda d: (2 / 3) ** d
        )
    assert [state[0] for state in exact] == [state[0] for state in floats]
    assert np.allclose([float(state.weight) for state in exact], [state.weight for state in floats], rtol=1e-14)
