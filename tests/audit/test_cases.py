"""Cases: each runs its estimator anew, shows numbers of one shape, and only what anyone may see."""

import numpy as np
import pytest

from dpfrugal.audit.cases import KEYS, keyed_cases, segment_cases, walk_cases
from dpfrugal.audit.neighbour_search import WITHOUT_NOISE, Case, seen
from dpfrugal.privacy.guarantees import PureDP

CASES = [*walk_cases(), *keyed_cases(), *segment_cases()]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each
def test_cases__show_as_many_numbers_whatever_the_items_are(case: Case) -> None:
    shapes = {seen(case, WITHOUT_NOISE, ((item,), (item,))).shape for item in case.items}
    assert len(shapes) == 1
    assert shapes.pop()[0] == 2  # a row of numbers per release


@each
def test_cases__start_anew_with_every_run(case: Case) -> None:
    """Without noise a run of the same items shows the same numbers; a state kept from before would show."""
    periods = (case.items, case.items[:1])
    assert np.array_equal(seen(case, WITHOUT_NOISE, periods), seen(case, WITHOUT_NOISE, periods))


def test_walk_cases__show_what_the_guarantee_covers() -> None:
    case = walk_cases(quantiles=(0.5,))[0]
    low, high = (seen(case, WITHOUT_NOISE, ((item,),))[0, 0] for item in (case.items[0], case.items[2]))
    assert low < high
    noisy = {float(seen(case, PureDP(epsilon=0.1), ((0.0,),))[0, 0]) for _ in range(20)}
    assert len(noisy) > 1  # twenty equal draws of noise of scale 20 have a chance below 1e-20


def test_keyed_cases__show_a_value_per_declared_key() -> None:
    case = keyed_cases()[0]
    assert seen(case, WITHOUT_NOISE, (case.items,)).shape == (1, len(KEYS))
    assert any(key not in KEYS for key, _ in case.items)
