"""Numbers from text, one per line: standard input and pipes.

``LineParser`` is fed bytes as they arrive and gives back the numbers of the complete lines. Blank lines are
skipped. A line that is no number is reported by its line number, never by its content; with
``nan_policy="omit"`` it counts as a missing item, so that one odd line in a log does not end a long watch.
"""

import math
from collections.abc import Iterator
from typing import BinaryIO

from dpfrugal.errors import TableError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 16


class LineParser:
    """Turns blocks of bytes, cut anywhere, into lists of floats."""

    def __init__(self, *, omit_bad: bool = False) -> None:
        self._omit_bad = omit_bad
        self._rest = b""
        self._line = 0

    def feed(self, block: bytes) -> list[float]:
        """The numbers of the lines that ``block`` completes."""
        whole, newline, rest = block.rpartition(b"\n")
        if not newline:
            self._rest += block
            if len(self._rest) > LONGEST_LINE:
                raise TableError(f"Line {self._line + 1} is longer than {LONGEST_LINE} bytes; it is no number.")
            return []
        text, self._rest = self._rest + whole + newline, rest
        return self._numbers(text)

    def finish(self) -> list[float]:
        """The number of a last line that has no newline."""
        text, self._rest = self._rest, b""
        return self._numbers(text + b"\n") if text.strip() else []

    def _numbers(self, text: bytes) -> list[float]:
        lines = text.split(b"\n")[:-1]
        if b"_" not in text:  # float() would read 1_000; nobody writes that in data
            try:
                numbers = list(map(float, lines))
            except ValueError:
                pass
            else:
                self._line += len(lines)
                return numbers
        return [number for line in lines if (number := self._number(line)) is not None]

    def _number(self, line: bytes) -> float | None:
        self._line += 1
        if not line.strip():
            return None
        try:
            if b"_" not in line:
                return float(line)
        except ValueError:
            pass
        if self._omit_bad:
            return math.nan
        raise TableError(
            f"Line {self._line} is not a number; standard input takes one number per line. "
            "To count such lines as missing, use --nan-policy omit."
        )


def numbers(stream: BinaryIO, *, omit_bad: bool = False) -> Iterator[tuple[list[float], int]]:
    """All numbers of a stream in blocks, each with the number of bytes it took."""
    parser = LineParser(omit_bad=omit_bad)
    while block := stream.read(BLOCK_BYTES):
        yield parser.feed(block), len(block)
    yield parser.finish(), 0
