"""Standard input cut into periods: at public times, by the number of items or by the clock."""

import os
import queue
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.inputs.lines import LineParser

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BLOCK_BYTES = 1 << 16
# Seconds that Ctrl-C may go unnoticed: the interpreter handles it only between two waits.
LONGEST_WAIT = 0.2


@dataclass(frozen=True)
class Period:
    """The length of a period: a number of items, or a number of seconds."""

    items: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Period":
        """``100000`` items, or ``10s``, ``500ms``, ``5m``, ``1h``, ``1d``."""
        match = re.fullmatch(r"(\d[\d_,]*)|(\d+(?:\.\d+)?)(ms|s|m|h|d)", text.strip())
        if match and match[1] and (items := int(re.sub("[_,]", "", match[1]))):
            return cls(items=items)
        if match and match[2] and (seconds := float(match[2]) * SECONDS[match[3]]):
            return cls(seconds=seconds)
        raise ParameterError(
            "--every must be a number of items, such as 100000, or a time, such as 500ms, 10s, 5m, 1h or 1d; "
            f"{text!r} is neither."
        )


class StdinPeriods:
    """The items of standard input, cut at public times: by their count, or by the clock at their arrival.

    A thread reads and records the time of arrival. So a period can end while the stream is silent, and where it ends
    does not depend on how long earlier items took to process.
    """

    def __init__(self, descriptor: int, parser: "LineParser") -> None:
        self._parser = parser
        self._blocks: queue.Queue[tuple[float, bytes]] = queue.Queue(maxsize=1024)
        # Not through sys.stdin: its lock, held by a thread that waits, would abort the interpreter's exit.
        threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()

    def _read(self, descriptor: int) -> None:
        block = b"-"
        while block:
            try:
                block = os.read(descriptor, BLOCK_BYTES)
            except OSError:  # a stream that someone else closed has ended
                block = b""
            self._blocks.put((time.monotonic(), block))

    def _next(self, deadline: float | None) -> tuple[float, bytes] | None:
        """The next block and its time of arrival, or None if the deadline passes first."""
        while True:
            try:
                return self._blocks.get(timeout=LONGEST_WAIT)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    return None

    def until_periods(self, period: Period, waiting: int = 0) -> Iterator[list[Any]]:
        """Lists of items in order; an empty list ends a period.

        ``waiting`` items of the first period arrived earlier: a checkpoint holds them.
        """
        left = max(0, (period.items or 0) - waiting)
        deadline = None if period.seconds is None else time.monotonic() + period.seconds
        ended = False
        while not ended:
            arrival = self._next(deadline)
            if deadline is not None and period.seconds is not None:
                while (time.monotonic() if arrival is None else arrival[0]) >= deadline:
                    yield []
                    deadline += period.seconds
            if arrival is None:
                continue
            block = arrival[1]
            ended = not block
            numbers = self._parser.finish() if ended else self._parser.feed(block)
            if period.items:
                while len(numbers) >= left:
                    yield from ([part] if (part := numbers[:left]) else [])
                    yield []
                    numbers, left = numbers[left:], period.items
                left -= len(numbers)
            if numbers:
                yield numbers
            if self._parser.refusal:
                raise self._parser.refusal
