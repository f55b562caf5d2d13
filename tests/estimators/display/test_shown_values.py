"""As many digits as an interval can tell."""

import math
from datetime import date, timedelta
from typing import Any

import numpy as np
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
        (np.timedelta64(497_000_000, "us"), None, "0:08:17"),
        (np.timedelta64(-3 * 86_400 - 5, "s"), None, "-3 days 0:00:05"),
        (np.timedelta64(1, "ns"), None, "0:00:00.000000001"),
        (np.datetime64("2026-03-01T10:00:00.000000"), None, "2026-03-01T10:00:00"),
        (np.datetime64("2026-03-01T10:00:00.250000"), None, "2026-03-01T10:00:00.25"),
        (np.datetime64("2030-10-10"), None, "2030-10-10"),
        (timedelta(days=1, milliseconds=1_500), None, "1 day 0:00:01.5"),
    ],
)
def test_shown_value__has_the_digits_that_its_interval_can_tell(value: Any, width: float | None, text: str) -> None:
    assert shown_value(value, width) == text


@given(floats, st.floats(1e-300, 1e300))
def test_shown_value__is_off_by_less_than_its_interval_or_six_digits(value: float, width: float) -> None:
    off = abs(float(shown_value(value, width)) - value)
    assert off <= max(width / 10, abs(value) * 1e-15)
    assert float(shown_value(value, 0.0)) == value


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from(["s", "ms", "us", "ns"]))
def test_shown_value__of_a_duration_is_all_of_it(number: int, unit: str) -> None:
    shown = shown_value(np.array([number]).astype(f"timedelta64[{unit}]")[0])
    sign, rest = (-1, shown[1:]) if shown.startswith("-") else (1, shown)
    days, _, clock = rest.rpartition(" ")
    hours, minutes, seconds = clock.split(":")
    whole, _, part = seconds.partition(".")
    total = (int(days.split()[0]) if days else 0) * 86_400 + int(hours) * 3_600 + int(minutes) * 60 + int(whole)
    nanoseconds = {"s": 10**9, "ms": 10**6, "us": 1_000, "ns": 1}[unit]
    assert sign * (total * 10**9 + int(part.ljust(9, "0"))) == number * nanoseconds
