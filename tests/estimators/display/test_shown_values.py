"""As many digits as an interval can tell."""

import math
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.display.shown_values import shown_value

floats = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (1 / 3, None, "0.333333"),
        (1 / 3, 1e-9, "0.33333333333"),
        (1 / 3, math.inf, "0.333333"),
        (1 / 3, 0.0, repr(1 / 3)),  # an interval of one number
        (12345678.9, 0.1, "12345678.9"),
        (2.0, None, "2"),
        (1e300, None, "1e+300"),
        (math.inf, 1.0, "inf"),
        (7, 0.1, "7"),
        (date(2026, 3, 1), None, "2026-03-01"),
    ],
)
def test_shown_value__has_the_digits_that_its_interval_can_tell(value: Any, width: float | None, text: str) -> None:
    assert shown_value(value, width) == text


@given(floats, st.floats(1e-300, 1e300))
def test_shown_value__is_off_by_less_than_its_interval_or_six_digits(value: float, width: float) -> None:
    off = abs(float(shown_value(value, width)) - value)
    assert off <= max(width / 10, abs(value) * 1e-15)
    assert float(shown_value(value, 0.0)) == value
