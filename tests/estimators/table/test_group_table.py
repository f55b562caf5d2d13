"""The table of a release by group: its columns, what is null and why, and the claim beside it."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.base.kinds import INTEGERS
from dpfrugal.estimators.table.choices.group_answers import GroupAnswers
from dpfrugal.estimators.table.choices.intervals import IntervalRule
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.group_table import claim, group_table, key_columns
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows
from dpfrugal.privacy.guarantees import Guarantee

HALF, NINE_TENTHS = Fraction(1, 2), Fraction(9, 10)


class Grouped:
    """What the table needs of rows by group."""

    def __init__(self, **columns: list[str]) -> None:
        self.key_columns = {name: pa.array(values) for name, values in columns.items()}
        self.kind, self.rows = INTEGERS, 5000


def plan(guarantee: Guarantee = dpf.PureDP(epsilon=1.0), **options: Any) -> Any:  # noqa: B008
    rule = IntervalRule(0.95, "population")
    return plan_of(Asked(quantiles=(HALF, NINE_TENTHS), guarantee=guarantee, grouped=True, intervals=rule,
                         counts=True, **options))  # fmt: skip


def table(quantiles: tuple[float, ...] = (0.9, 0.5), rows: tuple[int, ...] = (9000, 3), bounded: bool = True) -> Any:
    values = np.array([[10, 20], [30, 40]], dtype=np.int64)
    answers = GroupAnswers(values, values - 1, values + 1, np.full((2, 2), bounded), np.array(rows, dtype=np.int64))
    grouped: Any = Grouped(shop=["a", "b"])
    return group_table(grouped, plan(), answers, quantiles, None, 1, None)


def test_group_table__has_a_row_per_key_and_quantile_in_the_order_asked_for() -> None:
    found = table(rows=(9000, 8000)).to_pydict()
    assert found["key"] == ["a", "a", "b", "b"]
    assert found["quantile"] == [0.9, 0.5, 0.9, 0.5]
    assert found["value"] == [20, 10, 40, 30]
    assert (found["lower"], found["upper"]) == ([19, 9, 39, 29], [21, 11, 41, 31])
    assert found["rows"] == [9000, 9000, 8000, 8000]
    assert found["reason"] == [None] * 4


def test_group_table__shows_nothing_of_a_group_that_is_too_small_but_why() -> None:
    found = table().to_pydict()
    for name in ("value", "lower", "upper"):
        assert found[name][2:] == [None, None]
        assert None not in found[name][:2]
    needed = plan().rows_needed
    assert found["reason"][2:] == [f"too few rows: about {rows:,} are needed at ε=1" for rows in needed[::-1]]
    assert found["rows"][2:] == [3, 3]


def test_group_table__an_unbounded_interval_hides_the_value_however_many_rows_there_are() -> None:
    assert table(bounded=False).column("value").null_count == 4


def test_key_columns__do_not_hide_those_of_the_answers() -> None:
    grouped: Any = Grouped(value=["x"], city=["y"])
    assert list(key_columns(grouped)) == ["key_value", "city"]
    one: Any = Grouped(city=["y"])
    assert list(key_columns(one)) == ["key"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"neighbours": "replace-one, value and key", "unit": "row", "items": "5000"}),
        ({"neighbours": "add-remove"}, {"neighbours": "add-or-remove-one", "unit": "row"}),
    ],
)
def test_claim__says_whose_change_is_hidden(options: dict[str, Any], expected: dict[str, str]) -> None:
    grouped: GroupedRows = Grouped(shop=["a"])  # type: ignore[assignment]
    stated = claim(grouped, plan(**options), None, "row")
    assert {name: stated[name] for name in expected} == expected
    assert ("items" in stated) == (options.get("neighbours") != "add-remove")  # else their number is not public
    assert sum(json.loads(stated["shares"]).values()) == pytest.approx(1)
    assert json.loads(stated["guarantee_parameters"]) == {"PureDP": {"epsilon": 1.0}}


def test_claim__adds_up_what_values_and_discovered_keys_cost() -> None:
    grouped: GroupedRows = Grouped(shop=["a"])  # type: ignore[assignment]
    discover = dpf.ApproxDP(epsilon=0.5, delta=1e-6)
    assert claim(grouped, plan(), discover, "row")["total"] == "ε=1.5, δ=1e-06"
    of_rho = claim(grouped, plan(dpf.ZCDP(rho=0.5)), discover, "row")["total"]
    assert of_rho == "ρ=0.5 for values and ε=0.5, δ=1e-06 for which keys are shown"
