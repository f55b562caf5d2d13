"""Batches of rows: where they end, which no row decides, and reading ahead."""

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.errors import TableError
from dpfrugal.inputs.batches import read_ahead, regrouped


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
