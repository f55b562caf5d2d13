"""Arrays of Arrow from whatever exports them."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.inputs.arrow_arrays import chunked

ONE = dpf.PureDP(epsilon=1.0)
WIDE = pl.Series("x", range(100)).cast(pl.Int128)  # Arrow has no such type
SMALL = {"x": WIDE, "k": ["a"] * 100}


@pytest.mark.parametrize(
    "items", [pl.Series([1, 2, None]), pa.array([1, 2, None]), pa.chunked_array([[1], [2, None]])], ids=str
)
def test_chunked__has_the_same_items(items: Any) -> None:
    assert chunked(items).to_pylist() == [1, 2, None]
    assert chunked(pl.Series([], dtype=pl.Int8)).to_pylist() == []


@pytest.mark.parametrize(
    "use",
    [
        lambda: dpf.private_quantiles(WIDE, 0.5, ONE),
        lambda: dpf.private_quantiles(pl.DataFrame(SMALL), 0.5, ONE, column="x"),
        lambda: dpf.private_quantiles(pl.DataFrame(SMALL).lazy(), 0.5, ONE, column="x"),
        lambda: dpf.quantiles_by(pl.DataFrame(SMALL), "x", 0.5, ONE, by="k", keys=["a"]),
        lambda: dpf.WindowQuantile(0.5, ONE).update_many(WIDE),
        lambda: dpf.PrivateQuantile(0.5, ONE).update_many(WIDE),
        lambda: dpf.KeyedWindowQuantile(0.5, ONE, keys=[1]).update_many(WIDE, range(100)),
    ],
)
def test_chunked__a_type_that_arrow_has_not_is_refused_in_a_sentence(use: Callable[[], Any]) -> None:
    with pytest.raises(dpf.ItemTypeError, match="Arrow has no type for Int128: cast it to numbers of 64 bits"):
        use()


def test_chunked__other_columns_of_such_a_type_are_refused_in_a_sentence() -> None:
    by_wide = pl.DataFrame({"x": range(100), "k": WIDE})
    with pytest.raises(dpf.TableError, match="its plan fails"):
        dpf.quantiles_by(by_wide, "x", 0.5, ONE, by="k", keys=[1])
    with pytest.raises(dpf.TableError, match="cannot be read as Arrow"):
        dpf.describe(by_wide, ONE)
    with pytest.raises(dpf.ItemTypeError, match="data must be numbers"):
        dpf.private_quantiles(pl.Series(["a", "b"], dtype=pl.Categorical), 0.5, ONE)
