r"""Text from outside, written where it cannot do harm: to terminals, columns, CSV, JSON, HTML and logs.

Names of datasets, columns and files, notes and keys are chosen by others. A tab would make a column, a newline a row,
``ESC[2J`` would clear the terminal of whoever looks, ``=cmd|…`` is a formula to a spreadsheet, ``<script>`` a program
to a browser. Each form here keeps different texts different, so that no two keys become one.

Worked example: the key "a⇥b" is ``a\tb`` in columns of text, "a⇥b" in quotes in CSV and ``"a\tb"`` in JSON.
"""

import html
import json
import re
from collections.abc import Sequence
from typing import Any, Final

MOST_NAMES: Final = 20
# After a backslash these would read as an escape: then the backslash itself is doubled.
LIKE_AN_ESCAPE: Final = re.compile(r"\\|[ntr]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}")
KEPT_IN_CSV: Final = "\t\n\r"  # in quotes
# What a spreadsheet takes for a formula at the beginning of a cell; an apostrophe makes it text.
FORMULA: Final = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
SPECIAL: Final = re.compile('[,"\n\r\t]|^ | $')  # what CSV must quote
NUMBER: Final = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|nan)")


def as_text(value: Any) -> str:
    """A key as text: bytes as UTF-8, those that are none kept apart as lone surrogates; a missing key is empty."""
    if value is None:
        return ""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def in_line(value: Any, kept: str = "") -> str:
    r"""For a terminal, a log or a column between tabs: one line, in which everything is printed.

    What is not printable is escaped as Python does, and a backslash where it would read as an escape.

    >>> print(in_line("a\x1b[2J\n"), in_line(r"C:\temp\x1b"), in_line("clicks [eu]"))
    a\x1b[2J\n C:\\temp\\x1b clicks [eu]
    """
    text = as_text(value)
    if text.isprintable() and "\\" not in text:
        return text
    written: list[str] = []
    for at, letter in enumerate(text):
        if letter == "\\":
            after = text[at + 1 : at + 2]
            escaped_next = after != "" and not after.isprintable() and after not in kept
            doubled = escaped_next or LIKE_AN_ESCAPE.match(text, at + 1) is not None
            written.append("\\\\" if doubled else "\\")
        elif letter.isprintable() or letter in kept:
            written.append(letter)
        else:
            written.append(letter.encode("unicode_escape", "surrogatepass").decode())
    return "".join(written)


def in_csv(value: Any) -> str:
    """For a cell of CSV, which the writer of CSV must still quote: never a formula, and nothing a terminal obeys.

    >>> in_csv("=cmd|' /C calc'!A0"), in_csv("-5"), in_csv("a,b")
    ("'=cmd|' /C calc'!A0", '-5', 'a,b')
    """
    text = in_line(value, KEPT_IN_CSV)
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def csv_line(cells: list[str]) -> str:
    r"""A row of CSV without its end; cells with a comma, a quote or the end of a line are quoted.

    >>> print(csv_line(["a,b", "say 'x'", "1"]))
    "a,b",say 'x',1
    """
    if cells == [""]:
        return '""'  # a blank line would be no row
    return ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' if SPECIAL.search(cell) else cell for cell in cells)


def in_json(value: Any, **options: Any) -> str:
    r"""JSON on one line, with letters of all scripts as they are and everything that is not printable escaped.

    >>> print(in_json({"key": "é\x1b\x9b"}))
    {"key": "é\u001b\u009b"}
    """
    text = json.dumps(value, ensure_ascii=False, **options)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def in_html(value: Any) -> str:
    """For the text of an element or an attribute in quotes.

    >>> in_html("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(in_line(value), quote=True)


def listed(names: Sequence[Any]) -> str:
    """The first names of columns, and how many more there are: they are public, so errors may list them."""
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
