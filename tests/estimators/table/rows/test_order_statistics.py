"""Windows and counts of rows against counting one by one."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.naive_table import statistics

codes = st.integers(-5, 5)


@given(st.lists(codes), st.integers(-3, 20), st.integers(-3, 20), st.none() | codes, st.none() | codes)
def test_window__holds_the_rows_of_its_ranks_and_counts_all(
    rows: list[int], first: int, last: int, low: int | None, high: int | None
) -> None:
    window = statistics(rows).window(first, last, low, high)
    within = [row for rank, row in enumerate(sorted(rows)) if first <= rank <= last]
    within = [row for row in within if (low is None or row >= low) and (high is None or row <= high)]
    assert window.codes.tolist() == sorted({*within, *(end for end in (low, high) if end is not None)})
    assert window.below.tolist() == [sum(row < code for row in rows) for code in window.codes.tolist()]
    assert window.upto.tolist() == [sum(row <= code for row in rows) for code in window.codes.tolist()]


@given(st.lists(codes), codes)
def test_counts__are_those_of_all_rows(rows: list[int], code: int) -> None:
    assert statistics(rows).counts(code) == (sum(row < code for row in rows), sum(row <= code for row in rows))
    assert statistics(rows).rows == len(rows)


def test_window__shows_no_row() -> None:
    table = statistics([123456, 123457])
    assert "123456" not in repr(table) + repr(table.window(0, 1, None, None))
