"""JSON objects that are read together are what each of them is by itself."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.inputs.line_formats import FEW_LINES, json_lines
from tests.inputs.test_log_lines import read

JSON_PIECES = st.sampled_from(
    [
        '{"ms": 1.5, "k": "a", "p": 7}',
        '{"ms": 2, "k": "b", "p": "x"}',
        '{"ms": 3, "k": 200, "p": 7}',
        '{"ms": 1}',
        "",
        '{"ms": 1, "k": "a", "p": 7}{"ms": 2, "k": "a", "p": 7}',
        ' {"ms": 1, "k": "a", "p": 7}',
        '{"ms": "3", "k": "a", "p": 1}',
        '{"ms": 4, "k": "\\ud800", "p": 7}',
        '{"ms": 4, "k": "\\u00e4", "p": -0}',
        '{"ms": NaN, "k": "a", "p": 7}',
        "{",
        "}",
        '{"ms": 1e999, "k": "a", "p": 7}',
        '{"ms": 12345678901234567890, "k": "a", "p": 7.0}',
        '{"ms": null, "k": "a", "p": 7}',
        '{"ms": 1, "ms": 2, "k": "a", "p": 7}',
        '{"x": {"ms": 9}, "ms": 1, "k": "", "p": 7}',
        '{"ms": true, "k": "a", "p": 7}',
        '{"ms": 5, "k": "a\x00b", "p": 7}',
        '{"ms": 6, "k": "a", "p": 99999999999999999999}',
        '{"ms": 6, "k": "a}\x01", "p": 1}',
    ]
)


@settings(max_examples=60)
@given(lines=st.lists(JSON_PIECES, max_size=4), first=st.booleans(), whole=st.booleans())
def test_json_lines__are_the_same_one_by_one_and_together(lines: list[str], first: bool, whole: bool) -> None:
    """Arrow reads many lines at once only where each of them is what it is by itself."""
    form = json_lines("ms", "k", "p")
    more = ['{"ms": 0.1, "k": "/home", "p": "x"}' if whole else '{"ms": 0.1, "k": 200, "p": 4}'] * FEW_LINES
    text = ("\n".join([*lines, *more] if first else [*more, *lines]) + "\n").encode()
    together, _ = read(form, text)
    alone, _ = read(replace(form, together=None), text)
    np.testing.assert_array_equal([row[0] for row in together], [row[0] for row in alone])
    assert [tuple(map(str, row[1:])) for row in together] == [tuple(map(str, row[1:])) for row in alone]
    good, _ = read(form, "\n".join(more).encode() + b"\n")
    assert len(good) == FEW_LINES
    assert form.together is not None
    assert form.together("\n".join(more).encode() + b"\n") is not None, "these are read together"


NESTED_PIECES = st.sampled_from(
    [
        '{"h": {"ms": 1.5, "k": "a"}, "u": {"i": {"d": 7}}}',
        '{"h": {"ms": 1.5, "k": "a"}, "u": {"i": {"d": "x"}}}',
        '{"h.ms": 9, "h": {"ms": 1, "k": "b"}, "u": {"i": {"d": 7}}}',
        '{"h.ms": null, "h": {"ms": 1, "k": "b"}, "u": {"i": {"d": 7}}}',
        '{"h\\u002ems": 9, "h": {"ms": 1, "k": "b"}, "u": {"i": {"d": 7}}}',
        '{"h.ms": 9, "h.k": "c", "u.i.d": 3}',
        '{"h": {"ms": 1, "k": "b"}, "u": {"i.d": 8, "i": {"d": 7}}}',
        '{"h": {"ms": 1, "k": "b"}, "u.i": {"d": 7}}',
        '{"h": {"ms": 1, "k": null}, "u": {"i": {"d": 7}}}',
        '{"h": {"ms": 1}, "h": {"k": "b"}, "u": {"i": {"d": 7}}}',
        '{"h": {"ms": 1, "ms": 2, "k": "b"}, "u": {"i": {"d": 7}}}',
        '{"h": 3, "u": {"i": {"d": 7}}}',
        '{"h": null, "u": {"i": {"d": 7}}}',
        '{"h": [{"ms": 1, "k": "b"}], "u": {"i": {"d": 7}}}',
        '{"h": {"ms": "5", "k": "b"}, "u": {"i": {"d": 7}}}',
        '{"h": {"ms": 1, "k": true}, "u": {"i": {"d": 7}}}',
        '{"h": {"ms": 1, "k": "\\u00e9", "more": {"x": [1, {"ms": 8}]}}, "u": {"i": {"d": 7}}, "x": {"h.m": 3}}',
        "{}",
        "",
    ]
)


@settings(max_examples=100)
@given(lines=st.lists(NESTED_PIECES, max_size=3), first=st.booleans(), flat=st.booleans())
def test_json_lines__within_objects_are_the_same_one_by_one_and_together(
    lines: list[str], first: bool, flat: bool
) -> None:
    """A name with dots leads into objects unless a line has a field of that name, in this line or in another one."""
    form = json_lines("h.ms", "h.k", "u.i.d")
    line = '{"h.ms": 0.1, "h.k": "a", "u.i.d": 4}' if flat else '{"h": {"ms": 0.1, "k": "a"}, "u": {"i": {"d": 4}}}'
    more = [line] * FEW_LINES
    text = ("\n".join([*lines, *more] if first else [*more, *lines]) + "\n").encode()
    together, _ = read(form, text)
    alone, _ = read(replace(form, together=None), text)
    np.testing.assert_array_equal([row[0] for row in together], [row[0] for row in alone])
    assert [tuple(map(str, row[1:])) for row in together] == [tuple(map(str, row[1:])) for row in alone]
    assert form.together is not None
    assert form.together("\n".join(more).encode() + b"\n") is not None, "these are read together"
