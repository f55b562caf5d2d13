"""``StreamRelease``: private quantiles of one window of a Spark stream."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpfrugal.estimators.windows.window_release import WindowRelease


@dataclass(frozen=True, kw_only=True)
class StreamRelease(WindowRelease):
    """Released from the rows of one window; ``start`` and ``end`` are None where it is a micro-batch."""

    start: datetime | None
    end: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the window's number and its ends."""
        ends = {"start": self.start, "end": self.end}
        return super().to_dict() | {name: at and at.isoformat() for name, at in ends.items()}
