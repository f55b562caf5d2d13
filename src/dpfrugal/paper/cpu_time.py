"""Where the time goes: processor seconds of a thread, by what it was doing."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from dpfrugal.paper.datasets import Floats

GENERATION, EXACT, ESTIMATORS, NOISE = "generation", "exact", "estimators", "noise"
PARTS: Final = (GENERATION, EXACT, ESTIMATORS, NOISE)


class Stopped(Exception):  # noqa: N818  (it is a wish, not an error)
    """The run was asked to stop."""


class Clock:
    """Seconds per part, and the items generated.

    ``worked`` tells whoever shows progress that so many items, or as much work as so many, are done; ``stopping`` says
    whether the run is to end.
    """

    def __init__(self, worked: Callable[[int], None], stopping: Callable[[], bool]) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.items = 0
        self.worked, self.stopping = worked, stopping

    @contextmanager
    def spent_on(self, part: str) -> Iterator[None]:
        """Count the processor time of this thread inside the block."""
        before = time.thread_time()
        try:
            yield
        finally:
            self.seconds[part] += time.thread_time() - before

    def chunks(self, stream: Iterator[Floats]) -> Iterator[Floats]:
        """The chunks of a stream, timed as generation; between two of them the run can be stopped."""
        while True:
            if self.stopping():
                raise Stopped
            with self.spent_on(GENERATION):
                chunk = next(stream, None)
            if chunk is None:
                return
            self.items += chunk.size
            yield chunk
            self.worked(chunk.size)

    def row(self, **key: Any) -> dict[str, Any]:
        """What was spent, as a row of ``costs.csv``."""
        return {**key, "items": self.items, **{f"{part}_seconds": self.seconds[part] for part in PARTS}}
