"""Lines of a stream as rows: a number, and where they are wanted a key and a person.

``LogLines`` is fed bytes as they arrive. Every line is one row, so that the number of rows never depends on what is in
them; a line that does not fit is a row without a value, or ends the stream with its number (never its content). Where
many lines can be read together they are; all others are read one by one, so that no line can change how another one is
read.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import TableError
from dpfrugal.inputs.number_lines import BYTE_ORDER_MARK, too_long

LONGEST_LINE: Final = 1 << 20
ENDLESS: Final = 1 << 30  # a line that is longer ends the stream even where others would count as missing items
Row = tuple[float, str | None, str | None]
Reading = Callable[[str], Row]
BAD: Final[Row] = (math.nan, None, "")


@dataclass(frozen=True)
class LogRows:
    """Rows in the order of their lines; a value that is missing is NaN."""

    values: NDArray[np.float64] = field(repr=False)
    keys: Any = field(repr=False, default=None)  # lists or Arrow arrays of text
    persons: Any = field(repr=False, default=None)

    def __len__(self) -> int:
        return self.values.size

    def __getitem__(self, part: slice) -> "LogRows":
        keys, persons = (None if column is None else column[part] for column in (self.keys, self.persons))
        return LogRows(self.values[part], keys, persons)


@dataclass(frozen=True)
class LineFormat:
    """How a line is read: ``row`` gives its number, key and person, or raises; ``None`` is a line of one number.

    ``together`` reads many lines at once, or gives None where ``row`` might read one of them in another way.
    """

    row: Reading | None
    keyed: bool = False
    with_person: bool = False
    said: str = "one number"  # what a line must be
    together: Callable[[bytes], "LogRows | None"] | None = None


class LogLines:
    """Turns blocks of bytes, cut anywhere, into rows, and stops at a refused line."""

    def __init__(self, form: LineFormat, *, omit_bad: bool = False) -> None:
        self.refusal: TableError | None = None
        self._form, self._omit_bad = form, omit_bad
        self._rest: list[bytes] = []
        self._waiting = 0  # bytes of the open line
        self._line = 0

    def feed(self, block: bytes) -> LogRows:
        """The rows of the lines that ``block`` completes, up to a refused one; see ``refusal`` then."""
        whole, newline, rest = block.rpartition(b"\n")
        if not newline:
            self._keep(block)
            if self._waiting > (ENDLESS if self._omit_bad else LONGEST_LINE):
                self.refusal = self.refusal or too_long(self._line + 1, LONGEST_LINE)
            return self._rows(b"")
        text = b"".join([*self._rest, whole, newline])
        self._rest, self._waiting = [], 0
        self._keep(rest)
        return self._rows(text)

    def _keep(self, rest: bytes) -> None:
        """Of a line that never ends, only enough to show that it is too long."""
        if rest and self._waiting <= LONGEST_LINE:
            self._rest.append(rest)
        self._waiting += len(rest)

    def finish(self) -> LogRows:
        """The row of a last line without a newline."""
        text, self._rest = b"".join(self._rest), []
        return self._rows(text + b"\n" if text else b"")

    def _rows(self, text: bytes) -> LogRows:
        if self.refusal:
            text = b""
        if self._line == 0:
            text = text.removeprefix(BYTE_ORDER_MARK)
        if self._form.together is not None and not _has_long_line(text):
            found = self._form.together(text)
            if found is not None and (self._omit_bad or not np.isnan(found.values).any()):
                self._line += len(found)
                return found
        rows: list[Row] = []
        for line in text.split(b"\n")[:-1]:
            self._line += 1
            rows.append(self._row(line))
            if self.refusal:
                rows.pop()
                break
        values = np.array([row[0] for row in rows], dtype=np.float64)
        keys = [row[1] for row in rows] if self._form.keyed else None
        return LogRows(values, keys, [row[2] for row in rows] if self._form.with_person else None)

    def _row(self, line: bytes) -> Row:
        try:
            if len(line) <= LONGEST_LINE:
                text = line.decode()
                found = (number_of(text), None, None) if self._form.row is None else self._form.row(text)
                if found[0] == found[0]:
                    return found
        except (
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            OverflowError,
        ):  # UnicodeDecodeError is a ValueError
            pass
        if not self._omit_bad and len(line) > LONGEST_LINE:
            self.refusal = too_long(self._line, LONGEST_LINE)
        elif not self._omit_bad:
            what = f"does not fit: a line must be {self._form.said}" if line.strip() else "is blank"
            others = "--json-lines, --logfmt and --pattern read others; " if self._form.row is None else ""
            self.refusal = TableError(
                f"Line {self._line} {what} ({others}--nan-policy omit counts such lines as missing items)."
            )
        return BAD


def _has_long_line(text: bytes) -> bool:
    """Whether a line is too long, of which not all may have been kept."""
    return len(text) > LONGEST_LINE and max(map(len, text.split(b"\n"))) > LONGEST_LINE


def number_of(found: Any) -> float:
    """A number, or text of one; a truth value is none."""
    if isinstance(found, str):
        if "_" in found:
            raise ValueError("not a number")
        return float(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TypeError("not a number")
    return float(found)
