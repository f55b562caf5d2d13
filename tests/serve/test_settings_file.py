"""A settings file as fields: every refusal has the file, the line and the field, and no field is passed over."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import ParameterError
from dpfrugal.serve.settings_file import BYTES, LARGEST_FILE, SECONDS, Fields, read_file, read_text

TEXT = """\
name: latency
number: 2.5
count: 1_000
on: true
every: 10s
size: 8Mi
list: [a, b]
inner:
  one: 1
several:
  - {x: 1}
  - {x: 2}
"""


def fields(text: str = TEXT) -> Fields:
    return read_text(text, "serve.yaml")


def test_fields__have_the_values_of_the_file() -> None:
    found = fields()
    assert (found.text("name"), found.number("number"), found.integer("count", 1, 10_000)) == ("latency", 2.5, 1_000)
    assert (found.truth("on", False), found.seconds("every"), found.size("size")) == (True, 10.0, 8 << 20)
    assert found.texts("list", "a list") == ("a", "b")
    inner = found.section("inner")
    assert inner is not None
    assert inner.integer("one", 0, 9) == 1
    assert [each.integer("x", 0, 9) for each in found.sections("several")] == [1, 2]
    assert "nothing" not in found
    found.end()


READINGS: dict[str, Callable[[Fields, str], Any]] = {
    "text": lambda found, name: found.text(name, default="d"),
    "word": lambda found, name: found.word(name, ("a", "b"), default="d"),
    "truth": lambda found, name: found.truth(name, False),
    "number": lambda found, name: found.number(name, default=1.0),
    "integer": lambda found, name: found.integer(name, 1, 9, default=3),
    "seconds": lambda found, name: found.seconds(name, default=1.0),
    "size": lambda found, name: found.size(name, default=1),
    "texts": lambda found, name: found.texts(name, "a list", default=()),
}
# What each of them refuses, of values that YAML has.
REFUSED = {
    "text": ["{a: 1}", "[1]", "", "~", '""'],
    "word": ["c", "1", "[a]", "~"],
    "truth": ["maybe", "1", "[true]", "~"],
    "number": ["x", "1e", "nan", "inf", "infinity", '""', "{a: 1}", "~"],
    "integer": ["0", "10", "1.5", "x", "~"],
    "seconds": ["10 weeks", "-1s", "0", "0s", "s", "[1s]"],
    "size": ["8Mb", "-1", "0", "1.5.2k", "[1]"],
    "texts": ["{a: 1}", '[""]', "[[a]]", "~"],
}


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in REFUSED.items() for value in values])
def test_field__of_another_kind_is_refused_with_its_line(kind: str, value: str) -> None:
    with pytest.raises(ParameterError, match=r"^serve.yaml, line 3: (inner\.)?it must be ") as refused:
        READINGS[kind](read_text(f"a: 1\nb: 2\nit: {value}\n", "serve.yaml"), "it")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("text", "number"), [("1e-6", 1e-6), ("1.0e-6", 1e-6), ("-3", -3.0), ("1_000", 1e3)])
def test_number__is_one_as_people_write_it(text: str, number: float) -> None:
    """YAML 1.1 itself takes 1e-6 for text."""
    assert read_text(f"it: {text}\n", "f").number("it") == number


@pytest.mark.parametrize("kind", READINGS)
def test_field__that_is_missing_has_its_default(kind: str) -> None:
    assert READINGS[kind](read_text("a: 1\n", "serve.yaml"), "it") in ("d", False, 1.0, 3, 1, ())


@given(st.integers(1, 999), st.sampled_from(sorted(SECONDS)), st.sampled_from(sorted(BYTES)))
def test_measures__are_numbers_of_their_unit(number: int, seconds: str, unit: str) -> None:
    found = read_text(f"time: {number}{seconds}\nsize: {number}{unit}\n", "f")
    assert found.seconds("time") == number * SECONDS[seconds]
    assert found.size("size") == number * BYTES[unit]


def test_end__refuses_what_nobody_asked_for() -> None:
    found = fields("name: a\nnmae: b\n")
    found.text("name")
    with pytest.raises(ParameterError, match=r"line 2: there is no field 'nmae'; allowed are name\."):
        found.end()
    inner = fields("a:\n  b: 1\n  c: 2\n").section("a", needed=True)
    assert inner is not None
    inner.integer("b", 0, 9)
    with pytest.raises(ParameterError, match=r"line 3: a has no field 'c'"):
        inner.end()


def test_fields__that_are_missing_or_twice_are_refused() -> None:
    with pytest.raises(ParameterError, match="line 1: the file needs the field name, text"):
        fields("other: 1\n").text("name")
    with pytest.raises(ParameterError, match="line 2: nmae is no field; the field name is needed"):
        fields("other: 1\nnmae: 1\n").text("name")
    with pytest.raises(ParameterError, match="line 2: the file names a twice"):
        fields("a: 1\na: 2\n")
    with pytest.raises(ParameterError, match="must have one of the fields a, b, not a and b"):
        fields("a: 1\nb: 2\n").one_of_fields("a", "b")
    assert fields("a: 1\n").one_of_fields("a", "b") == "a"


def test_checked__gives_the_librarys_refusal_a_line() -> None:
    def refuse() -> None:
        raise ParameterError("epsilon must be finite and above 0; -1 is not.")

    with pytest.raises(ParameterError, match=r"line 2: b is refused: epsilon must be finite and above 0; -1 is not\.$"):
        fields("a: 1\nb: -1\n").checked("b", refuse)
    assert fields("a: 1\n").checked("a", lambda: 7) == 7


@given(st.text(max_size=40))
def test_text__whatever_it_is_is_fields_or_a_sentence(text: str) -> None:
    said = ""
    try:
        read_text(text, "f.yaml").names()
    except ParameterError as error:
        said = str(error)
    assert not said or (said.startswith("f.yaml") and "\n" not in said)


def test_file__that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "serve.yaml"
    with pytest.raises(ParameterError, match="cannot be read"):
        read_file(path)
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(ParameterError, match="no text in UTF-8"):
        read_file(path)
    path.write_bytes(b"#" * (LARGEST_FILE + 1))
    with pytest.raises(ParameterError, match="is larger than 16 MiB"):
        read_file(path)
    path.write_bytes(b"a: 1\n")
    assert read_file(path).names() == ("a",)
