"""JSON lines: one that is no object takes no other with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.serve.ingest.items import MALFORMED
from dpfrugal.serve.ingest.json_lines import JsonLines

objects = st.dictionaries(st.text(), st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text()), max_size=3)


@given(st.lists(objects))
def test_json_lines__each_object_is_an_item(rows: list[dict[str, object]]) -> None:
    body = "\n".join(json.dumps(row) for row in rows).encode()
    items, refused = JsonLines().read(body)
    assert [item.attributes for item in items] == rows
    assert refused == {}


@pytest.mark.parametrize(
    "line", ["1", "[]", "{", '{"a": }', "null", '"text"', '{"a": 1} {"b": 2}', "[" * 100_000, "\x00"]
)
def test_json_lines__what_is_no_object_is_counted(line: str) -> None:
    items, refused = JsonLines().read(f'{{"ms": 1}}\n{line}\n\n{{"ms": 2}}\r\n'.encode())
    assert [item.attributes for item in items] == [{"ms": 1}, {"ms": 2}]
    assert refused == {MALFORMED: 1}


def test_json_lines__text_in_another_encoding_is_counted() -> None:
    items, refused = JsonLines().read(b'{"ms": "\xff"}\n{"ms": 3}')
    assert [item.attributes for item in items] == [{"ms": 3}]
    assert refused == {MALFORMED: 1}


def test_json_lines__whether_a_line_counts_depends_on_no_other() -> None:
    for others in ("", "{\n", '{"ms":\n1}\n'):
        items, _ = JsonLines().read(f'{others}{{"a": 1}} {{"b": 2}}\n{{"ms": 3}}'.encode())
        assert [item.attributes for item in items] == [{"ms": 3}]
