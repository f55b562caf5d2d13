"""A private quantile per group of a data frame: which rows of a person count, and when it releases."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.walked_quantiles_by import walked_quantiles_by
from tests.support.byte_shift import CSV_SOURCES, byte_shift_pair

TABLE = pa.table({"who": list(range(100)) * 3, "key": ["a", "b", "c"] * 100, "x": list(range(300))})


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The key and the value of each row that counts, for the same priorities in every call."""
    monkeypatch.setattr("dpfrugal.keys.person_limits.secrets.randbits", lambda bits: 7)
    rows: list[tuple[Any, Any]] = []
    update = dpf.KeyedDPFrugal1U._update_chosen

    def recorded(estimator: dpf.KeyedDPFrugal1U, keys: Any, values: Any, chosen: Any) -> None:
        all_rows = zip(keys.to_pylist(), values.to_pylist(), strict=True)
        rows.extend(row for row, counts in zip(all_rows, chosen, strict=True) if counts)
        update(estimator, keys, values, chosen)

    monkeypatch.setattr(dpf.KeyedDPFrugal1U, "_update_chosen", recorded)
    return rows


@pytest.mark.parametrize("max_keys_per_person", [None, 2])
@pytest.mark.parametrize("source", sorted(CSV_SOURCES.keys() - {"polars lazy", "dataset", "file"}))
def test_quantiles_by__lets_no_cell_decide_which_rows_of_others_count(
    source: str, max_keys_per_person: int | None, tmp_path: Path, counted: list[tuple[Any, Any]]
) -> None:
    found = []
    for path in byte_shift_pair(tmp_path):
        options: Any = {"max_items_per_person": 2, "max_keys_per_person": max_keys_per_person, "keys": ["a", "b", "c"]}
        data = CSV_SOURCES[source](path)
        walked_quantiles_by(data, "x", 0.5, dpf.PureDP(epsilon=1.0), by="key", person="who", **options)
        found.append(counted.copy())
        counted.clear()
    assert len(found[0]) > 100
    assert found[0] == [("b", 0), *found[1]]  # the row with the longer key, which is not declared


@pytest.mark.parametrize("cuts", [[1, 0, 99, 200], [7] * 43])
@pytest.mark.parametrize("rounds", [1, 3])
def test_quantiles_by__with_persons_does_not_depend_on_how_the_reader_cuts(
    cuts: list[int], rounds: int, counted: list[tuple[Any, Any]]
) -> None:
    def run(data: Any) -> list[tuple[Any, Any]]:
        options: Any = {"by": "key", "person": "who", "discover_keys": dpf.ApproxDP(epsilon=1.0, delta=1e-6)}
        walked_quantiles_by(data, "x", 0.5, dpf.PureDP(epsilon=1.0), rounds=rounds, **options)
        found = counted.copy()
        counted.clear()
        return found

    firsts = [sum(cuts[:k]) for k in range(len(cuts))]
    pieces = [TABLE.slice(first, size) for first, size in zip(firsts, cuts, strict=True)]
    expected = run(TABLE)
    assert run(pa.concat_tables(pieces)) == expected
    assert len(expected) == 100  # one row of each person


def test_quantiles_by__counts_no_row_of_a_person_for_what_is_missing_or_undeclared(
    counted: list[tuple[Any, Any]],
) -> None:
    table = pa.table(
        {"who": [1] * 6, "key": ["none", "a", "a", None, "none", "a"], "x": [1.0, None, 3.0, 4.0, 5.0, 6.0]}
    )
    options: Any = {"by": "key", "person": "who", "keys": ["a"], "nan_policy": "omit", "null_keys": "drop"}
    walked_quantiles_by(table, "x", 0.5, dpf.PureDP(epsilon=1.0), max_items_per_person=2, **options)
    assert counted == [("a", 3.0), ("a", 6.0)]


def test_quantiles_by__with_persons_walks_over_the_rows_that_count() -> None:
    """ε is so large that the noise is 0 but for a chance of 10^-100: one row of each of 200 people, each of value 7."""
    table = pa.table({"who": list(range(200)) * 5, "key": ["a"] * 1000, "x": [7] * 1000})
    options: Any = {"by": "key", "person": "who", "keys": ["a"], "adaptive_steps": False, "coin_seed": 1}
    limited = walked_quantiles_by(table, "x", 0.5, dpf.PureDP(epsilon=1000.0), start=-1000.0, **options)
    free = walked_quantiles_by(
        table, "x", 0.5, dpf.PureDP(epsilon=5000.0), start=-1000.0, **options | {"max_items_per_person": 5}
    )
    steps_limited, steps_free = (table["value"][0].as_py() + 1000 for table in (limited, free))
    assert 50 < steps_limited < 150  # half of the coins of 200 rows
    assert 400 < steps_free < 600


@pytest.mark.parametrize("kind", [np.uint8, np.int16])
def test_quantiles_by__counts_rounds_in_plain_integers(kind: type) -> None:
    """An integer of eight bits would overflow after the first release was paid for."""
    table = walked_quantiles_by(
        TABLE, "x", 0.5, dpf.PureDP(epsilon=1.0), by="key", keys=["a", "b", "c"], rounds=kind(2)
    )
    assert len(table) == 3
