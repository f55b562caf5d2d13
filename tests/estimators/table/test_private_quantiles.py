"""The front door: every type of data, hints, refusals, and what a release shows."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.base import kinds
from dpfrugal.estimators.table.rows.columns import read_column

GUARANTEE = dpf.PureDP(epsilon=20.0)  # so much that an answer is within a row or two
RNG = np.random.default_rng(11)
FLOATS = RNG.lognormal(3, 1, 5001)
WHOLE = RNG.integers(-50, 1000, 5001)


def near(value: Any, rows: Any, q: float = 0.5) -> bool:
    ordered = np.sort(np.asarray(rows))
    at = q * ordered.size
    return bool(np.searchsorted(ordered, value, "left") - 8 <= at <= np.searchsorted(ordered, value, "right") + 8)


FORMS: dict[str, Callable[[Any], Any]] = {
    "list": lambda rows: rows.tolist(),
    "tuple": lambda rows: tuple(rows.tolist()),
    "numpy": lambda rows: rows,
    "strided": lambda rows: np.repeat(rows, 2)[::2],
    "pandas": pd.Series,
    "pandas on Arrow": lambda rows: pd.Series(pa.array(rows), dtype=pd.ArrowDtype(pa.array(rows).type)),
    "polars": lambda rows: pl.Series(rows),
    "Arrow": lambda rows: pa.array(rows),
    "chunked": lambda rows: pa.chunked_array([rows[:100], rows[100:]]),
    "dictionary": lambda rows: pa.array(rows).dictionary_encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_private_quantiles__takes_a_column_of_every_form(form: str) -> None:
    for rows in (FLOATS, WHOLE):
        value = dpf.private_quantiles(FORMS[form](rows), 0.5, GUARANTEE).value
        assert type(value) is (float if rows is FLOATS or form in ("list", "tuple") else int)
        assert near(value, rows)


def table() -> pa.Table:
    return pa.table({"ms": FLOATS, "other": np.arange(5001)})


TABLES: dict[str, Callable[[Path], Any]] = {
    "Arrow": lambda _: table(),
    "pandas": lambda _: table().to_pandas(),
    "polars": lambda _: pl.from_arrow(table()),
    "lazy": lambda _: pl.from_arrow(table()).lazy(),
    "dataset": lambda folder: written(folder) and ds.dataset(folder),
    "file": lambda folder: written(folder),
    "folder": lambda folder: written(folder) and str(folder),
    "pattern": lambda folder: written(folder) and str(folder / "*.parquet"),
}


def written(folder: Path) -> Path:
    pq.write_table(table(), folder / "a.parquet", row_group_size=700)
    return folder / "a.parquet"


@pytest.mark.parametrize("form", TABLES)
def test_private_quantiles__takes_a_column_of_every_table(form: str, tmp_path: Path) -> None:
    value = dpf.private_quantiles(TABLES[form](tmp_path), 0.9, GUARANTEE, column="ms").value
    assert near(value, FLOATS, 0.9)


def test_private_quantiles__takes_a_relation_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT range AS ms FROM range(4001)")
        assert near(dpf.private_quantiles(relation, 0.5, GUARANTEE, column="ms").value, np.arange(4001))


def test_private_quantiles__of_several_files_are_those_of_all(tmp_path: Path) -> None:
    for index, part in enumerate(np.array_split(FLOATS, 3)):
        pq.write_table(pa.table({"ms": part}), tmp_path / f"{index}.parquet")
    codes = [np.sort(read_column(data, "ms", "raise").codes) for data in (str(tmp_path), table())]
    assert (codes[0] == codes[1]).all()


def test_private_quantiles__integers_are_exact_to_64_bits() -> None:
    for rows in (
        np.array([2**63 - 3] * 500 + [2**63 - 2] * 500, dtype=np.int64),
        np.array([-(2**63)] * 500 + [-(2**63) + 1] * 500, dtype=np.int64),
        np.array([2**64 - 2] * 500 + [2**64 - 1] * 500, dtype=np.uint64),
        np.array([0] * 500 + [2**64 - 1] * 500, dtype=np.uint64),
    ):
        for q, expected in ((0.25, int(rows[0])), (0.75, int(rows[-1]))):
            assert dpf.private_quantiles(rows, q, GUARANTEE).value == expected


def test_private_quantiles__decimals_and_money_come_out_as_such() -> None:
    cents = [Decimal(f"{x}.{y:02}") for x in range(50) for y in range(0, 100, 5)]
    value = dpf.private_quantiles(pa.array(cents), 0.5, GUARANTEE).value
    assert isinstance(value, Decimal)
    assert value.as_tuple().exponent == -2
    assert abs(value - 25) < 1
    huge = pa.array([Decimal(10**30), Decimal(1), Decimal(1)] * 100, pa.decimal128(38, 0))
    assert dpf.private_quantiles(huge, 0.3, GUARANTEE).value == 1
    negative = pa.array([Decimal("-1.50")] * 100).slice(10)
    assert dpf.private_quantiles(negative, 0.5, GUARANTEE).value == Decimal("-1.50")


BILLIONS = pa.array([Decimal(30_000_000_000 + each) for each in range(5_000)], pa.decimal128(38, 10))


def test_private_quantiles__decimals_that_64_bits_cannot_hold_are_never_taken_for_others() -> None:
    """At ten places 64 bits end below 0.93 billion: that bound was the answer, in an interval without width."""
    release = dpf.private_quantiles(BILLIONS, [0.1, 0.5], GUARANTEE)
    assert release.values == (Decimal("Infinity"), Decimal("Infinity"))
    assert release.intervals()[0] == (Decimal("Infinity"), Decimal("Infinity"))
    for reason in release.reasons:
        assert reason is not None
        assert "beyond decimals of 64 bits" in reason
    assert "beyond decimals" in str(release)
    assert release.to_dict()["reasons"] == list(release.reasons)
    below = dpf.private_quantiles(pc.negate(BILLIONS), 0.5, GUARANTEE)
    assert below.value == Decimal("-Infinity")
    (near,) = dpf.private_quantiles(BILLIONS.cast(pa.float64()), 0.5, GUARANTEE).values
    assert near == pytest.approx(30_000_002_500, abs=100)
    mixed = pa.concat_arrays([pa.array([Decimal("1.5")] * 5_000).cast(pa.decimal128(38, 10)), BILLIONS.slice(0, 500)])
    release = dpf.private_quantiles(mixed, 0.5, GUARANTEE)
    assert release.value == Decimal("1.5")
    assert release.reasons == (None,)


def test_private_quantiles__times_are_answered_in_their_own_type() -> None:
    start = np.datetime64("2024-03-01T00:00:00", "us")
    stamps = start + np.arange(5000).astype("timedelta64[h]")
    middle = dpf.private_quantiles(stamps, 0.5, GUARANTEE).value
    assert abs(middle - stamps[2500]) < np.timedelta64(12, "h")
    assert dpf.private_quantiles(pa.array(stamps, pa.timestamp("us", "UTC")), 0.5, GUARANTEE).value.dtype == "M8[us]"
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(366)]
    assert abs(dpf.private_quantiles(days, 0.5, GUARANTEE).value - np.datetime64("2024-07-02")) < np.timedelta64(9, "D")
    spans = pd.Series(pd.to_timedelta(np.arange(4000), unit="s"))
    assert abs(dpf.private_quantiles(spans, 0.5, GUARANTEE).value - np.timedelta64(2000, "s")) < np.timedelta64(20, "s")
    missing = pd.Series(pd.to_datetime(["2024-01-01", None] * 300))
    with pytest.raises(dpf.ItemError, match="NaN or null"):
        dpf.private_quantiles(missing, 0.5, GUARANTEE)
    found = dpf.private_quantiles(missing, 0.5, GUARANTEE, nan_policy="omit")
    assert found.value == np.datetime64("2024-01-01")
    assert found.items == 600, "rows that are left out are counted: their number is not public"


@pytest.mark.parametrize("scale", [1e-300, 5e-324 * 2**40, 1e-9, 1.0, 1e17, 1e300])
def test_private_quantiles__any_scale(scale: float) -> None:
    rows = np.concatenate([RNG.uniform(1, 2, 2000) * scale, [math.inf, -math.inf, 0.0]])
    assert near(dpf.private_quantiles(rows, 0.5, GUARANTEE).value, rows)


def test_private_quantiles__infinite_rows_and_ties_are_answers() -> None:
    assert dpf.private_quantiles([math.inf] * 300 + [0.0] * 100, 0.5, GUARANTEE).value == math.inf
    assert dpf.private_quantiles([-0.0] * 400, 0.5, GUARANTEE).value == 0.0
    assert dpf.private_quantiles([0.1] * 900 + [7.5] * 100, [0.5, 0.8, 0.95], GUARANTEE).values == (0.1, 0.1, 7.5)


def test_private_quantiles__hints_restrict_answers() -> None:
    few = [3.0, 4.0]
    weak = dpf.PureDP(epsilon=0.001)
    for _ in range(20):
        assert 0.0 <= dpf.private_quantiles(few, 0.5, weak, low=0.0, high=10.0).value <= 10.0
        assert dpf.private_quantiles(np.array([3, 4]), 0.5, weak, low=-1.5, high=1.5).value in (-1, 0, 1)
        value = dpf.private_quantiles(few, 0.5, weak, low=0.0, high=10.0, decimals=1).value
        assert value == round(value, 1)
        day = dpf.private_quantiles(np.array(["2024-01-05"], "M8[D]"), 0.5, weak, low="2024-01-01", high="2024-01-09")
        assert np.datetime64("2024-01-01") <= day.value <= np.datetime64("2024-01-09")
    assert dpf.private_quantiles([1e9] * 500, 0.5, GUARANTEE, high=5.0).value == 5.0, "rows beyond a hint count as it"


def test_private_quantiles__several_are_monotone_in_the_callers_order() -> None:
    release = dpf.private_quantiles(FLOATS, [0.9, 0.1, 0.5], dpf.PureDP(epsilon=0.5))
    by_quantile = dict(zip(release.quantiles, release.values, strict=True))
    assert by_quantile[0.1] <= by_quantile[0.5] <= by_quantile[0.9]
    assert release.quantiles == (0.9, 0.1, 0.5)


@pytest.mark.parametrize("guarantee", [dpf.ZCDP(rho=5.0), dpf.ApproxDP(epsilon=10.0, delta=1e-9)])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_private_quantiles__every_guarantee_and_both_relations(guarantee: dpf.Guarantee, neighbours: Any) -> None:
    release = dpf.private_quantiles(FLOATS, 0.5, guarantee, neighbours=neighbours, max_items_per_person=2)
    assert near(release.value, FLOATS)
    assert release.items == (5001 if neighbours == "replace" else None)


def test_private_quantiles__an_empty_table_is_refused_only_where_its_size_is_public() -> None:
    with pytest.raises(dpf.ItemError, match="no rows"):
        dpf.private_quantiles([], 0.5, GUARANTEE)
    assert dpf.private_quantiles([], 0.5, GUARANTEE, neighbours="add-remove").items is None


def test_private_quantiles__spends_before_it_draws(tmp_path: Path) -> None:
    ledger = dpf.Ledger(tmp_path / "ledger", total=dpf.PureDP(epsilon=1.5))
    one = dpf.PureDP(epsilon=1.0)
    dpf.private_quantiles(WHOLE, 0.5, one, ledger=ledger, dataset="requests")
    assert ledger.dataset("requests").used == pytest.approx(1.0)
    with pytest.raises(dpf.BudgetExceeded):
        dpf.private_quantiles(WHOLE, 0.5, one, ledger=ledger, dataset="requests")
    with pytest.raises(dpf.ParameterError, match="add-remove"):
        dpf.private_quantiles(
            WHOLE, 0.5, dpf.PureDP(epsilon=0.1), ledger=ledger, dataset="requests", neighbours="add-remove"
        )
    with pytest.raises(dpf.ItemTypeError):
        dpf.private_quantiles(["a"], 0.5, dpf.PureDP(epsilon=0.1), ledger=ledger, dataset="requests")
    assert ledger.dataset("requests").used == pytest.approx(1.0), "what is refused spends nothing"


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        ([True, False], {}, "not bool"),
        (np.array([True]), {}, "bool"),
        (["secret"], {}, "not str"),
        (np.zeros((2, 2)), {}, "one-dimensional"),
        (iter([1.0]), {}, "can be read once"),
        ("nowhere.parquet", {}, "no such file"),
        (pa.table({"a": [1.0]}), {}, "column"),
        (pa.table({"a": [1.0]}), {"column": "b"}, "no column 'b'"),
        (pl.LazyFrame({"a": [1.0]}), {"column": "b"}, "there are 'a'"),
        (pa.array(["secret"]), {}, "string"),
        ([1.0, math.nan], {}, "NaN or null"),
        ([1.0, None], {}, "NaN or null"),
        ([1.0], {"low": 2.0, "high": 1.0}, "between 2.0 and 1.0"),
        ([1.0], {"low": "secret"}, "low must be"),
        (np.array([1]), {"decimals": 2}, "decimals is for columns of floats"),
        ([1.0], {"decimals": 16}, "decimals"),
        ([1.0], {"neighbours": "both"}, "neighbours"),
        ([1.0], {"dataset": "x"}, "ledger"),
        (7, {}, "not int"),
        ([datetime.date(2024, 1, 1), 5], {}, "one type"),
    ],
)
def test_private_quantiles__refuses_in_one_sentence(data: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(dpf.DPFrugalError, match=match) as refused:
        dpf.private_quantiles(data, 0.5, GUARANTEE, **options)
    assert "secret" not in str(refused.value) or "low" in options
    assert refused.value.__context__ is None


def test_read_column__types_are_named_and_rows_are_not_shown() -> None:
    column = read_column(np.array([123456.5]), None, "raise")
    assert column.kind is kinds.FLOATS
    assert "123456" not in repr(column)


@pytest.mark.parametrize("rows", [[1, 2], [1, 2.5], [Decimal("1.25"), 2], [None, 3], []])
def test_read_column__no_row_of_a_list_chooses_the_type(rows: list[Any]) -> None:
    assert read_column(rows, None, "omit").kind is kinds.FLOATS


def test_read_column__of_files_with_integers_and_floats_is_one_of_floats(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "b.parquet")
    column = read_column(str(tmp_path), "x", "raise")
    assert sorted(column.kind.answer(code) for code in column.codes.tolist()) == [0.5, 1.0, 2.0]
    pq.write_table(pa.table({"x": pa.array([1], pa.uint64())}), tmp_path / "c.parquet")
    with pytest.raises(dpf.ItemTypeError, match="one type"):
        read_column(str(tmp_path), "x", "raise")


@pytest.mark.parametrize("epsilon", [1e3, 1e4, 1e6])
def test_private_quantiles__a_promise_that_hides_nothing_overflows_nothing(epsilon: float) -> None:
    weak = dpf.PureDP(epsilon=epsilon)
    assert dpf.private_quantiles(np.zeros(1000), 0.5, weak).value == 0.0
    low, high = dpf.private_quantiles(np.arange(1000.0), [0.1, 0.9], weak).values
    assert (low, high) == (pytest.approx(100, abs=1), pytest.approx(900, abs=1))
