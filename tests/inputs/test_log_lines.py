"""Blocks of bytes, cut anywhere, as rows: however a line is read."""

import json
from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.inputs import log_lines
from dpfrugal.inputs.line_formats import json_lines, plain_lines
from dpfrugal.inputs.log_lines import LineFormat, LogLines


def read(form: LineFormat, *blocks: bytes, omit: bool = True) -> tuple[list[Any], dpf.TableError | None]:
    lines = LogLines(form, omit_bad=omit)
    rows: list[Any] = []
    for found in [*(lines.feed(block) for block in blocks), lines.finish()]:
        columns = [
            column.tolist() if hasattr(column, "tolist") else column
            for column in (found.values, found.keys, found.persons)
        ]
        rows += zip(*(column if column is not None else [None] * len(found) for column in columns), strict=True)
    return rows, lines.refusal


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_log_lines__that_are_too_long_are_no_numbers_and_not_waited_for(keyed: bool, ended: bool) -> None:
    """Only the beginning of such a line is kept, which may look like a number."""
    block = b"1" * (1 << 16)
    for omit_bad in (False, True):
        lines = LogLines(plain_lines(keyed=keyed), omit_bad=omit_bad)
        rows = [len(lines.feed((b"a " if keyed and not k else b"") + block)) for k in range(20)]
        assert sum(rows) == 0
        assert (lines.refusal is None) is omit_bad
        last = lines.feed(b"\n") if ended else lines.finish()
        assert np.isnan(last.values).tolist() == ([True] if omit_bad else [])
    assert lines.refusal is None


def test_log_lines__hold_no_more_of_an_endless_line_than_they_need() -> None:
    lines = LogLines(json_lines("ms", None, None), omit_bad=True)
    for _ in range(100):
        lines.feed(b"x" * 100_000)
    assert sum(map(len, lines._rest)) < 2 * log_lines.LONGEST_LINE
    assert len(lines.feed(b"\n" + json.dumps({"ms": 1}).encode() + b"\n")) == 2
