"""How a line is read: as a number, a key and a number, a JSON object, pairs of name=value, or by a regular expression.

Many lines that are numbers or JSON objects and nothing else are read together by Arrow.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.inputs.json_objects import field_of, rows_of_objects
from dpfrugal.inputs.log_lines import LineFormat, LogRows, Row, number_of

# So few lines are read sooner than Arrow is.
FEW_LINES: Final = 200
LOGFMT: Final = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?=\s|$)')


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

    def together(text: bytes) -> LogRows | None:
        return rows_of_objects(text, value, key, person)

    return replace(_with_fields(read, "a JSON object", value, key, person), together=together)


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
            number_of(field_of(found, value)),
            None if key is None else text_of(field_of(found, key)),
            None if person is None else text_of(field_of(found, person)),
        )

    named = ", ".join([f"a number {value!r}", *(repr(name) for name in (key, person) if name is not None)])
    return LineFormat(row, keyed=key is not None, with_person=person is not None, said=f"{what} with {named}")


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
