"""Parts of columns: kinds, rows, what is missing; messages name types only."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpfrugal.errors import ItemTypeError
from dpfrugal.estimators.table.rows.column_parts import part_of

WHEN = datetime.datetime(2026, 3, 1, 12)


@pytest.mark.parametrize(
    ("array", "kind", "rows", "missing"),
    [
        (np.array([1.5, np.nan, -2.0]), "float", [1.5, -2.0], 1),
        (pa.array([1.5, None, float("nan")]), "float", [1.5], 2),
        (np.array([1, 2], dtype=np.int16), "integer", [1, 2], 0),
        (pa.array([2**64 - 1, None], pa.uint64()), "uint64", [2**64 - 1], 1),
        (pa.array(["a", "b"]).dictionary_encode().indices, "integer", [0, 1], 0),
        (pa.array([7, 8, 7]).dictionary_encode(), "integer", [7, 8, 7], 0),
        (pa.array([Decimal("1.25"), None]), "decimal with 2 places", [125], 1),
        (pa.array([datetime.date(1970, 1, 3)]), "date", [2], 0),
        (pa.array([WHEN], pa.date64()), "date64[ms]", [20513 * 86_400_000], 0),
        (pa.array([WHEN, None], pa.timestamp("s")), "timestamp[s]", [20513 * 86_400 + 43_200], 1),
        (pa.array([datetime.timedelta(seconds=-2)], pa.duration("ms")), "duration[ms]", [-2000], 0),
        (pa.array([1.0, 2.0])[1:], "float", [2.0], 0),
    ],
)
def test_part_of__has_kind_rows_and_what_is_missing(array: Any, kind: str, rows: list[Any], missing: int) -> None:
    part = part_of(array)
    assert part.kind is not None
    assert (part.kind.name, part.rows.tolist(), part.missing) == (kind, rows, missing)


def test_part_of__nulls_of_no_type_have_no_kind() -> None:
    part = part_of(pa.nulls(3))
    assert (part.kind, part.rows.size, part.missing) == (None, 0, 3)


def test_part_of__decimals_beyond_64_bits_are_the_ends() -> None:
    large = pa.array([Decimal(10) ** 30, -(Decimal(10) ** 30), Decimal(2**63 - 1), Decimal(-(2**63))])
    assert part_of(large.cast(pa.decimal128(38, 0))).rows.tolist() == [2**63 - 1, -(2**63), 2**63 - 1, -(2**63)]


def test_part_of__copies_no_plain_column() -> None:
    rows = np.arange(5.0)
    assert np.shares_memory(part_of(rows).rows, rows)
    assert np.shares_memory(part_of(pa.array(rows)).rows, rows)


@pytest.mark.parametrize("array", [pa.array(["secret"]), pa.array([True]), pa.array([[1]]), pa.array([b"secret"])])
def test_part_of__refuses_other_types_without_a_value(array: Any) -> None:
    with pytest.raises(ItemTypeError, match="data must be numbers, dates, timestamps or durations") as caught:
        part_of(array)
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(part_of(pa.array([12345])))
    assert "12345" not in repr(part_of(pa.array([12345])))
