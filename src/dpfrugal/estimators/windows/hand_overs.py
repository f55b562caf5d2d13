"""Windows that were handed over: each is taken in once, also where a stale checkpoint has forgotten which ones were."""

import os
import time
from typing import Any, Final

from dpfrugal.errors import CheckpointError
from dpfrugal.storage import json_values

# So many hand-overs are remembered by name.
REMEMBERED: Final = 1 << 16
TAKEN_IN: Final = "This window was taken in before: its items would count twice."
FORGOTTEN: Final = (
    "This window was handed over before this estimator went on from a stale checkpoint: it may have been released with "
    "the items that were forgotten then."
)


class HandOvers:
    """Those that an estimator has taken in: the latest by name, and by age those of which names were lost."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._lost_at = 0.0  # in seconds since 1970

    @staticmethod
    def mark() -> dict[str, str]:
        """What a window carries that is handed over now."""
        return {"hand_over": os.urandom(16).hex(), "handed_over_at": json_values.of_float(time.time())}

    def check(self, state: dict[str, Any]) -> str:
        """The name of a window's hand-over; an error if it was taken in, or may have been."""
        try:
            name, at = state["hand_over"], json_values.float_of(state["handed_over_at"])
        except (LookupError, ValueError):
            raise CheckpointError("other holds no window that was handed over.") from None
        if not isinstance(name, str) or name in self._names:
            raise CheckpointError(TAKEN_IN)
        if not at >= self._lost_at:
            raise CheckpointError(FORGOTTEN)
        return name

    def remember(self, name: str) -> None:
        """It was taken in."""
        self._names[name] = None
        while len(self._names) > REMEMBERED:
            del self._names[next(iter(self._names))]

    def lose(self) -> None:
        """Names of those that were taken in after a checkpoint are not known: refuse all that are older than now."""
        self._lost_at = time.time()

    def record(self) -> list[Any]:
        """For a checkpoint."""
        return [list(self._names), json_values.of_float(self._lost_at)]

    @classmethod
    def of_record(cls, record: Any) -> "HandOvers":
        """Those of a checkpoint."""
        names, lost_at = json_values.list_of(record, 2)
        found = cls()
        found._names = dict.fromkeys(str(name) for name in json_values.list_of(names))
        found._lost_at = json_values.float_of(lost_at)
        return found
