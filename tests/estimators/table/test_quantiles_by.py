"""The front door per group: sources, keys, persons, small groups, the ledger, refusals."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpfrugal as dpf

RNG = np.random.default_rng(5)
ROWS = 6000
GUARANTEE = dpf.PureDP(epsilon=20.0)
TABLE = pa.table(
    {
        "k": RNG.choice(["a", "b", "c", "d"], ROWS, p=[0.5, 0.3, 0.199, 0.001]),
        "j": RNG.integers(0, 2, ROWS),
        "x": np.round(RNG.lognormal(3, 1, ROWS), 2),
        "when": np.datetime64("2024-01-01", "s") + RNG.integers(0, 10**6, ROWS).astype("m8[s]"),
        "who": RNG.integers(0, 3000, ROWS),
    }
)


def rows_off(table: pa.Table, value: Any, q: float, **key: Any) -> float:
    frame = table.to_pandas()
    for name, part in key.items():
        frame = frame[frame[name] == part]
    ordered = np.sort(frame["x"].to_numpy())
    at = q * ordered.size
    return float(max(np.searchsorted(ordered, value, "left") - at, at - np.searchsorted(ordered, value, "right"), 0))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "Arrow": lambda _: TABLE,
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "lazy": lambda _: pl.from_arrow(TABLE).lazy(),
    "reader": lambda _: TABLE.to_reader(max_chunksize=500),
    "dataset": lambda folder: ds.dataset(parquet(folder)),
    "file": lambda folder: parquet(folder),
    "folder": lambda folder: str(parquet(folder).parent),
    "CSV": lambda folder: csv(folder),
}


def parquet(folder: Path) -> Path:
    pq.write_table(TABLE, folder / "t.parquet", row_group_size=700)
    return folder / "t.parquet"


def csv(folder: Path) -> Path:
    pa.csv.write_csv(TABLE.drop_columns("when"), folder / "t.csv")
    return folder / "t.csv"


@pytest.mark.parametrize("source", SOURCES)
def test_quantiles_by__takes_tables_of_every_kind(source: str, tmp_path: Path) -> None:
    table = dpf.quantiles_by(SOURCES[source](tmp_path), "x", [0.9, 0.5], GUARANTEE, by="k", keys=["b", "a"])
    assert table.column_names == ["key", "quantile", "value", "lower", "upper", "rows", "reason"]
    assert table["key"].to_pylist() == ["b", "b", "a", "a"]
    assert table["quantile"].to_pylist() == [0.9, 0.5] * 2
    for row in table.to_pylist():
        assert rows_off(TABLE, row["value"], row["quantile"], k=row["key"]) < 8
        assert row["lower"] <= row["value"] <= row["upper"]
        assert row["reason"] is None


def test_quantiles_by__several_columns_are_one_key() -> None:
    keys = [("a", 0), ("b", 1), ("c", 1)]
    table = dpf.quantiles_by(TABLE, "x", 0.5, GUARANTEE, by=["k", "j"], keys=keys, intervals=False)
    assert [(row["k"], row["j"]) for row in table.to_pylist()] == keys
    for row in table.to_pylist():
        assert rows_off(TABLE, row["value"], 0.5, k=row["k"], j=row["j"]) < 4
        assert row["lower"] is row["upper"] is None


def test_quantiles_by__undeclared_keys_are_left_out_or_one_more_group() -> None:
    table = dpf.quantiles_by(TABLE, "x", 0.5, GUARANTEE, by="k", keys=["a"], other="the rest")
    assert table["key"].to_pylist() == ["a", "the rest"]
    assert table["rows"].to_pylist()[1] == pytest.approx(ROWS - (TABLE["k"].to_pandas() == "a").sum(), abs=12)
    assert dpf.quantiles_by(TABLE, "x", 0.5, GUARANTEE, by="k", keys=["a"])["key"].to_pylist() == ["a"]


def test_quantiles_by__a_small_or_empty_group_has_a_reason_instead_of_a_value() -> None:
    every: list[dict[str, Any]] = [{}, {"intervals": False}]
    for options in every:
        table = dpf.quantiles_by(TABLE, "x", 0.5, dpf.PureDP(epsilon=1), by="k", keys=["a", "d", "nobody"], **options)
        assert table["value"].is_null().to_pylist() == [False, True, True]
        assert table["reason"].to_pylist()[0] is None
        assert all("too few rows" in reason for reason in table["reason"].to_pylist()[1:])


def test_quantiles_by__answers_in_the_type_of_the_column() -> None:
    table = dpf.quantiles_by(TABLE, "when", 0.5, GUARANTEE, by="k", keys=["a", "d"])
    assert table.schema.field("value").type == TABLE.schema.field("when").type
    assert table.schema.field("lower").type == TABLE.schema.field("when").type
    whole = TABLE.append_column("n", pa.array(RNG.integers(2**62, 2**62 + 50, ROWS)))
    table = dpf.quantiles_by(whole, "n", 0.5, GUARANTEE, by="k", keys=["a"])
    assert table.schema.field("value").type == pa.int64()
    assert 2**62 <= table["value"][0].as_py() < 2**62 + 50
    unsigned = TABLE.append_column("n", pa.array(np.full(ROWS, 2**64 - 7, dtype=np.uint64)))
    assert dpf.quantiles_by(unsigned, "n", 0.5, GUARANTEE, by="k", keys=["a"])["value"].to_pylist() == [2**64 - 7]
    money = TABLE.append_column("n", pa.array([Decimal("12.00"), Decimal("13.00")] * (ROWS // 2)))
    assert str(dpf.quantiles_by(money, "n", 0.4, GUARANTEE, by="k", keys=["a"])["value"][0]) == "12.00"


def test_quantiles_by__decimals_that_64_bits_cannot_hold_are_null_with_a_reason() -> None:
    large = [Decimal(30_000_000_000 + row) if row % 2 else Decimal(7) for row in range(8_000)]
    table = pa.table({"x": pa.array(large, pa.decimal128(38, 10)), "k": ["a", "b"] * 4_000})
    for intervals in (True, False):
        found = dpf.quantiles_by(table, "x", [0.5, 0.2], GUARANTEE, by="k", keys=["a", "b"], intervals=intervals)
        assert found["value"].to_pylist() == [Decimal(7), Decimal(7), None, None]
        assert found["reason"].to_pylist()[:2] == [None, None]
        assert all("beyond decimals of 64 bits" in reason for reason in found["reason"].to_pylist()[2:])
        assert found["lower"].null_count == (2 if intervals else 4)


def test_quantiles_by__keys_are_discovered_at_their_own_cost(tmp_path: Path) -> None:
    cost = dpf.ApproxDP(epsilon=5.0, delta=1e-9)
    ledger = dpf.Ledger(tmp_path / "ledger", total=dpf.ApproxDP(epsilon=30.0, delta=1e-6))
    table = dpf.quantiles_by(
        TABLE, "x", 0.5, GUARANTEE, by="k", discover_keys=cost, ledger=ledger, dataset="orders", intervals=False
    )
    assert table["key"].to_pylist() in (["a", "b", "c"], ["a", "b", "c", "d"])
    assert table.schema.metadata[b"total"].decode() == "ε=25, δ=1e-09"
    (spend,) = ledger.dataset("orders").spends
    assert spend.guarantee == dpf.ApproxDP(epsilon=25.0, delta=1e-9)
    assert spend.asked["column"] == "x"
    assert spend.asked["by"] == "k"


def test_quantiles_by__states_its_claim() -> None:
    table = dpf.quantiles_by(TABLE, "x", 0.5, dpf.ZCDP(rho=3.0), by="k", keys=["a"], neighbours="add-remove")
    stated = {name.decode(): text.decode() for name, text in table.schema.metadata.items()}
    assert stated["guarantee"] == "ρ=3"
    assert stated["neighbours"] == "add-or-remove-one"
    assert json.loads(stated["shares"]) == {"values": 0.43, "intervals": 0.43, "rows": 0.1, "pilot": 0.04}
    assert "items" not in stated, "how many rows there are is private under add-remove"
    replaced = dpf.quantiles_by(TABLE, "x", 0.5, GUARANTEE, by="k", keys=["a"], max_items_per_person=2, counts=False)
    stated = {name.decode(): text.decode() for name, text in replaced.schema.metadata.items()}
    assert stated["items"] == str(ROWS)
    assert stated["unit"] == "person of ≤ 2 rows"
    assert "rows" not in replaced.column_names


def test_quantiles_by__rows_beyond_the_limits_of_a_person_do_not_count() -> None:
    """One person has most rows, all of them large: with one row a person the median is that of the others."""
    values = np.concatenate([np.full(5000, 1000.0), np.arange(1000.0)])
    table = pa.table({"k": ["a"] * 6000, "x": values, "who": np.concatenate([np.zeros(5000), np.arange(1, 1001)])})
    table = table.set_column(2, "who", table["who"].cast(pa.int64()))
    limited = dpf.quantiles_by(table, "x", 0.5, GUARANTEE, by="k", keys=["a"], person="who")
    assert limited["value"][0].as_py() < 550
    assert dpf.quantiles_by(table, "x", 0.5, GUARANTEE, by="k", keys=["a"])["value"][0].as_py() == 1000
    alone = dpf.private_quantiles(table, 0.5, GUARANTEE, column="x", person="who")
    assert alone.value < 550
    assert alone.items == 6000
    with pytest.raises(dpf.ParameterError, match="name the column of numbers too, with column"):
        dpf.private_quantiles(values, 0.5, GUARANTEE, person="who")


def test_quantiles_by__order_and_cuts_cannot_matter() -> None:
    """Values of the same bits: the mechanism sees the same sorted rows, however they lie."""
    from dpfrugal.estimators.table.rows.grouped_rows import read_groups

    shuffled = TABLE.take(pa.array(RNG.permutation(ROWS)))
    found = [
        read_groups(data, "x", "k", keys=["a", "b"])
        for data in (TABLE, shuffled, TABLE.to_reader(max_chunksize=7), TABLE.sort_by("x").to_pandas())
    ]
    for other in found[1:]:
        assert (other.sorted_codes == found[0].sorted_codes).all()
        assert (other.starts == found[0].starts).all()


def test_quantiles_by__progress_ends_at_its_total() -> None:
    told: list[tuple[int, int]] = []
    dpf.quantiles_by(
        TABLE, "x", 0.5, GUARANTEE, by="k", keys=["a", "b"], progress=lambda done, total: told.append((done, total))
    )
    assert told
    assert all(done <= total for done, total in told)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"keys": ["a", "a"]}, "twice"),
        ({"keys": []}, "at least one"),
        ({}, "keys or discover_keys"),
        ({"keys": ["a"], "by": "nothing"}, "no column 'nothing'"),
        ({"keys": ["a"], "by": []}, "by must name"),
        ({"keys": ["a"], "by": None}, "by must be the name of a column, not NoneType"),
        ({"keys": ["a"], "start": 5.0}, 'start is for method="walk"'),
        ({"keys": ["a"], "rounds": 2}, 'rounds is for method="walk"'),
        ({"keys": ["a"], "method": "magic"}, "method"),
        ({"keys": ["a"], "neighbours": "both"}, "neighbours"),
        ({"keys": ["a"], "counts": 1}, "counts must be True or False"),
        ({"keys": ["a"], "confidence": 2.0}, "confidence"),
        ({"keys": ["a"], "low": 5.0, "high": 1.0}, "between 5.0 and 1.0"),
        ({"keys": ["a"], "other": "a"}, "other must not be"),
        ({"keys": ["a"], "column": "k"}, "data must be numbers|different"),
    ],
)
def test_quantiles_by__refuses_in_one_sentence_before_it_spends(
    options: dict[str, Any], match: str, tmp_path: Path
) -> None:
    ledger = dpf.Ledger(tmp_path / "ledger", total=dpf.PureDP(epsilon=50.0))
    given: dict[str, Any] = {"by": "k", "column": "x"} | options
    with pytest.raises(dpf.DPFrugalError, match=match):
        dpf.quantiles_by(TABLE, given.pop("column"), 0.5, GUARANTEE, ledger=ledger, dataset="orders", **given)
    assert not ledger.datasets() or not ledger.dataset("orders").spends


def test_quantiles_by__missing_rows_follow_the_policy() -> None:
    holed = pa.table({"k": ["a"] * 500 + [None], "x": [1.0] * 499 + [None, 2.0]})
    with pytest.raises(dpf.ItemError, match="null keys"):
        dpf.quantiles_by(holed, "x", 0.5, GUARANTEE, by="k", keys=["a"], nan_policy="omit")
    with pytest.raises(dpf.ItemError, match="NaN or null rows"):
        dpf.quantiles_by(holed, "x", 0.5, GUARANTEE, by="k", keys=["a"], null_keys="drop")
    table = dpf.quantiles_by(holed, "x", 0.5, GUARANTEE, by="k", keys=["a"], null_keys="drop", nan_policy="omit")
    assert table["value"].to_pylist() == [1.0]
    with pytest.raises(dpf.ItemError, match="no rows"):
        dpf.quantiles_by(holed.slice(0, 0), "x", 0.5, GUARANTEE, by="k", keys=["a"])


def test_quantiles_by__the_walk_remains() -> None:
    table = dpf.quantiles_by(TABLE, "x", 0.5, GUARANTEE, by="k", keys=["a"], method="walk", start=20.0, decimals=2)
    assert table.column_names == ["key", "quantile", "value", "alpha"]
    with pytest.raises(dpf.ParameterError, match="one column"):
        dpf.quantiles_by(TABLE, "x", 0.5, GUARANTEE, by=["k", "j"], keys=[("a", 0)], method="walk")


@pytest.mark.parametrize("quantiles", [(0.5,), (0.5, 0.9), tuple(round(0.1 * i, 1) for i in range(1, 10))])
def test_quantiles_by__many_groups_are_answered_as_few_are(quantiles: tuple[float, ...]) -> None:
    groups = 300
    data = pa.table({"g": np.repeat(np.arange(groups), 200), "x": RNG.normal(50, 9, 200 * groups)})
    table = dpf.quantiles_by(data, "x", quantiles, dpf.PureDP(epsilon=50), by="g", keys=np.arange(groups))
    frame = table.to_pandas()
    exact = data.to_pandas().groupby("g")["x"].quantile(0.5).to_numpy()
    middle = frame[frame["quantile"] == 0.5]["value"].to_numpy()
    assert np.abs(middle - exact).max() < 4
    assert (
        frame.dropna(subset="value").groupby("key")["value"].apply(lambda column: column.is_monotonic_increasing).all()
    )


def test_quantiles_by__takes_pandas_strings_on_arrow() -> None:
    frame = pd.DataFrame({"k": pd.array(["a", "b"] * 500, dtype="string[pyarrow]"), "x": np.arange(1000)})
    table = dpf.quantiles_by(frame, "x", 0.5, GUARANTEE, by="k", keys=["a"])
    assert 450 < table["value"][0].as_py() < 550
