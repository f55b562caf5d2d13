"""Checks of public parameters: the plain value, or one sentence that names the parameter, the rule and the value."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpfrugal import parameters
from dpfrugal.errors import ParameterError, ParameterTypeError

NOT_NUMBERS: list[Any] = ["1", None, 1j, True, [1], Decimal(1), np.bool_(True), np.timedelta64(3)]
NOT_INTEGERS: list[Any] = [np.timedelta64(3), 1.0, "1", None, True, Fraction(1, 2), np.float64(3)]


@pytest.mark.parametrize("check", [parameters.number, parameters.positive, parameters.probability])
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_numbers__of_other_types_are_refused(check: Callable[[str, Any], float], value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=f"^size must be a number, not {type(value).__name__}.$"):
        check("size", value)


def test_number__leaves_nan_and_infinities_to_the_caller() -> None:
    assert math.isnan(parameters.number("size", math.nan))
    assert parameters.number("size", -math.inf) == -math.inf
    third: Any = Fraction(1, 3)
    assert parameters.probability("size", third) == 1 / 3
    with pytest.raises(ParameterTypeError):  # a start is compared with items and saved, as they are
        parameters.number("size", third)


@pytest.mark.parametrize("value", [0, -1, -0.0, math.nan, math.inf, -math.inf])
def test_positive__must_be_finite_and_above_0(value: float) -> None:
    with pytest.raises(ParameterError, match=f"^size must be finite and above 0; {value} is not.$"):
        parameters.positive("size", value)


@pytest.mark.parametrize("value", [5e-324, 1, np.float32(2), Fraction(7, 2), 10**9])
def test_positive__gives_a_plain_float(value: Any) -> None:
    assert type(parameters.positive("size", value)) is float
    assert parameters.positive("size", value) == value


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, math.nan, math.inf])
def test_probability__must_lie_strictly_between_0_and_1(value: float) -> None:
    with pytest.raises(ParameterError, match=f"^beta must lie strictly between 0 and 1; {value} does not.$"):
        parameters.probability("beta", value)


def test_probability__gives_a_plain_float() -> None:
    for quarter in (np.float32(0.25), Fraction(1, 4), 0.25):
        assert type(parameters.probability("beta", quarter)) is float  # type: ignore[arg-type]
        assert parameters.probability("beta", quarter) == 0.25  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
def test_integer__of_other_types_is_refused(value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=f"^rows must be an integer, not {type(value).__name__}.$"):
        parameters.integer("rows", value, 0)


def test_integer__gives_a_plain_int_within_its_range() -> None:
    for value in (3, np.int8(3), np.uint64(3)):
        assert type(parameters.integer("rows", value, 3, 3)) is int  # type: ignore[arg-type]
    assert parameters.integer("rows", 10**30, 0) == 10**30
    with pytest.raises(ParameterError, match=r"^rows must be at least 4; 3 is not.$"):
        parameters.integer("rows", 3, 4)
    with pytest.raises(ParameterError, match=r"^rows must be between 0 and 2; 3 is not. Cut them.$"):
        parameters.integer("rows", 3, 0, 2, advice=" Cut them.")
    with pytest.raises(ParameterError, match="between 1 and 10\\*\\*9; 0 is not"):
        parameters.integer("rows", 0, 1, 10**9, shown_high="10**9")


@pytest.mark.parametrize("value", [1, 0, "yes", None, np.bool_(True)], ids=repr)
def test_truth__must_be_true_or_false(value: Any) -> None:
    with pytest.raises(ParameterTypeError, match=f"^adaptive must be True or False, not {type(value).__name__}.$"):
        parameters.truth("adaptive", value)
    assert parameters.truth("adaptive", True) is True
    assert parameters.truth("adaptive", False) is False


@pytest.mark.parametrize(
    ("check", "words", "wrong"),
    [(parameters.nan_policy, ("raise", "omit"), "drop"), (parameters.null_keys, ("raise", "drop"), "omit")],
)
def test_one_of__must_be_one_of_two_words(check: Callable[[Any], str], words: tuple[str, str], wrong: str) -> None:
    for word in words:
        assert check(word) == word
    for value in (wrong, "", None, 1):
        with pytest.raises(ParameterError, match=f'must be "{words[0]}" or "{words[1]}"; {value!r} is neither'):
            check(value)


def test_quantiles__are_one_or_several_and_all_different() -> None:
    assert parameters.quantiles(0.5) == (0.5,)
    assert parameters.quantiles(np.float32(0.25)) == (0.25,)  # type: ignore[arg-type]
    assert parameters.quantiles((0.9, 0.1)) == (0.9, 0.1)
    assert parameters.quantiles(np.array([0.5, 0.75])) == (0.5, 0.75)  # type: ignore[arg-type]
    for wrong, sentence in (([], "it is empty"), ([0.5, 0.5], "same quantile twice"), ([0.5, 1], "between 0 and 1")):
        with pytest.raises(ParameterError, match=f"quantile.*{sentence}"):
            parameters.quantiles(wrong)
    with pytest.raises(ParameterTypeError, match="quantile"):
        parameters.quantiles("0.5")  # type: ignore[arg-type]


def test_max_items_and_keys_per_person__have_a_range() -> None:
    assert parameters.max_items_per_person(10**9) == 10**9
    assert parameters.max_keys_per_person(None) is None
    assert parameters.max_keys_per_person(1) == 1
    for wrong in (0, -1, 10**9 + 1):
        with pytest.raises(ParameterError, match="max_items_per_person"):
            parameters.max_items_per_person(wrong)
        with pytest.raises(ParameterError, match="max_keys_per_person"):
            parameters.max_keys_per_person(wrong)


def test_threads__are_a_power_of_two() -> None:
    assert [parameters.threads(count) for count in (1, 2, 4, 64)] == [1, 2, 4, 64]
    for wrong in (0, 3, 65, 128):
        with pytest.raises(ParameterError, match=f"threads must be .*between 1 and 64; {wrong} is not"):
            parameters.threads(wrong)


@pytest.mark.parametrize("value", ["", " a", "a ", "a\nb", "\x00", "x" * 201])
def test_name__must_be_short_and_printable(value: str) -> None:
    with pytest.raises(ParameterError, match=r"^dataset must be 1 to 200 printable characters"):
        parameters.name("dataset", value)


def test_name__must_be_a_string() -> None:
    assert parameters.name("dataset", "x" * 200) == "x" * 200
    assert parameters.name("dataset", "Klicks – März") == "Klicks – März"
    with pytest.raises(ParameterTypeError, match=r"^dataset must be a string, not bytes.$"):
        parameters.name("dataset", b"a")  # type: ignore[arg-type]


def test_column__is_a_name() -> None:
    assert parameters.column("by", "carrier") == "carrier"
    for value, kind in ((3, "int"), (["carrier"], "list"), (None, "NoneType")):
        with pytest.raises(ParameterTypeError, match=f"by must be the name of a column, not {kind}"):
            parameters.column("by", value)  # type: ignore[arg-type]
