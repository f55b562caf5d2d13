"""Windows end on a public clock, also where it is set forth or back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.serve.clock import STEP, WindowClock, day_of, end_of, utc

windows = st.sampled_from([1.0, 10.0, 60.0, 3600.0])
times = st.integers(0, 4_000_000_000).map(float)


@given(times, windows)
def test_end_of__is_the_next_multiple_of_the_window(now: float, window: float) -> None:
    end = end_of(now, window)
    assert end % window == 0
    assert end - window <= now < end


@given(times, windows, st.floats(0, 1e6))
def test_window_clock__ends_rise_however_late_a_window_is_cut(now: float, window: float, late: float) -> None:
    clock = WindowClock.starting(now, window)
    assert not clock.is_over(now)
    ended = clock.end
    assert clock.is_over(ended + late)
    clock.next(ended + late)
    assert clock.end > ended
    assert clock.end % window == 0
    assert not clock.is_over(ended + late)


def test_window_clock__a_correction_is_no_setting() -> None:
    clock = WindowClock.starting(120.0, 60.0)
    assert not clock.was_set_back(120.0 - STEP)
    assert clock.was_set_back(120.0 - STEP - 0.001)
    clock.set_back(59.0)
    assert (clock.began, clock.end) == (59.0, 60.0)


def test_window_clock__after_a_correction_no_window_ends_twice() -> None:
    clock = WindowClock.starting(60.0, 60.0)
    assert clock.is_over(120.0)
    clock.next(119.5)  # the clock was corrected between the two lines
    assert clock.end == 180.0


@pytest.mark.parametrize(
    ("end", "day"), [(86_400.0, "1970-01-01"), (86_400.5, "1970-01-02"), (951_868_800.0, "2000-02-29")]
)
def test_day_of__is_that_of_a_window_s_last_moment(end: float, day: str) -> None:
    assert day_of(end) == day


def test_utc__is_iso_8601() -> None:
    assert utc(1_800_000_000.9) == "2027-01-15T08:00:00Z"
