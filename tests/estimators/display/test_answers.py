"""What there is to show of a table of releases: of every kind, and of none that was not released."""

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.display.answers import answers_of_table, is_table_of_releases, key_names, quantiles_shown

ONE = dpf.PureDP(epsilon=1.0)
ROWS = pa.table(
    {
        "city": pa.array(["Linz", None, "Graz"] * 1000),
        "day": pa.array([np.datetime64("2026-03-01T00:00:00.000000001", "ns")] * 3000),
        "ms": pa.array(np.arange(3000.0)),
    }
)


def test_answers__of_quantiles_by_have_their_interval_and_their_key() -> None:
    keys = ROWS.select(["city", "day"]).slice(0, 3).drop_null()
    table = dpf.quantiles_by(ROWS, "ms", [0.5, 0.9999], ONE, by=["city", "day"], keys=keys, null_keys="group")
    assert is_table_of_releases(table)
    assert key_names(table) == ["city", "day"]
    found = answers_of_table(table)
    assert quantiles_shown(found) == [0.5, 0.9999]
    assert {each.key.split(",")[0] for each in found} == {"Linz", "Graz", "–"}
    assert all(each.key.endswith(("2026-03-01T00:00:00.000000001", "–")) for each in found)
    for each in found:
        if each.quantile == 0.5:
            assert (each.reason, each.lower <= each.value <= each.upper) == (None, True)
        else:
            assert "too few rows" in (each.reason or "")


def test_answers__of_the_walk_have_what_its_noise_alone_may_do() -> None:
    estimator = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["a"])
    table = estimator.release()
    (found,) = answers_of_table(table)
    alpha = table.column("alpha")[0].as_py()
    assert (found.lower, found.upper) == (found.value - alpha, found.value + alpha)


def test_answers__of_a_table_that_was_not_released_are_refused() -> None:
    released = dpf.KeyedDPFrugal1U(0.5, ONE, keys=["a"]).release()
    for table in (ROWS, released.replace_schema_metadata(None), released.drop_columns("quantile")):
        assert not is_table_of_releases(table)
        with pytest.raises(ParameterError, match="table must be"):
            answers_of_table(table)
