"""Batches as codes: the type of the answers is what containers state, never what items are."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpfrugal.errors import ItemError
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS
from dpfrugal.estimators.windows.window_items import batch_of, states_integers

STATED = [
    np.array([1, 2], dtype=np.int16),
    pa.array([1, 2], pa.uint8()),
    pa.array([1, 2], pa.int64()).dictionary_encode(),
    pl.Series([1, 2]),
    pd.Series([1, 2]),
    pd.Series([1, 2], dtype="Int32"),
    pd.Series([1, 2], dtype="int64[pyarrow]"),
]
NOT_STATED: list[Any] = [
    [1, 2],
    (1, 2),
    range(1, 3),
    np.array([1, 2], dtype=np.uint64),
    pa.array([1, 2], pa.uint64()),
    pl.Series([1, 2], dtype=pl.UInt64),
    pd.Series([1, 2], dtype="UInt64"),
    pd.Series([1, 2], dtype="uint64[pyarrow]"),
    pd.Series([1, 2], dtype="double[pyarrow]"),
    np.array([1.0, 2.0]),
    pa.array([1.0, 2.0]),
    pd.Series([1, 2], dtype="Float64"),
]


@pytest.mark.parametrize("items", STATED, ids=lambda items: f"{type(items).__module__} {getattr(items, 'dtype', '')}")
def test_batch__of_a_container_of_integers_is_one_of_integers(items: Any) -> None:
    assert states_integers(items)
    batch = batch_of(items, "raise")
    assert (batch.kind, batch.codes.tolist(), batch.present) == (INTEGERS, [1, 2], None)
    assert batch.of_kind(FLOATS).tolist() == codes_of(np.array([1.0, 2.0])).tolist()


@pytest.mark.parametrize(
    "items", NOT_STATED, ids=lambda items: f"{type(items).__module__} {getattr(items, 'dtype', '')}"
)
def test_batch__of_any_other_container_is_one_of_floats_also_where_items_are_whole(items: Any) -> None:
    assert not states_integers(items)
    batch = batch_of(items, "raise")
    assert (batch.kind, batch.codes.tolist()) == (FLOATS, codes_of(np.array([1.0, 2.0])).tolist())


@pytest.mark.parametrize(
    "items",
    [[1.0, None, 2.0], np.array([1.0, np.nan, 2.0]), pa.array([1, None, 2]), pl.Series([1, None, 2])],
    ids=lambda items: type(items).__module__,
)
def test_batch__missing_items_are_refused_or_marked(items: Any) -> None:
    with pytest.raises(ItemError, match="NaN or null"):
        batch_of(items, "raise")
    batch = batch_of(items, "omit")
    assert batch.present is not None
    assert batch.present.tolist() == [True, False, True]
    floats = codes_of(np.array([1.0, 2.0])).tolist()
    assert batch.of_kind(FLOATS)[batch.present].tolist() == floats


def test_batch__without_items_is_one_of_what_its_container_states() -> None:
    assert batch_of([None, None], "omit").kind is None, "a list of nothing but None may be one of times"
    assert (batch_of([], "raise").kind, batch_of(np.zeros(0, dtype=np.int64), "raise").kind) == (None, INTEGERS)
    assert batch_of([], "raise").codes.size == 0
