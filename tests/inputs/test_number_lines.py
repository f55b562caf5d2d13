"""Numbers from text: cut anywhere, reported by line number, never by content."""

import io
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import TableError
from dpfrugal.inputs.number_lines import LONGEST_LINE, LineParser, numbers


def parsed(text: bytes, cuts: list[int] | None = None, *, omit_bad: bool = False) -> list[float]:
    parser = LineParser(omit_bad=omit_bad)
    edges = [0, *sorted(cuts or []), len(text)]
    found: list[float] = []
    for first, last in itertools.pairwise(edges):
        found += parser.feed(text[first:last])
    found += parser.finish()
    if parser.refusal:
        raise parser.refusal
    return found


@given(
    items=st.lists(st.floats(allow_nan=False) | st.integers(-(2**40), 2**40)),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    newline=st.sampled_from(["\n", "\r\n", " \n"]),
)
def test_lines__may_be_cut_anywhere(items: list[float], cuts: list[int], newline: str) -> None:
    text = newline.join(map(repr, items)).encode()
    assert parsed(text, [cut for cut in cuts if cut <= len(text)]) == [float(item) for item in items]


@pytest.mark.parametrize(
    "bad", [b"4242x", b"4,242", b"4_242", b"0x4242", b"42 42", b"\xff4242", b"4242;", b"null", b"4242" * LONGEST_LINE]
)
def test_lines__name_a_bad_line_by_its_number_only(bad: bytes) -> None:
    what = "Line 3 is longer than 4,096 bytes" if len(bad) > LONGEST_LINE else "Line 3 is not a number"
    with pytest.raises(TableError, match=what) as error:
        parsed(b"1\n2\n" + bad + b"\n5\n")
    assert "42" not in str(error.value)


def test_lines__give_the_numbers_before_a_bad_line_first() -> None:
    parser = LineParser()
    assert parser.feed(b"1\n2\nbad\n3\n") == [1, 2]
    assert parser.refusal is not None
    assert parser.feed(b"4\n") == []


def test_lines__take_a_blank_line_for_a_missing_item() -> None:
    found = parsed(b"1\n\n \n2\n", omit_bad=True)
    assert [found[0], found[3]] == [1, 2]
    assert all(math.isnan(number) for number in found[1:3])
    with pytest.raises(TableError, match="Line 2 is blank"):
        parsed(b"1\n\n2\n")


def test_lines__take_a_byte_order_mark_for_no_data() -> None:
    assert parsed(b"\xef\xbb\xbf1\n2\n") == [1, 2]


def test_lines__may_count_a_bad_line_as_missing() -> None:
    found = parsed(b"1\noops\n2\n3 4\n", omit_bad=True)
    assert [number for number in found if not math.isnan(number)] == [1, 2]
    assert len(found) == 4


def test_lines__take_words_for_infinity_and_nan_for_numbers() -> None:
    assert parsed(b"inf\n-inf\n") == [math.inf, -math.inf]
    assert math.isnan(parsed(b"nan\n")[0])


@pytest.mark.parametrize("cut", [[], [LONGEST_LINE], [10, LONGEST_LINE + 50]])
def test_lines__take_an_endless_line_for_no_number_however_it_is_cut(cut: list[int]) -> None:
    text = b"7\n" + b"1" * (3 * LONGEST_LINE) + b"\n8\n"
    found = parsed(text, cut, omit_bad=True)
    assert (found[0], found[2], len(found)) == (7, 8, 3)
    with pytest.raises(TableError, match="Line 2 is longer than 4,096 bytes, which is the limit"):
        parsed(text, cut)


def test_lines__refuse_a_line_that_never_ends_before_it_ends() -> None:
    parser = LineParser()
    assert parser.feed(b"7\n" + bytes(LONGEST_LINE)) == [7]
    assert parser.refusal is None
    assert parser.feed(b"\0") == []
    assert "Line 2 is longer than" in str(parser.refusal)
    omitting = LineParser(omit_bad=True)
    assert omitting.feed(bytes(10 * LONGEST_LINE)) == []
    assert omitting.refusal is None  # it counts as a missing item, if it ends


def test_lines__of_a_stream_give_all_numbers_and_bytes() -> None:
    text = b"".join(b"%d\n" % k for k in range(400_000)) + b"7"
    batches = list(numbers(io.BytesIO(text)))
    assert sum(size for _, size in batches) == len(text)
    assert [number for batch, _ in batches for number in batch] == [*range(400_000), 7]
