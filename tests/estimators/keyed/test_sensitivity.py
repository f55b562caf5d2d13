"""How far one person's rows move the estimates of many keys, against all ways to deal them out."""

import itertools

import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.sensitivity import keyed_exposure, keyed_sensitivity


@pytest.mark.parametrize("quantiles", [1, 3])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_keyed_sensitivity__without_a_bound_on_keys_is_that_of_the_worst_deal(rows: int, quantiles: int) -> None:
    """A row that is replaced leaves one key and comes to another: it moves each of their estimates by one step."""
    found = keyed_sensitivity(quantiles, rows, None)
    l1, l2_squared = 0, 0
    for before, after in itertools.product(itertools.product(range(2 * rows), repeat=rows), repeat=2):
        steps = [before.count(key) + after.count(key) for key in range(2 * rows)]
        l1 = max(l1, quantiles * sum(steps))
        l2_squared = max(l2_squared, quantiles * sum(step * step for step in steps))
    assert (found.l1, found.l2_squared) == (l1, l2_squared)


@pytest.mark.parametrize("keys", [1, 2, 5])
def test_keyed_sensitivity__with_a_bound_each_key_has_all_its_rows(keys: int) -> None:
    found = keyed_sensitivity(2, 3, keys)
    assert (found.l1, found.l2_squared) == (6 * keys * 2, 36 * keys * 2)


def test_keyed_exposure__has_a_move_for_each_number_of_rows_in_one_key() -> None:
    found = keyed_exposure(dpf.PureDP(epsilon=1.0), 2, 3, None)
    assert found is not None
    assert [move.shift for move in found.moves] == [1, 2, 3, 4, 5, 6]
    assert {move.copies for move in found.moves} == {2}
    assert (found.budget, found.size) == (6, 1.0)
    several = keyed_exposure(dpf.PureDP(epsilon=1.0), 2, 1, 2)
    assert several is not None
    assert (several.budget, several.size) == (4, 1.0)
    assert keyed_exposure(dpf.PureDP(epsilon=1.0), 2, 3, 2) is None  # its loss would take too long to compute
