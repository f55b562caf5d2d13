"""The public clock: windows end on it, and nothing else makes them end.

Worked number: windows of a minute end at 12:00:00, 12:01:00 and so on in UTC, whoever sends or asks what. If the clock
is set forth by an hour within a window, that window ends at once, late; if it is set back, the open window is dropped,
for its items would be released with those of another one; a window that was released once never is again.
"""

import time
from dataclasses import dataclass
from typing import Final

STEP: Final = 1.0  # seconds by which the clock must jump to have been set


def end_of(now: float, window: float) -> float:
    """The end of the window that ``now`` lies in; an end belongs to the next one.

    >>> end_of(119.0, 60.0), end_of(120.0, 60.0)
    (120.0, 180.0)
    """
    return (now // window + 1) * window


@dataclass
class WindowClock:
    """Of one metric: when its open window began, and when it ends."""

    window: float
    began: float
    end: float

    @classmethod
    def starting(cls, now: float, window: float) -> "WindowClock":
        """The window that is open now; it has the items from now on."""
        return cls(window, now, end_of(now, window))

    def is_over(self, now: float) -> bool:
        """Whether the open window has ended."""
        return now >= self.end

    def was_set_back(self, now: float) -> bool:
        """Whether the clock is before the open window, by more than a correction of a clock that runs."""
        return now < self.end - self.window - STEP

    def next(self, now: float) -> None:
        """Open the window after the one that has ended; those in between have no items, and are not released."""
        self.began, self.end = now, max(end_of(now, self.window), self.end + self.window)

    def set_back(self, now: float) -> None:
        """Open the window that the clock is in now."""
        self.began, self.end = now, end_of(now, self.window)


def utc(seconds: float) -> str:
    """A time as text.

    >>> utc(0.0)
    '1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def day_of(end: float) -> str:
    """The day in UTC whose total a window is charged to: that of its last moment."""
    return time.strftime("%Y-%m-%d", time.gmtime(end - 0.001))
