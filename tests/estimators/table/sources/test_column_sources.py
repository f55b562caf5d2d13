"""What callers hold, as arrays: units of numpy's times, and tables that were given without a column."""

import datetime
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import dpfrugal as dpf
from dpfrugal.errors import ItemTypeError, ParameterError
from dpfrugal.estimators.table.sources.column_sources import source_of


def column_of(array: object) -> pa.Array:
    return next(source_of(array, None).read())


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "10D", "h", "m", "s", "10s", "ms", "us", "ns"])
def test_column_source__keeps_the_instants_of_any_unit(unit: str) -> None:
    times = np.array([-3, 0, 17], dtype=np.int64).astype(f"M8[{unit}]")
    assert column_of(times).cast(pa.timestamp("ns")).to_numpy(zero_copy_only=False).tolist() == (
        times.astype("M8[ns]").tolist()
    )


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "30m", "s", "ms", "10ms", "us", "ns"])
def test_column_source__keeps_the_lengths_of_any_unit(unit: str) -> None:
    times = np.array([-3, 0, 17], dtype=np.int64).astype(f"m8[{unit}]")
    assert column_of(times).cast(pa.duration("ns")).to_numpy(zero_copy_only=False).tolist() == (
        times.astype("m8[ns]").tolist()
    )


def test_column_source__keeps_missing_times_and_byte_order() -> None:
    times = np.array(["2026-01-01T05", "NaT"], dtype="M8[h]")
    assert column_of(times).to_pylist() == [datetime.datetime(2026, 1, 1, 5), None]
    assert column_of(times.astype(">M8[s]")).to_pylist() == [datetime.datetime(2026, 1, 1, 5), None]


@pytest.mark.parametrize("kind", ["M8[ps]", "M8", "m8[Y]", "m8[M]", "m8[fs]", "m8"])
def test_column_source__refuses_units_that_no_column_has(kind: str) -> None:
    with pytest.raises(ItemTypeError, match="nanoseconds or a longer unit"):
        source_of(np.zeros(3, dtype=np.int64).astype(kind), None)


def test_column_source__asks_for_the_column_of_a_table_without_running_it() -> None:
    table = pa.table({"ms": [1.0, 2.0]})
    frame = pl.DataFrame({"ms": [1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # polars warns where the schema of a lazy frame is resolved
        for data in (table, table.to_pandas(), frame, frame.lazy(), ds.dataset(table)):
            with pytest.raises(ParameterError, match="column must name"):
                dpf.private_quantiles(data, 0.5, dpf.PureDP(epsilon=1.0))
