"""Sensitivities: of an integer, and the L2 distance that is never rounded down."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.privacy.sensitivity import Sensitivity


def test_sensitivity__of_an_integer_is_that_of_one_number() -> None:
    assert Sensitivity.of(3) == Sensitivity(l1=3, l2_squared=9, one_number=True)
    several = Sensitivity(l1=6, l2_squared=12)
    assert Sensitivity.of(several) is several
    assert not several.one_number


@given(st.integers(1, 10**15))
def test_sensitivity__l2_is_at_least_the_root_and_no_further_than_one_float(square: int) -> None:
    found = Sensitivity(l1=1, l2_squared=square).l2
    assert Fraction(found) ** 2 >= square
    assert Fraction(found) ** 2 <= square * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize(("wrong", "error"), [(0, ParameterError), (-1, ParameterError), (1.5, ParameterTypeError)])
def test_sensitivity__is_a_positive_integer(wrong: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="sensitivity"):
        Sensitivity.of(wrong)
