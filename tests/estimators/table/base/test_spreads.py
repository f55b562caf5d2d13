"""Spreads against their definition, one index at a time."""

from hypothesis import given

from dpfrugal.estimators.table.base.base_measure import base_of_integers
from tests.support.base_masses import integers, regions, share


@given(integers, integers)
def test_binades__give_each_integer_the_mass_of_the_definition(value: int, zero: int) -> None:
    assert regions(base_of_integers(zero=zero), [value]).exact(1) == 4 * share(value - zero)
