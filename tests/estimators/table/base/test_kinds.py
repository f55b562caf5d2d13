"""Types of columns: codes and values become each other, hints bound the answers."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, UNSIGNED, Kind, decimals_of, hinted, times_of

DAY = times_of("date", "D", np.datetime64, pa.date32())
SECOND = times_of("timestamp[s]", "s", np.datetime64, pa.timestamp("s"))
LENGTH = times_of("duration[ms]", "ms", np.timedelta64, pa.duration("ms"))
CENTS = decimals_of(2, pa.decimal128(10, 2))
VALUES: list[tuple[Kind, list[Any]]] = [
    (FLOATS, [0.0, -1.5, 1e300, float("inf"), 5e-324]),
    (INTEGERS, [0, -(2**63), 2**63 - 1]),
    (UNSIGNED, [0, 2**63, 2**64 - 1]),
    (CENTS, [Decimal("-12.34"), Decimal("0.01")]),
    (DAY, [np.datetime64("1969-12-31"), np.datetime64("2026-02-28")]),
    (SECOND, [np.datetime64("2026-02-28T12:34:56")]),
    (LENGTH, [np.timedelta64(-5, "ms")]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda each: getattr(each, "name", ""))
def test_kind__codes_and_values_become_each_other_in_order(kind: Kind, values: list[Any]) -> None:
    codes = [kind.code(value) for value in values]
    assert all(code.denominator == 1 for code in codes)
    assert [kind.answer(int(code)) for code in codes] == values
    assert sorted(values) == [kind.answer(int(code)) for code in sorted(codes)]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda each: getattr(each, "name", ""))
def test_kind__arrays_have_the_type_of_the_column_and_nulls_where_answers_are_missing(
    kind: Kind, values: list[Any]
) -> None:
    codes = np.array([int(kind.code(value)) for value in values] * 2, dtype=np.int64)
    missing = np.arange(codes.size) >= len(values)
    array = kind.array(codes, missing)
    assert array.null_count == len(values)
    expected = [value.item() if isinstance(value, np.generic) else value for value in values]
    assert array.to_pylist()[: len(values)] == expected
    if kind.arrow_type is not None and kind is not CENTS:
        assert array.type == kind.arrow_type


def test_kind__of_decimals_beyond_64_bits_is_infinity_and_never_the_bound() -> None:
    ends = np.array([-(2**63), 2**63 - 1])
    assert [CENTS.answer(int(code)) for code in ends] == [Decimal("-Infinity"), Decimal("Infinity")]
    assert [CENTS.code(CENTS.answer(int(code))) for code in ends] == ends.tolist()
    assert CENTS.beyond(ends).all()
    assert not CENTS.beyond(ends // 2).any()
    assert CENTS.answer(2**63 - 2) == Decimal("92233720368547758.06")
    for exact in (INTEGERS, UNSIGNED, FLOATS, SECOND):
        assert not exact.beyond(ends).any()


def test_kind__times_have_no_infinity() -> None:
    assert FLOATS.has_infinity
    assert CENTS.has_infinity
    assert not DAY.has_infinity
    assert not LENGTH.has_infinity
    assert str(np.datetime64(SECOND.base.low, "s")) != "NaT"


def test_hinted__answers_lie_between_the_hints() -> None:
    base = hinted(INTEGERS, 10, 20, None)
    assert (base.low, base.high) == (10, 20)
    # A hint that is no value of the column is rounded inwards.
    assert (hinted(INTEGERS, 9.5, None, None).low, hinted(INTEGERS, None, 20.5, None).high) == (10, 20)
    days = hinted(DAY, datetime.date(2026, 1, 1), datetime.date(2026, 12, 31), None)
    assert DAY.answer(days.low) == np.datetime64("2026-01-01")
    cents = hinted(CENTS, 0, 1, None)
    assert (cents.low, cents.high) == (0, 100)


@pytest.mark.parametrize(
    ("kind", "hints", "sentence"),
    [
        (INTEGERS, (5, 4, None), "low and high must leave something to answer"),
        (INTEGERS, (1.2, 1.8, None), "low and high must leave something to answer"),
        (FLOATS, (0.1, 0.2, 0), "low and high must leave something to answer"),
        (INTEGERS, (None, None, 2), "decimals is for columns of floats; this column is integer"),
        (FLOATS, (None, None, 16), "decimals must"),
        (FLOATS, ("x", None, None), "low must be a value of the column, which is float"),
        (FLOATS, (None, float("nan"), None), "high must be a value of the column"),
        (INTEGERS, (True, None, None), "low must be a value of the column"),
    ],
)
def test_hinted__refuses_in_one_sentence(kind: Kind, hints: tuple[Any, Any, Any], sentence: str) -> None:
    with pytest.raises((ParameterError, ParameterTypeError), match=sentence):
        hinted(kind, *hints)
