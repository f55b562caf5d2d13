"""Lines of a stream as rows: one row for each line, whatever is in it and however it is cut."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.inputs import log_lines
from dpfrugal.inputs.line_formats import FEW_LINES, json_lines, logfmt_lines, pattern_lines, plain_lines
from dpfrugal.inputs.log_lines import LineFormat
from tests.inputs.test_log_lines import read

ACCESS = r'"GET (?P<key>\S+) [^"]*" \d+ (?P<value>[\d.]+) (?P<person>\w+)'


def plainly(line: bytes) -> float:
    """The definition for lines of one number: what ``float`` takes of a line of text, without underscores."""
    try:
        return math.nan if b"_" in line else float(line.decode())
    except ValueError:
        return math.nan


PIECES = st.sampled_from(
    [b"1", b"-2.5", b"1e3", b"1e400", b"inf", b"nan", b"", b" 7", b"7 ", b"+7", b"7\r", b"7\r8", b"1_0", b"0x1", b"1,2",
     b"NULL", b"NA", b'"7"', b"\x01", b"1\x012", b"\xff", b"\xc2\xb2", b"4242x", b"7\t", b"1.5f",
     b".5", b"5.", b"Infinity", b"\xef\xbb\xbf1"]
)  # fmt: skip


@settings(max_examples=60)
@given(
    lines=st.lists(PIECES, max_size=6),
    many=st.booleans(),
    cuts=st.lists(st.integers(0, 3_000), max_size=3),
    ended=st.booleans(),
)
def test_plain_lines__are_what_float_says_of_each(lines: list[bytes], many: bool, cuts: list[int], ended: bool) -> None:
    """Arrow reads many lines at once; a line that it may read in another way is read by itself."""
    lines = [b"3.25"] * (FEW_LINES if many else 1) + lines  # the mark of byte order is for the first line
    text = b"\n".join(lines) + b"\n" * (ended or lines[-1] == b"")
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    rows, refusal = read(plain_lines(keyed=False), *(text[a:b] for a, b in itertools.pairwise(places)))
    assert refusal is None
    np.testing.assert_array_equal([row[0] for row in rows], [plainly(line) for line in lines])


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e-310, 123456789.123456789, 2.0**1023, 5e-324])
def test_plain_lines__are_exact(number: float) -> None:
    for count in (1, 1_000):
        rows, _ = read(plain_lines(keyed=False), f"{number!r}\n".encode() * count)
        assert {row[0] for row in rows} == {number}


GOOD: list[tuple[LineFormat, bytes, Any]] = [
    (plain_lines(keyed=True), b"/home 12.5", (12.5, "/home", None)),
    (plain_lines(keyed=True), b"New York\t12.5\r", (12.5, "New York", None)),
    (json_lines("ms", "route", "user"), b'{"ms": 3, "route": "/home", "user": 7, "x": [1]}', (3.0, "/home", "7")),
    (json_lines("ms", "status", None), b'{"ms": "3.5", "status": 200}', (3.5, "200", None)),
    (json_lines("http.ms", "a.b", None), b'{"http": {"ms": 1}, "a.b": true}', (1.0, "true", None)),
    (json_lines("ms", None, None), b' {"ms": -0.5} ', (-0.5, None, None)),
    (json_lines("ms", "k", None), '{"ms": 1, "k": "\u00e4\\n"}'.encode(), (1.0, "ä\n", None)),
    (logfmt_lines("ms", "route", None), b'at=info msg="ms=9 \\"x\\"" route=/home ms=3.5', (3.5, "/home", None)),
    (logfmt_lines("ms", "route", "user"), b'ms=3 user=ann route="/a b"', (3.0, "/a b", "ann")),
    (pattern_lines(ACCESS), b'1.2.3.4 - - "GET /home HTTP/1.1" 200 3.5 ann', (3.5, "/home", "ann")),
    (pattern_lines(r"took (?P<value>\S+)ms"), b"request took 12ms in all", (12.0, None, None)),
]
BAD: list[tuple[LineFormat, bytes]] = [
    (plain_lines(keyed=True), b'127.0.0.1 - - [18/Nov/2026] "GET / HTTP/1.1" 200 512'),
    (plain_lines(keyed=True), b"/home"),
    (plain_lines(keyed=True), b"\t5"),
    (plain_lines(keyed=True), b"/home 1_000"),
    (plain_lines(keyed=True), b"\xff 5"),
    (json_lines("ms", "route", None), b'{"ms": 3}'),
    (json_lines("ms", "route", None), b'{"route": "/home"}'),
    (json_lines("ms", "route", None), b'{"ms": null, "route": "/home"}'),
    (json_lines("ms", "route", None), b'{"ms": true, "route": "/home"}'),
    (json_lines("ms", "route", None), b'{"ms": 3, "route": {"a": 1}}'),
    (json_lines("ms", "route", None), b'{"ms": NaN, "route": "/home"}'),
    (json_lines("ms", "route", None), b'{"ms": 1e999999, "route": null}'),
    (json_lines("ms", None, None), b'{"ms": 3},{"ms": 4}'),
    (json_lines("ms", None, None), b"[3]"),
    (json_lines("ms", None, None), b"[" * 100_000),
    (json_lines("a.b", None, None), b'{"a": 3}'),
    (logfmt_lines("ms", "route", None), b'msg="ms=9 route=/home"'),
    (logfmt_lines("ms", None, None), b"ms=3.5x"),
    (pattern_lines(ACCESS), b"nothing of the kind"),
    (pattern_lines(r"(?P<value>\d\.\d) (?P<key>[a-z]+)?"), b"5.5 "),
    (json_lines("ms", None, None), b'{"ms": 1, "x": "' + b"y" * log_lines.LONGEST_LINE + b'"}'),
]


@pytest.mark.parametrize(("form", "line", "expected"), GOOD)
def test_log_lines__are_rows(form: LineFormat, line: bytes, expected: Any) -> None:
    rows, _ = read(form, line)
    assert rows == [expected]
    cut, _ = read(form, *(line[k : k + 5] for k in range(0, len(line), 5)), b"\n" + line + b"\n")
    assert cut == [expected] * 2


# A line that fits every one of these formats.
FITS = {
    "a key": b"/home\t12.5",
    "a JSON": b'{"ms": 3, "route": "/home", "a": {"b": 5}}',
    "pairs": b"ms=3 route=/home",
    "one in": b'"GET /home HTTP/1.1" 200 3.5 ann',
}


@pytest.mark.parametrize(("form", "line"), BAD, ids=range(len(BAD)))
def test_log_lines__that_do_not_fit_are_missing_or_end_the_stream(form: LineFormat, line: bytes) -> None:
    """Each is one row whatever is in it, and no other line is read in another way because of it."""
    good = next(fitting for said, fitting in FITS.items() if form.said.startswith(said))
    text = b"\n".join([good, line, b"", good])
    rows, _ = read(form, text)
    assert [row[0] == row[0] for row in rows] == [True, False, False, True]
    rows, refusal = read(form, text, omit=False)
    assert len(rows) == 1
    long = len(line) > log_lines.LONGEST_LINE
    assert str(refusal).startswith("Line 2 is longer than" if long else "Line 2 does not fit: ")
    assert line.decode(errors="replace") not in str(refusal)
    assert "is blank" in str(read(form, b"\n" + good, omit=False)[1])


@pytest.mark.parametrize("pattern", ["(", "no groups", "(?P<value>.)(?P<other>.)", "(?P<key>.)"])
def test_pattern__must_have_a_value_and_no_strange_names(pattern: str) -> None:
    with pytest.raises(dpf.ParameterError, match="--pattern"):
        pattern_lines(pattern)
