"""Spark: no key's rows come together on an executor; what is shuffled are sums."""

from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.engines import bracket_search
from tests.support.shuffles import shuffled

pytestmark = pytest.mark.spark
GUARANTEE = dpf.PureDP(epsilon=1.0)


@pytest.mark.parametrize("keyed", [False, True])
def test_spark_table__shuffles_sums_not_rows(spark: Any, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
    """Half of 400,000 rows are one key's. Rows are collected by the driver only within brackets."""
    for name, value in {"WHOLE": 1000, "FEW": 1000, "COLLECTED": 8_000}.items():
        monkeypatch.setattr(bracket_search, name, value)
    df = spark.range(400_000, numPartitions=4).selectExpr(
        "cast(hash(id) as double) AS x", "if(id % 2 = 0, 0, id % 100) AS key"
    )
    _, first = shuffled(spark, 0)
    if keyed:
        table = dpf.quantiles_by(df, "x", 0.5, GUARANTEE, by="key", keys=[0, 1, 3])
        assert table.column("reason").null_count == 3
    else:
        assert dpf.private_quantiles(df, 0.5, GUARANTEE, column="x").items == 400_000
    records, last = shuffled(spark, first)
    assert last > first
    assert 0 < records < 60_000
