"""The release of many keys: its rows, and the claim in its schema."""

import json

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.keyed.release_table import KeyedClaim, release_table, total_cost

DISCOVERY = dpf.ApproxDP(epsilon=0.5, delta=1e-6)


def claim(
    guarantee: dpf.Guarantee, discovery: dpf.ApproxDP | None = None, items: int = 1, keys: int | None = None
) -> KeyedClaim:
    return KeyedClaim(
        guarantee=guarantee, discover_keys=discovery, max_items_per_person=items, max_keys_per_person=keys, items=1234
    )


def test_release_table__has_a_row_for_each_key_and_quantile_in_their_order() -> None:
    values, alphas = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.full((3, 2), 0.5)
    table = release_table(pa.array(["x", "y", "z"]), (0.9, 0.1), values, alphas, {"a": "b"})
    assert table.to_pydict() == {
        "key": ["x", "x", "y", "y", "z", "z"],
        "quantile": [0.9, 0.1] * 3,
        "value": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "alpha": [0.5] * 6,
    }
    assert table.schema.metadata == {b"a": b"b"}


def test_release_table__is_empty_without_keys() -> None:
    table = release_table(pa.nulls(0), (0.5,), np.empty((0, 1)), np.empty((0, 1)), {})
    assert (len(table), table.column_names) == (0, ["key", "quantile", "value", "alpha"])


def test_total_cost__is_that_of_the_values_where_keys_are_declared() -> None:
    for guarantee in (dpf.PureDP(epsilon=1.0), dpf.ZCDP(rho=0.1), dpf.ApproxDP(epsilon=1.0, delta=1e-6)):
        assert total_cost(guarantee, None) == guarantee


def test_total_cost__adds_what_discovery_costs() -> None:
    assert total_cost(dpf.PureDP(epsilon=0.1), DISCOVERY) == dpf.ApproxDP(epsilon=0.6, delta=1e-6)
    approx = dpf.ApproxDP(epsilon=0.2, delta=2e-6)
    assert total_cost(approx, DISCOVERY) == dpf.ApproxDP(epsilon=0.7, delta=3e-6)
    with pytest.raises(dpf.ParameterError, match="discover_keys"):
        total_cost(dpf.ZCDP(rho=0.1), DISCOVERY)


@pytest.mark.parametrize(
    ("items", "keys", "unit"),
    [(1, None, "item"), (3, None, "person of ≤ 3 items"), (2, 4, "person of ≤ 2 items in each of ≤ 4 keys")],
)
def test_keyed_claim__names_whose_change_is_hidden(items: int, keys: int | None, unit: str) -> None:
    assert claim(dpf.PureDP(epsilon=1.0), None, items, keys).unit == unit


def test_keyed_claim__is_complete_in_the_metadata() -> None:
    metadata = claim(dpf.PureDP(epsilon=0.5), DISCOVERY).metadata()
    assert metadata["total"] == "ε=1, δ=1e-06"
    assert (metadata["guarantee"], metadata["discover_keys"]) == ("ε=0.5", "ε=0.5, δ=1e-06")
    assert json.loads(metadata["guarantee_parameters"]) == {"PureDP": {"epsilon": 0.5}}
    assert (metadata["unit"], metadata["items"], metadata["beta"]) == ("item", "1234", "0.05")
    assert "key" in metadata["neighbours"]
    assert "discover_keys" not in claim(dpf.PureDP(epsilon=0.5)).metadata()
    assert claim(dpf.ZCDP(rho=0.5), DISCOVERY).total == "ρ=0.5 for values and ε=0.5, δ=1e-06 for which keys are shown"
