"""Processor seconds of a thread, by the kind of work: generation, exact quantiles, estimators, noise."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from dpfrugal.paper.datasets import Floats

GENERATION, EXACT, ESTIMATORS, NOISE = "generation", "exact", "estimators", "noise"
PARTS: Final = (GENERATION, EXACT, ESTIMATORS, NOISE)


class Stopped(Exception):  # noqa: N818  (a request, not an error)
    """The run was asked to stop."""


class Clock:
    """Seconds per part, and the items generated.

    ``worked`` is called with the number of items done, or with the equivalent of other work; ``stopping`` says whether
    the run has to end.
    """

    seconds: dict[str, float]
    items: int
    worked: Callable[[int], None]

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
        """The seconds, as a row of ``costs.csv``."""
        return {**key, "items": self.items, **{f"{part}_seconds": self.seconds[part] for part in PARTS}}
