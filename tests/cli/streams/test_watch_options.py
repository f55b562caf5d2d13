"""The options of ``watch``: each way to read a line excludes the others, and windows' options reach the estimator."""

from dataclasses import fields
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.cli.options import EstimatorOptions
from dpfrugal.cli.streams.watch_options import NO_NAME, LineOptions, WindowOptions
from dpfrugal.errors import ParameterError
from dpfrugal.inputs.log_lines import LogLines

KEYED = '{"ms": 12.5, "path": "/a", "who": "ann"}\n'


@pytest.mark.parametrize(
    ("options", "line", "row"),
    [
        ({}, "12.5\n", ([12.5], None, None)),
        ({"by": NO_NAME}, "/a\t12.5\n", ([12.5], ["/a"], None)),
        ({"json_lines": True, "value": "ms"}, KEYED, ([12.5], None, None)),
        ({"json_lines": True, "value": "ms", "by": "path", "person": "who"}, KEYED, ([12.5], ["/a"], ["ann"])),
        ({"logfmt": True, "value": "ms", "by": "path"}, "path=/a ms=12.5\n", ([12.5], ["/a"], None)),
        ({"pattern": r"took (?P<value>\S+) ms"}, "it took 12.5 ms\n", ([12.5], None, None)),
        ({"pattern": r"(?P<key>/\w+) (?P<value>\S+)", "by": NO_NAME}, "GET /a 12.5\n", ([12.5], ["/a"], None)),
    ],
    ids=str,
)
def test_line_options__read_a_line_as_they_say(options: dict[str, Any], line: str, row: tuple[Any, ...]) -> None:
    rows = LogLines(LineOptions(**options).format()).feed(line.encode())
    keys, persons = (None if column is None else list(map(str, column)) for column in (rows.keys, rows.persons))
    assert (rows.values.tolist(), keys, persons) == row


@pytest.mark.parametrize(
    "options",
    [
        {"json_lines": True, "logfmt": True, "value": "ms"},
        {"json_lines": True, "pattern": "(?P<value>.*)", "value": "ms"},
        {"logfmt": True, "pattern": "(?P<value>.*)"},
        {"json_lines": True},
        {"logfmt": True},
        {"json_lines": True, "value": "ms", "by": NO_NAME},
        {"value": "ms"},
        {"person": "who"},
        {"by": "path"},
        {"pattern": "(?P<value>.*)", "by": "path"},
        {"pattern": "(?P<value>.*)", "by": NO_NAME},
        {"pattern": "(?P<value>.*)", "person": "who"},
        {"pattern": "no group"},
        {"pattern": "("},
    ],
    ids=str,
)
def test_line_options__that_do_not_go_together_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        LineOptions(**options).format()


def test_line_options__plain_lines_are_what_every_algorithm_reads() -> None:
    assert LineOptions().plain
    assert LineOptions(by=NO_NAME).plain
    changes = ({"by": "path"}, {"json_lines": True}, {"logfmt": True}, {"value": "ms"}, {"person": "w"})
    assert not any(LineOptions(**change).plain for change in (*changes, {"pattern": "x"}))


OTHERS: dict[str, Any] = {
    "neighbours": "add-remove",
    "windows": 24,
    "hold": 100,
    "intervals": False,
    "confidence": 0.9,
    "low": 0.0,
    "high": 10.0,
    "other": "rest",
    "counts": False,
}


# Under which name a window's record has them, where that is another one.
RECORDED = {"confidence": "intervals", "low": "hints", "high": "hints"}


def test_window_options__are_all_tried_here() -> None:
    assert OTHERS.keys() == {field.name for field in fields(WindowOptions)}


@pytest.mark.parametrize("name", OTHERS)
def test_window_options__are_for_windows_alone(name: str) -> None:
    WindowOptions().refuse("dp-frugal-1u")
    with pytest.raises(ParameterError, match=rf"--{name} is for windows; --algorithm dp-frugal-1u has none"):
        WindowOptions(**{name: OTHERS[name]}).refuse("dp-frugal-1u")


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"hold", "other", "counts"}))
def test_window_options__reach_the_estimator(name: str) -> None:
    """One that was dropped on the way would make the same estimator: its recorded parameters would not differ."""
    asked = EstimatorOptions([[0.5]], epsilon=1.0)  # type: ignore[list-item]
    plain, changed = (
        dpf.WindowQuantile(0.5, asked.guarantee(), **options.parameters(asked)).parameters()
        for options in (WindowOptions(), WindowOptions(**{name: OTHERS[name]}))
    )
    assert [key for key in plain if plain[key] != changed[key]] == [RECORDED.get(name, name)]


@pytest.mark.parametrize(
    ("name", "value"), [("decimals", 2), ("max_items_per_person", 3), ("nan_policy", "omit")], ids=str
)
def test_window_options__take_those_of_all_estimators_along(name: str, value: Any) -> None:
    asked = EstimatorOptions([[0.5]], epsilon=1.0, **{name: value})  # type: ignore[list-item]
    assert WindowOptions().parameters(asked)[name] == value
