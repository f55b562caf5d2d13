"""Columns: which one is read, batches that end where no row decides, and reading ahead."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import TableError
from dpfrugal.inputs.columns import attempt, chosen, damaged, read_ahead, regrouped

FILE = Path("clicks.csv")


def test_attempt__lets_no_message_travel_with_its_failure() -> None:
    def failing() -> None:
        raise pa.ArrowInvalid("could not convert 4242")

    with pytest.raises(TableError) as refusal:
        attempt(failing, damaged(FILE, "CSV"))
    assert refusal.value.__context__ is None
    assert refusal.value.__cause__ is None
    assert str(refusal.value) == "clicks.csv: this is no readable CSV file; it may be truncated or damaged."
    assert attempt(lambda: 5, damaged(FILE, "CSV")) == 5
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0, damaged(FILE, "CSV"))
    with pytest.raises(TableError):
        attempt(lambda: 1 // 0, damaged(FILE, "CSV"), (ZeroDivisionError,))


def test_chosen__is_the_only_column_or_the_named_one() -> None:
    assert chosen(FILE, ["x"], None) == "x"
    assert chosen(FILE, ["x", "y"], "y") == "y"


@pytest.mark.parametrize(
    ("names", "column", "sentence"),
    [
        (["x", "y"], None, "choose a column with --column; there are 'x', 'y'."),
        (["x", "y"], "z", "there is no column 'z'; there are 'x', 'y'."),
        (["x", "x"], "x", "there are 2 columns 'x'; rename all but one."),
        ([f"c{k}" for k in range(25)], None, "'c19' and 5 more."),
    ],
)
def test_chosen__says_which_columns_there_are(names: list[str], column: str | None, sentence: str) -> None:
    with pytest.raises(TableError) as refusal:
        chosen(FILE, names, column)
    assert str(refusal.value).endswith(sentence)


def batches_of(sizes: list[int]) -> Iterator[tuple[Any, int]]:
    """Batches of consecutive numbers, each with its size as its progress."""
    first = 0
    for size in sizes:
        yield pa.RecordBatch.from_pydict({"x": pa.array(range(first, first + size), pa.int64())}), size
        first += size


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 30), st.lists(st.integers(1, 300), max_size=3))
def test_regrouped__ends_tables_by_the_number_of_rows_only(sizes: list[int], rows: int, ends: list[int]) -> None:
    total, tables = sum(sizes), list(regrouped(batches_of(sizes), rows, ends))
    assert [number for table, _ in tables for number in table["x"].to_pylist()] == list(range(total))
    cuts = sorted({*range(rows, total, rows), *(end for end in ends if end < total), *([total] if total else [])})
    lengths = [len(table) for table, _ in tables]
    assert lengths == [after - before for before, after in zip([0, *cuts], cuts, strict=False)]
    assert sum(made for _, made in tables) <= total


def test_read_ahead__gives_the_same_batches_in_order() -> None:
    assert list(read_ahead(iter([(k, k) for k in range(500)]), 3)) == [(k, k) for k in range(500)]


def test_read_ahead__raises_what_the_reader_raises_after_the_batches_before_it() -> None:
    def failing() -> Iterator[tuple[Any, int]]:
        yield "first", 1
        raise TableError("line 2 is no number.")

    reading = read_ahead(failing())
    assert next(reading) == ("first", 1)
    with pytest.raises(TableError, match="line 2"):
        next(reading)


def test_read_ahead__stops_its_thread_when_it_is_left() -> None:
    before = threading.active_count()
    reading = read_ahead(iter([(k, 1) for k in range(10**6)]), 2)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
