"""Columns and lists of objects: their type is fixed, whatever their rows hold."""

import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal import ApproxDP, ItemTypeError, PureDP
from dpfrugal.keys.index import KeyIndex
from dpfrugal.keys.object_columns import typed_frame

DAY = datetime.datetime(2024, 2, 29, 12)
BERLIN, TOKYO = (DAY.replace(tzinfo=ZoneInfo(zone)) for zone in ("Europe/Berlin", "Asia/Tokyo"))
DISCOVER = ApproxDP(epsilon=50.0, delta=0.01)


def objects(keys: list[Any]) -> pd.Series:
    return pd.Series(keys, dtype=object)


SHAPES: dict[str, Any] = {
    "list": list,
    "numpy": lambda keys: np.array(keys, dtype=object),
    "pandas": objects,
    "categories": lambda keys: objects(keys).astype(pd.CategoricalDtype(objects(list(dict.fromkeys(keys))))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_key_index__gives_datetimes_of_objects_one_fixed_type(shape: str) -> None:
    index = KeyIndex(typed=True)
    for keys in ([BERLIN, TOKYO], [TOKYO, BERLIN]):
        index.codes(SHAPES[shape](keys))
        assert index.keys.type == pa.timestamp("us", "UTC")
    assert KeyIndex(SHAPES[shape]([DAY])).keys.type == pa.timestamp("us")
    for mixed in ([DAY, BERLIN], [BERLIN, DAY]):
        with pytest.raises(ItemTypeError, match="these are mixed"):
            KeyIndex(typed=True).codes(SHAPES[shape](mixed))


@pytest.mark.parametrize("shape", SHAPES)
def test_keyed_dp_frugal__shows_no_time_zone_of_the_first_row(shape: str) -> None:
    for first in (BERLIN, TOKYO):
        estimator = dpf.KeyedDPFrugal1U(0.5, PureDP(epsilon=1.0), discover_keys=DISCOVER)
        estimator.update_many(SHAPES[shape]([first, *[BERLIN] * 500]), range(501))
        assert estimator.release()["key"].type == pa.timestamp("us", "UTC")
        assert estimator.keys.type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("shape", ["pandas", "categories"])
def test_quantiles_by__shows_no_time_zone_of_the_first_row(shape: str) -> None:
    for first in (BERLIN, TOKYO):
        frame = pd.DataFrame({"key": SHAPES[shape]([first, *[BERLIN] * 500]), "x": range(501)})
        table = dpf.quantiles_by(frame, "x", 0.5, PureDP(epsilon=1.0), by="key", discover_keys=DISCOVER)
        assert table["key"].type == pa.timestamp("us", "UTC")
    frame = pd.DataFrame({"key": SHAPES[shape]([DAY, BERLIN]), "x": range(2)})
    with pytest.raises(ItemTypeError, match="these are mixed"):
        dpf.quantiles_by(frame, "x", 0.5, PureDP(epsilon=1.0), by="key", discover_keys=DISCOVER)


def test_typed_frame__leaves_what_has_a_type_of_its_own() -> None:
    frame = pd.DataFrame({"text": ["a", "b"], "number": [1, 2], "day": pd.to_datetime(["2024-01-01"] * 2)})
    assert typed_frame(frame, ["text", "number", "day"]) is frame
    other = pl.DataFrame({"text": ["a"]})
    assert typed_frame(other, ["text"]) is other
    typed = typed_frame(frame.astype(object), ["text"])
    assert pa.table(typed[["text"]]).schema.field("text").type == pa.large_string()
    assert typed["number"].dtype == object


def test_key_index__looks_up_categories_that_are_objects() -> None:
    for entries in (["b", "a"], [2, 1]):
        dtype = pd.CategoricalDtype(pd.Index(entries, dtype=object))
        rows = objects([entries[1], None, entries[0], entries[1]]).astype(dtype)
        assert rows.cat.categories.dtype == object
        for batch in (rows, rows.array, pd.CategoricalIndex(rows)):
            assert KeyIndex(entries).codes(batch, "drop").tolist() == [1, -1, 0, 1]
    mixed = objects([1, "a"]).astype(pd.CategoricalDtype(objects(["a", 1])))
    assert KeyIndex(["a", 1]).codes(mixed).tolist() == [1, 0]


def test_typed_frame__refuses_objects_whose_type_would_have_to_be_guessed() -> None:
    for keys in ([1, "a"], [2**63, 1], [DAY, DAY.date()]):
        with pytest.raises(ItemTypeError, match="all of one kind"):
            typed_frame(pd.DataFrame({"key": objects(keys)}), ["key"])


@pytest.mark.parametrize("keys", [["a"], [1], [DAY]])
def test_keyed_dp_frugal__keys_have_no_type_while_none_is_public(keys: list[Any]) -> None:
    """A type would say that some key has come, and of which kind; a key of one row passes with 2% at most."""
    estimator = dpf.KeyedDPFrugal1U(0.5, PureDP(epsilon=1.0), discover_keys=ApproxDP(epsilon=1.0, delta=1e-9))
    before = estimator.keys
    estimator.update_many(keys, [1.0])
    assert estimator.keys.equals(before)
    estimator.release()
    assert estimator.keys.equals(before)
    assert before.type == pa.null()
