"""Lines of a stream as rows: a number, and where they are wanted a key and a person.

``LogLines`` is fed bytes as they arrive. Every line is one row, so that the number of rows never depends on what is in
them; a line that does not fit is a row without a value, or ends the stream with its number (never its content). Where
there are many lines that are numbers or JSON objects and nothing else, Arrow reads them together; all others are read
one by one, so that no line can change how another one is read.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError, TableError
from dpfrugal.inputs.lines import BYTE_ORDER_MARK

LONGEST_LINE: Final = 1 << 20
# So few lines are read sooner than Arrow is.
FEW_LINES: Final = 200
Row = tuple[float, str | None, str | None]
Reading = Callable[[str], Row]
BAD: Final[Row] = (math.nan, None, "")
LOGFMT: Final = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?=\s|$)')


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
        if self._form.together is not None:
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
        if not self._omit_bad:
            what = f"does not fit: a line must be {self._form.said}"
            self.refusal = TableError(
                f"Line {self._line} {what if line.strip() else 'is blank'} (to count such lines as missing items, use "
                "--nan-policy omit)."
            )
        return BAD


def numbers_of(text: bytes) -> NDArray[np.float64] | None:
    """The numbers of whole lines of one number each, all at once; None where a line may be anything else."""
    if not text:
        return np.empty(0)
    if b"_" in text or b"\x01" in text:  # float() accepts 1_000, which data do not contain
        return None
    if text.count(b"\n") < FEW_LINES:
        try:
            return np.array(list(map(float, text.split(b"\n")[:-1])), dtype=np.float64)
        except ValueError:
            return None
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    return None if b"\r" in text else _by_arrow(text)


def _by_arrow(text: bytes) -> NDArray[np.float64] | None:
    import pyarrow as pa
    import pyarrow.csv

    try:
        column = pa.csv.read_csv(
            pa.BufferReader(text),
            read_options=pa.csv.ReadOptions(use_threads=False, column_names=["value"], block_size=len(text) + 1),
            parse_options=pa.csv.ParseOptions(delimiter="\x01", quote_char=False, ignore_empty_lines=False),
            convert_options=pa.csv.ConvertOptions(column_types={"value": pa.float64()}, null_values=[]),
        ).column(0)
    except pa.ArrowException:
        return None
    if column.null_count or len(column) != text.count(b"\n"):
        return None
    numbers: NDArray[np.float64] = column.to_numpy()
    return numbers


def number_of(found: Any) -> float:
    """A number, or text of one; a truth value is none."""
    if isinstance(found, str):
        if "_" in found:
            raise ValueError("not a number")
        return float(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise TypeError("not a number")
    return float(found)


def text_of(found: Any) -> str:
    """A key or a person as text: text, a whole number or a truth value."""
    if isinstance(found, str):
        if not found.isascii():
            found.encode()  # half of a pair of surrogates is no text
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int | float):
        return str(found)
    raise TypeError("not a key")


def plain_lines(*, keyed: bool) -> LineFormat:
    """A number; or a key and a number with a tab or one blank between them."""
    if not keyed:
        return LineFormat(None, together=lambda text: None if (found := numbers_of(text)) is None else LogRows(found))

    def row(line: str) -> Row:
        key, tab, value = line.rstrip("\r").rpartition("\t")
        if not tab:
            key, value = line.split()  # a key with blanks, like the beginning of a line of a log, does not fit
        if not key:
            raise ValueError("no key")
        return number_of(value), key, None

    return LineFormat(row, keyed=True, said="a key and a number with a tab or one blank between them")


def json_lines(value: str, key: str | None, person: str | None) -> LineFormat:
    """A JSON object with these fields; a name with dots also leads into objects."""

    def read(line: str) -> Any:
        found = json.loads(line)
        if not isinstance(found, dict):
            raise TypeError("no object")
        return found

    names = [name for name in (value, key, person) if name is not None]

    # Keys and persons are text or whole numbers; what they were in the last block is tried first.
    ways = list(itertools.product((False, True), repeat=len(names) - 1))

    def together(text: bytes) -> LogRows | None:
        for at, numbers in enumerate(ways):
            if (found := _json_by_arrow(text, value, key, person, iter(numbers))) is not None:
                ways.insert(0, ways.pop(at))
                return found
        return None

    # A name with a dot may be of a field or of one within another.
    several = len(set(names)) == len(names) and not any("." in name for name in names)
    return replace(_with_fields(read, "a JSON object", value, key, person), together=together if several else None)


def _json_by_arrow(
    text: bytes, value: str, key: str | None, person: str | None, numbers: Iterator[bool]
) -> LogRows | None:
    """The rows of lines that are one JSON object each, with a number and with text; None where one may not be that.

    ``numbers`` says of key and person whether they are whole numbers instead of text.
    Each line must begin and end with a brace: then no object reaches over a line, as a comma would have to stand
    between, and as many rows as lines are one in each.
    """
    lines = text.count(b"\n")
    whole = text[:1] == b"{" and text[-2:] == b"}\n" and text.count(b"}\n{") == lines - 1
    if lines < FEW_LINES or not whole:
        return None
    import pyarrow as pa
    import pyarrow.json

    texts = [(name, pa.int64() if next(numbers) else pa.string()) for name in (key, person) if name is not None]
    try:
        text.decode()
        table = pa.json.read_json(
            pa.BufferReader(text),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=pa.schema([(value, pa.float64()), *texts]), unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    columns = [table.column(name).combine_chunks() for name in (value, *(name for name, _ in texts))]
    if len(table) != lines or any(column.null_count for column in columns):
        return None
    several = (column.cast(pa.string()) for column in columns[1:])
    keys, persons = (None if name is None else next(several) for name in (key, person))
    return LogRows(columns[0].to_numpy(), keys, persons)


def logfmt_lines(value: str, key: str | None, person: str | None) -> LineFormat:
    """Pairs as in ``route=/home duration_ms=12.5 message="all well"``."""

    def read(line: str) -> dict[str, str]:
        pairs = LOGFMT.findall(line)
        return {name: json.loads(text) if text[:1] == '"' else text for name, text in pairs}

    return _with_fields(read, "pairs of name=value", value, key, person)


def _with_fields(read: Callable[[str], Any], what: str, value: str, key: str | None, person: str | None) -> LineFormat:
    def row(line: str) -> Row:
        found = read(line)
        return (
            number_of(_field(found, value)),
            None if key is None else text_of(_field(found, key)),
            None if person is None else text_of(_field(found, person)),
        )

    named = ", ".join([f"a number {value!r}", *(repr(name) for name in (key, person) if name is not None)])
    return LineFormat(row, keyed=key is not None, with_person=person is not None, said=f"{what} with {named}")


def _field(found: dict[str, Any], name: str) -> Any:
    if name in found:
        return found[name]
    first, dot, rest = name.partition(".")
    if not dot or not isinstance(inner := found[first], dict):
        raise KeyError(name)
    return _field(inner, rest)


def pattern_lines(pattern: str) -> LineFormat:
    """Lines in which a regular expression is found, with groups named value, and perhaps key and person."""
    try:
        search = re.compile(pattern)
    except re.error as error:
        raise ParameterError(f"--pattern is not a regular expression: {error}.") from None
    groups = search.groupindex
    if "value" not in groups or not groups.keys() <= {"value", "key", "person"}:
        raise ParameterError(
            "--pattern must have a group (?P<value>…), and may have (?P<key>…) and (?P<person>…), but no others with "
            "a name."
        )
    at = [groups.get(name) for name in ("value", "key", "person")]
    value_at, key_at, person_at = at

    def row(line: str) -> Row:
        match = search.search(line)
        if match is None:
            raise ValueError("no match")
        parts = match.groups()
        key, person = (None if place is None else text_of(parts[place - 1]) for place in (key_at, person_at))
        return number_of(parts[value_at - 1]), key, person  # type: ignore[operator]

    return LineFormat(row, "key" in groups, "person" in groups, "one in which --pattern is found, with a number")
