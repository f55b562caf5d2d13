"""Spacings have mass at their points and nowhere else."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import Base, Component
from dpfrugal.estimators.table.base.codes import INFINITY
from dpfrugal.estimators.table.base.spacings import Multiples, PowersOfTwo
from dpfrugal.estimators.table.base.spreads import Binades, Even
from tests.support.base_masses import code, doubles, integers, regions, share


@given(integers)
def test_multiples__have_mass_at_multiples_only(value: int) -> None:
    base = Base(-(2**63), 2**63 - 1, (Component(1, Binades(), Multiples(60)),))
    assert regions(base, [value]).exact(1) == (0 if value % 60 else share(value // 60))


@given(doubles, st.integers(-1074, 900))
def test_powers_of_two__have_mass_at_multiples_only(value: float, exponent: int) -> None:
    base = Base(-INFINITY, INFINITY, (Component(1, Even(), PowersOfTwo(exponent)),), of_doubles=True)
    index = None if math.isinf(value) else Fraction(value) / Fraction(2) ** exponent
    expected = index is not None and index.denominator == 1 and abs(index) <= 2**53
    assert regions(base, [code(value)]).exact(1) == expected
