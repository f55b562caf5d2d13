"""StatsD lines of both dialects; a line that is none takes no other with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.serve.ingest import statsd
from dpfrugal.serve.ingest.items import MALFORMED
from dpfrugal.serve.ingest.statsd import LONGEST_LINE, read_lines


def values(block: bytes, name: str = "api") -> list[object]:
    return [item.attributes["value"] for item in read_lines(block, {name})[0].get(name, [])]


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b"api:12|ms", [12.0]),
        (b"api:12.5|h|@0.1", [12.5]),
        (b"api:1:2:3e2|d|#route:/pay", [1.0, 2.0, 300.0]),
        (b"api:-.5|ms\r\n", [-0.5]),
        (b"api:nan|ms", [""]),
        (b"api:0x1|ms", [""]),
        (b"api:1_0|ms", [""]),
        (b"api:1|c", []),
        (b"api:1|g", []),
        (b"other:1|ms", []),
    ],
)
def test_read_lines__of_timers_that_are_wanted(line: bytes, read: list[object]) -> None:
    assert values(line) == read
    assert read_lines(line, {"api"})[1] == {}


@pytest.mark.parametrize(
    "line", [b"api", b"api:1", b"api|ms", b":1|ms", b"api:1|", b"api:1||", b"a" * LONGEST_LINE + b":1|ms"]
)
def test_read_lines__a_malformed_one_is_counted(line: bytes) -> None:
    found, refused = read_lines(b"api:1|ms\n" + line + b"\n\napi:2|ms", {"api"})
    assert [item.attributes["value"] for item in found["api"]] == [1.0, 2.0]
    assert refused == {MALFORMED: 1}


def test_read_lines__tags_are_attributes_and_none_of_them_is_the_value() -> None:
    (item,) = read_lines("api:7|ms|@1|#route:/käse,value:9,flag".encode(), {"api"})[0]["api"]
    assert item.attributes == {"route": "/käse", "flag": "", "value": 7.0}


@given(st.binary())
def test_read_lines__any_bytes_have_an_answer(block: bytes) -> None:
    found, refused = read_lines(block, {"api"})
    assert set(found) <= {"api"}
    assert sum(refused.values()) <= block.count(b"\n") + 1


def test_read_lines__nothing_of_a_block_is_remembered() -> None:
    assert not [name for name, found in vars(statsd).items() if hasattr(found, "cache_info")]
