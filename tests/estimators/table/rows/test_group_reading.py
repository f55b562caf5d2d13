"""Reading a table with keys: the groups of its rows, once and again, and what memory refuses."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.rows.group_reading import BYTES_PER_ROW, BYTES_PER_ROW_OF_PERSONS, GroupReading
from dpfrugal.estimators.table.rows.keyed_rows import KeyedRows

TABLE = pa.table(
    {"key": ["a", None, "b", "a", "c", "b"], "ms": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "who": [1, 1, 2, 2, 3, 3]}
)


def reading(data: Any = TABLE, **options: Any) -> GroupReading:
    asked: dict[str, Any] = {
        "label": None,
        "null_keys": "drop",
        "nan_policy": "raise",
        "person": None,
        "limits": (1, None),
    }
    given: dict[str, Any] = {"keys": ["a", "b"], "max_keys": 10, "memory": None} | options
    return GroupReading(data, "ms", ["key"], given.pop("keys"), **(asked | given))


def sizes(rows: KeyedRows, groups: int) -> list[int]:
    return [int(size) for size in rows.counts(groups)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [2, 2]),
        ({"label": ("others",)}, [2, 2, 1]),
        ({"null_keys": "group"}, [2, 2, 1]),
        ({"label": ("others",), "null_keys": "group"}, [2, 2, 1, 1]),
        ({"keys": None}, [2, 2, 1]),
    ],
)
def test_group_reading__gives_each_row_its_group(options: dict[str, Any], expected: list[int]) -> None:
    rows = reading(**options).first()
    assert rows.held
    assert sizes(rows, len(expected)) == expected


def test_group_reading__each_person_counts_as_often_as_they_may() -> None:
    rows = reading(keys=["a", "b", "c"], null_keys="group", person="who").first()
    assert sum(sizes(rows, 4)) == 3
    assert sum(sizes(reading(null_keys="group", person="who", limits=(2, None), keys=["a", "b", "c"]).first(), 4)) == 6


def test_group_reading__more_rows_than_memory_holds_are_counted_and_read_again() -> None:
    one = reading(memory=3 * BYTES_PER_ROW)
    assert one.most_rows == 3
    assert not one.first().held
    again = one.again(np.array([-1, 0], dtype=np.int32))
    assert sizes(again, 2) == [0, 2]


@pytest.mark.parametrize("person", [None, "who"])
def test_group_reading__memory_that_does_not_suffice_is_refused(person: str | None) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()

    once = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(ParameterError, match="memory is too small"):
        reading(once, memory=BYTES_PER_ROW, person=person).first()
    enough = 6 * (BYTES_PER_ROW if person is None else BYTES_PER_ROW_OF_PERSONS)
    assert reading(memory=enough, person=person).first().held


def test_group_reading__a_label_is_none_of_the_declared_keys() -> None:
    with pytest.raises(ParameterError, match="other"):
        reading(label=("a",))
