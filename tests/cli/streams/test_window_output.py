"""What ``watch`` shows of windows: no number where there is none, and one line for each row whatever its key."""

import json
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.cli.streams import window_output
from dpfrugal.cli.streams.window_output import (
    NO_SPARK,
    SPARKS,
    claim_of,
    json_of_keys,
    json_of_window,
    lines_of_keys,
    lines_of_window,
    reasons_of_keys,
    sparkline,
)

ONE = dpf.PureDP(epsilon=1.0)
KEYS = ["/home", "tab\there", "line\nbreak", "bell\x07", "/few"]


def release(**options: object) -> dpf.WindowRelease:
    windows = dpf.WindowQuantile([0.5, 0.999], ONE, **options)  # type: ignore[arg-type]
    windows.update_many(np.arange(2_000.0))
    return windows.release()


def keyed_release(**options: object) -> object:
    windows = dpf.KeyedWindowQuantile([0.5, 0.9], dpf.PureDP(epsilon=5.0), keys=KEYS, **options)  # type: ignore[arg-type]
    windows.update_many(KEYS[:-1] * 2_000, np.repeat(np.arange(2_000), 4))
    return windows.release()


@pytest.mark.parametrize(("options", "cells"), [({}, 8), ({"intervals": False}, 4)], ids=str)
def test_window__is_a_line_with_blanks_for_what_is_not_known(options: dict[str, object], cells: int) -> None:
    (line,) = lines_of_window(release(**options), "12:00")
    found = line.split("\t")
    assert len(found) == cells
    assert found[:2] == ["12:00", "2000"]
    assert 900 < float(found[2]) < 1_100
    assert set(found[cells // 2 + 1 :]) == {""}, "two rows beyond a p99.9 are too few"
    (text,) = json_of_window(release(**options), "12:00")
    record = json.loads(text)
    assert record["end"] == "12:00"
    assert record["values"][1] is None


def test_window__of_a_private_number_of_items_shows_none() -> None:
    (line,) = lines_of_window(release(neighbours="add-remove"), "12:00")
    assert line.split("\t")[1] == ""
    assert "add" in claim_of(release(neighbours="add-remove"))
    assert claim_of(release()) == "ε=1 per item (replace-one)"


def test_keys__have_a_line_each_whatever_characters_they_are_of() -> None:
    table = keyed_release()
    lines = lines_of_keys(table, "12:00", 2)
    assert [line.split("\t")[1] for line in lines] == ["/home", "tab\\there", "line\\nbreak", "bell\\x07", "/few"]
    assert all(len(line.split("\t")) == 3 + 2 * 3 and "\n" not in line for line in lines)
    assert set(lines[-1].split("\t")[3:]) == {""}
    objects = [json.loads(text) for text in json_of_keys(table, "12:00")]
    assert [one["key"] for one in objects[::2]] == KEYS
    assert all(one["value"] is None for one in objects[-2:])
    assert len(lines_of_keys(keyed_release(intervals=False, counts=False), "12:00", 2)[0].split("\t")) == 3 + 2


def is_spark(values: list[float | None], text: str) -> bool:
    """Bars rise with the values: from the lowest bar to the highest one, and a dot where there is no value."""
    there = [(value, SPARKS.index(bar)) for value, bar in zip(values, text, strict=True) if value is not None]
    if any((value is None) != (bar == NO_SPARK) for value, bar in zip(values, text, strict=True)):
        return False
    rising = [bar for _, bar in sorted(there)]
    if len({value for value, _ in there}) < 2:
        return len(set(rising)) <= 1
    return rising == sorted(rising) and (rising[0], rising[-1]) == (0, len(SPARKS) - 1)


@given(st.lists(st.none() | st.floats(-1e9, 1e9), max_size=24))
def test_sparkline__rises_with_the_values(values: list[float | None]) -> None:
    assert is_spark(values, sparkline(deque(values)))


def test_live_table__is_for_a_terminal_and_not_for_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not window_output.is_live(as_json=False), "the tests' output is no terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert window_output.is_live(as_json=False)
    assert not window_output.is_live(as_json=True)


def test_live_table__shows_no_more_rows_than_a_terminal_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "12")
    table = window_output.LiveTable("1m")
    table.show(keyed_release(), "12:00")
    table.stop()
    assert "6 more rows: pipe the output, or use --json" in capsys.readouterr().out


def test_reasons_of_keys__name_the_quantile_once() -> None:
    windows = dpf.KeyedWindowQuantile([0.5, 0.999], ONE, keys=["/home", "/pay"])
    windows.update_many(["/home"] * 2_000 + ["/pay"] * 2_000, np.arange(4_000.0))
    (reason,) = reasons_of_keys(windows.release())
    assert reason.startswith("too few rows for q=0.999: about ")
