"""Options as a checkpoint records them, and what hints leave as answers."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import dpfrugal as dpf
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS
from dpfrugal.estimators.table.choices.intervals import IntervalRule
from dpfrugal.estimators.windows.window_options import bases_of, record_of_hints, record_of_rule, recorded_options
from dpfrugal.storage import json_values


@pytest.mark.parametrize("hints", [(None, None, None), (0, 2**62, None), (-0.1, 1e300, 3), (0.1, 5, None)])
@pytest.mark.parametrize("rule", [None, IntervalRule(0.9, "table")])
def test_recorded_options__are_what_was_given(hints: tuple[Any, Any, int | None], rule: IntervalRule | None) -> None:
    same = {"neighbours": "replace", "max_items_per_person": 2, "windows": 3, "nan_policy": "omit"}
    record = same | {
        "quantiles": json_values.packed((0.5, 0.9)),
        "guarantee": dpf.ZCDP(rho=0.1).to_record(),
        "intervals": record_of_rule(rule),
        "hints": record_of_hints(hints),
    }
    found = recorded_options(json.loads(json.dumps(record)))
    low, high, decimals = hints
    assert (found["low"], found["high"], found["decimals"]) == (low, high, decimals)
    assert (found["quantile"], found["guarantee"]) == ([0.5, 0.9], dpf.ZCDP(rho=0.1))
    assert found["intervals"] == (rule is not None)
    assert rule is None or (found["confidence"], found["interval_of"]) == (0.9, "table")
    assert {name: found[name] for name in same} == same


def test_bases__leave_integers_out_where_hints_are_for_floats_alone() -> None:
    assert set(bases_of((None, None, None))) == set(bases_of((0, 9, None))) == {FLOATS.name, INTEGERS.name}
    assert set(bases_of((0, 9, 2))) == set(bases_of((0.2, 0.8, None))) == {FLOATS.name}
    base = bases_of((Fraction(1, 2), Decimal(9), None))[INTEGERS.name]
    assert (base.low, base.high) == (1, 9)


def test_bases__refuse_hints_that_leave_nothing() -> None:
    with pytest.raises(ParameterError, match="low and high"):
        bases_of((5, 4, None))
