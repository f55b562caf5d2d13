"""Which items are answered in a type of their own, and in which: never as rows choose."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpfrugal.errors import ItemTypeError
from dpfrugal.estimators.windows.typed_items import typed_array

DAY, MOMENT = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 12)
SECOND = datetime.timedelta(seconds=1)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([MOMENT, None], pa.timestamp("us")),
        ([None, np.datetime64(5, "ns")], pa.timestamp("us")),
        ([pd.Timestamp(1_234_567_891), pd.NaT], pa.timestamp("us")),
        ([MOMENT.replace(tzinfo=datetime.UTC)], pa.timestamp("us")),
        ((SECOND, pd.Timedelta(5), np.timedelta64(3, "D")), pa.duration("us")),
        ([DAY], pa.date32()),
        (np.array([3], dtype="datetime64[D]"), pa.date32()),
        (np.array([3], dtype="timedelta64[ns]"), pa.duration("ns")),
        (pd.Series([MOMENT]).dt.tz_localize("Europe/Rome"), None),
        (pl.Series([SECOND]), pa.duration("us")),
        (pa.chunked_array([[SECOND], [SECOND]]), pa.duration("us")),
        (pa.array([MOMENT]).dictionary_encode(), pa.timestamp("us")),
        (pa.array([1], pa.decimal128(5, 2)), pa.decimal128(5, 2)),
    ],
    ids=str,
)
def test_typed_array__has_the_type_that_is_stated(items: Any, expected: Any) -> None:
    array = typed_array(items)
    assert len(array) == len(items)
    assert array.type == expected or (expected is None and array.type.tz == "Europe/Rome")


@pytest.mark.parametrize(
    "items",
    [[1.0, MOMENT], [], [None], np.zeros(3), pa.array([1]), pa.nulls(3), pa.table({"a": [MOMENT]}), pl.Series([1.0]),
     pd.Series([1]), iter([MOMENT]), "text", pd.DataFrame({"a": [MOMENT]}), pa.array([1], pa.decimal256(50, 2))],
    ids=lambda items: type(items).__name__,
)  # fmt: skip
def test_typed_array__is_none_of_numbers_and_of_what_is_refused_elsewhere(items: Any) -> None:
    assert typed_array(items) is None


@pytest.mark.parametrize(
    "items",
    [[MOMENT, 3.0], [MOMENT, DAY], [DAY, MOMENT], [SECOND, MOMENT], [SECOND, "4242"],
     np.array(["2026-01"], dtype="datetime64[M]")],
    ids=str,
)  # fmt: skip
def test_typed_array__of_several_types_is_refused(items: Any) -> None:
    with pytest.raises(ItemTypeError, match="of one type") as caught:
        typed_array(items)
    assert caught.value.__context__ is None


def test_typed_array__of_a_list_has_what_its_items_are() -> None:
    assert typed_array([np.datetime64(1_234_567_891, "ns"), pd.Timestamp(1_234_567_891), pd.NaT]).cast(
        pa.int64()
    ).to_pylist() == [1_234_567, 1_234_567, None]
    assert typed_array([np.timedelta64(3, "s"), pd.Timedelta(3, "s"), None]).to_pylist() == [3 * SECOND] * 2 + [None]
