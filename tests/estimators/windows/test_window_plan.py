"""The plan of a window: public, the same for all of them, and checked before anything is taken in."""

from typing import Any

import numpy as np
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS
from dpfrugal.estimators.windows.window_items import batch_of
from dpfrugal.estimators.windows.window_options import recorded_options
from dpfrugal.estimators.windows.window_plan import WindowPlan

OPTIONS: dict[str, Any] = {
    "rows_per_person": 1, "hold": 9, "sampled": "table", "neighbours": "replace", "intervals": True, "confidence": 0.9,
    "interval_of": "population", "windows": None, "nan_policy": "raise", "hints": (None, None, None),
}  # fmt: skip
ONE = dpf.PureDP(epsilon=1.0)


def test_plan__divides_by_windows_and_pays_for_a_sample() -> None:
    one, day = (WindowPlan.of(0.5, ONE, **OPTIONS | {"windows": windows}).plan for windows in (None, 24))
    assert one.slope == 24 * day.slope
    add, held = (
        WindowPlan.of(0.5, ONE, **OPTIONS | {"neighbours": "add-remove", "hold": hold}).plan for hold in (None, 9)
    )
    assert add.slope == 2 * held.slope, "one item more may push another one out"


def test_plan__records_what_makes_the_same_again() -> None:
    plan = WindowPlan.of([0.9, 0.5], ONE, **OPTIONS | {"hints": (0, 2.5, 1), "windows": 3})
    given = recorded_options(plan.record() | {"max_items_per_person": 1})
    assert (given["quantile"], given["guarantee"], given["windows"]) == ([0.9, 0.5], ONE, 3)
    assert (given["low"], given["high"], given["decimals"], given["confidence"]) == (0, 2.5, 1, 0.9)


def test_kind_with__is_that_of_what_batches_state() -> None:
    plan, decimal = (WindowPlan.of(0.5, ONE, **OPTIONS | {"hints": (None, None, d)}) for d in (None, 2))
    integers, floats = batch_of(np.arange(3), "raise"), batch_of([1.0], "raise")
    assert plan.kind_with(integers, None) is INTEGERS
    assert plan.kind_with(floats, INTEGERS) is FLOATS
    assert plan.kind_with(batch_of([], "raise"), INTEGERS) is INTEGERS
    assert decimal.kind_with(integers, None) is FLOATS, "decimals are a hint for floats alone"
    times = batch_of(np.arange(3).astype("timedelta64[s]"), "raise")
    assert plan.kind_with(times, None) is times.kind
    with pytest.raises(dpf.ItemTypeError, match="one type"):
        plan.kind_with(times, FLOATS)
    with pytest.raises(dpf.ParameterError, match="decimals"):
        decimal.kind_with(times, None)
