"""Numbers from text, one per line: standard input and pipes.

``LineParser`` is fed bytes as they arrive and returns the numbers of the complete lines. Every line is one item, so
that the number of items never depends on their values; a blank line is a missing item. With ``omit_bad`` a missing item
and a line that is not a number become NaN. Otherwise such a line ends the stream, after the numbers before it, with an
error that gives the line's number and never its content.
"""

import math
from collections.abc import Iterator
from typing import BinaryIO

from dpfrugal.errors import TableError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 12
ENDLESS = 1 << 30  # a line that is longer ends the stream even where others would count as missing items
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineParser:
    """Turns blocks of bytes, cut anywhere, into lists of floats, and stops at a refused line."""

    def __init__(self, *, omit_bad: bool = False) -> None:
        self.refusal: TableError | None = None
        self._omit_bad = omit_bad
        self._rest = b""
        self._line = 0
        self._waiting = 0  # bytes of the open line

    def feed(self, block: bytes) -> list[float]:
        """The numbers of the lines that ``block`` completes, up to a refused one; see ``refusal`` then."""
        whole, newline, rest = block.rpartition(b"\n")
        if newline:
            text, self._rest = self._rest + whole + newline, rest
        else:
            text, self._rest = b"", self._rest + block
        # Of a line that never ends, keep only enough to show that it is too long.
        self._waiting = len(rest) if newline else self._waiting + len(block)
        self._rest = self._rest[: LONGEST_LINE + 1]
        found = self._numbers(text)
        if self._waiting > (ENDLESS if self._omit_bad else LONGEST_LINE):
            self.refusal = self.refusal or too_long(self._line + 1, LONGEST_LINE)
        return found

    def finish(self) -> list[float]:
        """The number in a last line without a newline."""
        text, self._rest = self._rest, b""
        return self._numbers(text + b"\n") if text else []

    def _numbers(self, text: bytes) -> list[float]:
        if not text or self.refusal:
            return []
        if self._line == 0:
            text = text.removeprefix(BYTE_ORDER_MARK)
        lines = text.split(b"\n")[:-1]
        try:
            if b"_" in text or max(map(len, lines)) > LONGEST_LINE:  # float() accepts 1_000, which data do not contain
                raise ValueError
            numbers = list(map(float, lines))
        except ValueError:
            numbers = []
            for line in lines:
                self._line += 1
                numbers.append(self._number(line))
                if self.refusal:
                    return numbers[:-1]
        else:
            self._line += len(lines)
        return numbers

    def _number(self, line: bytes) -> float:
        try:
            if b"_" not in line and len(line) <= LONGEST_LINE:
                return float(line)
        except ValueError:
            pass
        if not self._omit_bad and len(line) > LONGEST_LINE:
            self.refusal = too_long(self._line, LONGEST_LINE)
        elif not self._omit_bad:
            what = "is not a number" if line.strip() else "is blank"
            hint = (
                "to read a table, name a file"
                if self._line == 1
                else "to count such lines as missing items, use --nan-policy omit"
            )
            self.refusal = TableError(f"Line {self._line} {what}; standard input takes one number per line ({hint}).")
        return math.nan


def too_long(line: int, limit: int) -> TableError:
    """The refusal of a line; it may be one that never ends."""
    return TableError(f"Line {line} is longer than {limit:,} bytes, which is the limit.")


def numbers(stream: BinaryIO, *, omit_bad: bool = False) -> Iterator[tuple[list[float], int]]:
    """All numbers of a stream in batches, each with the number of bytes read for it."""
    parser = LineParser(omit_bad=omit_bad)
    while block := _read(stream):
        yield parser.feed(block), len(block)
        if parser.refusal:
            raise parser.refusal
    yield parser.finish(), 0
    if parser.refusal:
        raise parser.refusal


def _read(stream: BinaryIO) -> bytes:
    """The next block; an error of the device is not the end of the stream."""
    try:
        return stream.read(BLOCK_BYTES)
    except OSError as error:
        reason = error.strerror
    raise TableError(f"standard input cannot be read: {reason}.")
