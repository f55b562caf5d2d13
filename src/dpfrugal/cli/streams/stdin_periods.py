"""Standard input cut into periods: at public times, by the number of items or by the clock.

Periods by the clock end on the clock: those of a minute at 12:00:00, 12:01:00, and so on. A signal that ends the
command (Ctrl-C, SIGTERM, SIGHUP) is heard between two events, so that no batch and no release is cut in two; a second
one is not waited for.
"""

import os
import queue
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from dpfrugal.errors import ParameterError, TableError

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BLOCK_BYTES = 1 << 16
# So many blocks may wait, 32 MB at most: they arrived in time, however long a release or a save takes meanwhile.
BLOCKS_WAITING = 1 << 9
# Seconds that a signal may go unnoticed, and between two chances to save.
LONGEST_WAIT = 0.2
ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


class Parser(Protocol):
    """Turns blocks of bytes into rows; ``refusal`` is set where it met a line that it may not take."""

    refusal: TableError | None

    def feed(self, block: bytes) -> Any:
        """The rows of the lines that a block completes."""

    def finish(self) -> Any:
        """The row of a last line without a newline."""


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

    def end_after(self, moment: float) -> float:
        """The end of the period by the clock that a moment is in: a multiple of its length since local midnight."""
        assert self.seconds is not None  # noqa: S101
        offset = datetime.fromtimestamp(moment).astimezone().utcoffset()
        local = moment + (offset.total_seconds() if offset else 0.0)
        return moment + self.seconds - local % self.seconds

    def shown(self, end: float) -> str:
        """The end of a period, as text: ``2026-11-18T12:01:00+01:00``."""
        parts = "seconds" if self.seconds is None or self.seconds >= 1 else "milliseconds"
        return datetime.fromtimestamp(round(end, 3)).astimezone().isoformat(timespec=parts)


@dataclass(frozen=True)
class End:
    """The end of a period, in seconds since 1970."""

    at: float


class StdinPeriods:
    """The items of standard input, cut at public times: by their count, or by the clock at their arrival.

    A thread reads and records the time of arrival. So a period can end while the stream is silent, and where it ends
    does not depend on how long earlier items took to process.
    """

    def __init__(self, descriptor: int, parser: Parser) -> None:
        self._parser = parser
        self._blocks: queue.Queue[tuple[float, bytes | OSError]] = queue.Queue(maxsize=BLOCKS_WAITING)
        # Not through sys.stdin: its lock, held by a thread that waits, would abort the interpreter's exit.
        threading.Thread(target=self._read, args=(descriptor,), daemon=True).start()

    def _read(self, descriptor: int) -> None:
        block: bytes | OSError = b"-"
        while block and not isinstance(block, OSError):
            try:
                block = os.read(descriptor, BLOCK_BYTES)
            except OSError as error:  # an error of the device is not the end of the stream
                block = error
            self._blocks.put((time.monotonic(), block))

    def events(self, period: Period, waiting: int = 0) -> Iterator[Any]:
        """Rows in order, the end of each period, and None now and then where nothing happens.

        ``waiting`` items of the first period arrived earlier: a checkpoint holds them.
        """
        left = max(0, (period.items or 0) - waiting)
        clock = None if period.seconds is None else _Clock(period)
        ended = False
        with _ending_signals() as ending:
            while not ended:
                try:
                    arrived, block = self._blocks.get(timeout=clock.wait() if clock else LONGEST_WAIT)
                except queue.Empty:
                    arrived, block = time.monotonic(), None
                if ending:
                    raise KeyboardInterrupt
                while clock is not None and arrived >= clock.deadline:
                    yield End(clock.end)
                    clock.advance()
                if block is None:
                    yield None
                    continue
                if isinstance(block, OSError):
                    raise TableError(f"standard input cannot be read: {block.strerror}.")
                ended = not block
                rows = self._parser.finish() if ended else self._parser.feed(block)
                if period.items:
                    while len(rows) >= left:
                        yield from ([part] if len(part := rows[:left]) else [])
                        yield End(time.time())
                        rows, left = rows[left:], period.items
                    left -= len(rows)
                yield rows if len(rows) else None
                if self._parser.refusal is not None:
                    raise self._parser.refusal


class _Clock:
    """The end of the open period, and when that is by a clock that nobody sets."""

    def __init__(self, period: Period) -> None:
        self._period = period
        now = time.time()
        self.end = period.end_after(now)
        self.deadline = time.monotonic() + self.end - now

    def wait(self) -> float:
        """How long to wait for a block."""
        return min(LONGEST_WAIT, max(0.0, self.deadline - time.monotonic()))

    def advance(self) -> None:
        """To the next period; where the clock was set meanwhile, it ends by the new time."""
        seconds = self._period.seconds or 0.0
        now = self.deadline + time.time() - time.monotonic()
        self.end = self._period.end_after(now + seconds / 2)
        self.deadline += self.end - now


@contextmanager
def _ending_signals() -> Iterator[list[int]]:
    """The signals that asked this process to end; the first is only noted, the second ends it."""
    heard: list[int] = []

    def hear(number: int, frame: Any) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = {}
    try:
        for name in ENDING:
            if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
                number = getattr(signal, name)
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                    before[number] = signal.signal(number, hear)
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
