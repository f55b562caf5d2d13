"""Spark: windows that are exactly those of the sorted rows, from scans that bring no key's rows together."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.engines import bracket_search
from dpfrugal.errors import ItemError, ParameterTypeError, TableError
from tests.engines.holders import check, codes_by_key, flights, grouped, opened, typed

pytestmark = pytest.mark.spark
GUARANTEE = dpf.PureDP(epsilon=1.0)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WHOLE": 50, "FEW": 50, "COLLECTED": 600, "TIMES_WANTED": 1, "LEAST_SAMPLE": 64}.items():
        monkeypatch.setattr(bracket_search, name, value)


def same_windows(table: Any, rows: pa.Table, value: str, by: tuple[str, ...]) -> None:
    held = opened(table, value, by)
    names, _, sizes, found = grouped(held, by)
    check(found, names, sizes, codes_by_key(rows, value, by))


@pytest.mark.parametrize(
    ("value", "by"), [("double", ("key",)), ("integer", ()), ("decimal", ("name", "key")), ("time", ()), ("date", ())]
)
def test_spark_windows__are_those_of_the_sorted_rows(spark: Any, narrow: None, value: str, by: tuple[str, ...]) -> None:
    rows = typed()
    same_windows(spark.createDataFrame(rows).repartition(3), rows, value, by)


def test_spark_windows__of_a_real_table_are_exact_and_the_front_doors_take_it(spark: Any) -> None:
    rows = flights()
    frame = spark.createDataFrame(rows).cache()
    same_windows(frame, rows, "arr_delay", ("carrier",))
    r = dpf.private_quantiles(frame, [0.5, 0.9], GUARANTEE, column="arr_delay", nan_policy="omit")
    assert r.items == rows.num_rows
    assert -6 <= r.values[0] <= -4
    shown = dpf.quantiles_by(
        frame, "distance", 0.5, GUARANTEE, by="carrier", discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6)
    )
    assert 12 <= shown.num_rows <= 16
    frame.unpersist()


@pytest.mark.parametrize("most_keys", [None, 2])
def test_spark_windows__hold_so_many_rows_of_a_person_the_same_ones_at_each_scan(
    spark: Any, narrow: None, most_keys: int | None
) -> None:
    random = np.random.default_rng(3)
    person, key = random.integers(0, 200, 3_000), random.integers(0, 5, 3_000)
    value = person * 1000 + key * 100 + random.integers(0, 3, 3_000)  # tells whose row it is, with ties
    rows = pa.table({"value": value, "key": key, "person": person})
    limits = {"max_items_per_person": 3} | ({} if most_keys is None else {"max_keys_per_person": most_keys})
    _, _, sizes, found = grouped(opened(spark.createDataFrame(rows), "value", ("key",), "person", **limits), ("key",))
    keys = [np.unique(key[person == who], return_counts=True)[1] for who in range(200)]
    expected = sum(min(3, each.sum()) for each in keys) if most_keys is None else None
    assert expected is None or int(sizes.sum()) == expected
    assert sum(part.groups.size for part in found) == sizes.size == 5


def test_spark_windows__refuse_in_sentences(spark: Any, tmp_path: Any) -> None:
    frame = spark.createDataFrame(typed())
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (TableError, "there is no column 'delay'", {"column": "delay"}),
        (dpf.ItemTypeError, "data must be numbers", {"column": "name"}),
        (ItemError, "NaN or null", {"column": "double"}),
        (ItemError, "person has null ids", {"column": "integer", "person": "name"}),
    ]
    for kind, said, options in cases:
        with pytest.raises(kind, match=said) as caught:
            dpf.private_quantiles(frame, 0.5, GUARANTEE, **options)
        assert caught.value.__context__ is None
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ParameterTypeError, match="streaming DataFrame"):
        dpf.private_quantiles(stream, 0.5, GUARANTEE, column="value")
    failing = frame.selectExpr("cast(raise_error('secret') as int) AS x")
    with pytest.raises(TableError, match="plan of the table") as raised:
        dpf.private_quantiles(failing, 0.5, GUARANTEE, column="x")
    assert "secret" not in str(raised.value)
