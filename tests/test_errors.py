"""Every error of the package: under one base, and caught by the built-in class that fits."""

import pytest

from dpfrugal import errors
from dpfrugal.errors import BudgetExceeded, DPFrugalError

BUILT_IN = {
    "ParameterError": ValueError,
    "ParameterTypeError": TypeError,
    "ItemError": ValueError,
    "ItemTypeError": TypeError,
    "TableError": ValueError,
    "PrivacyError": RuntimeError,
    "BudgetExceeded": RuntimeError,
    "ReplayError": RuntimeError,
    "LedgerError": RuntimeError,
    "CheckpointError": RuntimeError,
}


@pytest.mark.parametrize(("name", "kind"), BUILT_IN.items())
def test_errors__are_one_of_the_package_s_and_a_built_in_one(name: str, kind: type[Exception]) -> None:
    error = getattr(errors, name)("what to do instead")
    assert isinstance(error, DPFrugalError)
    assert isinstance(error, kind)
    assert str(error) == "what to do instead"


def test_errors__there_are_no_others() -> None:
    found = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, DPFrugalError)}
    assert found == {*BUILT_IN, "DPFrugalError"}


def test_budget_exceeded__says_what_is_left() -> None:
    assert BudgetExceeded("too much").left is None
    assert BudgetExceeded("too much", left=1.5).left == 1.5
