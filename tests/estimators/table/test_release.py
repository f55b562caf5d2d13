"""What a release of a table shows: values, intervals, doubts, and nothing that is private."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.display.shown_values import shown_value
from dpfrugal.estimators.table.release import unit_of

RNG = np.random.default_rng(11)
FLOATS = RNG.lognormal(3, 1, 5001)
WHOLE = RNG.integers(-50, 1000, 5001)
ONE = dpf.PureDP(epsilon=1)


def test_release__shows_what_is_public_and_no_more() -> None:
    release = dpf.private_quantiles(FLOATS, 0.5, ONE, intervals=False)
    assert isinstance(release, dpf.Release)
    assert release.rows_off(0.05) == pytest.approx(2 * math.log(20))
    assert str(release).endswith(", ε=1 per row replaced, 5,001 rows")
    record = json.loads(json.dumps(release.to_dict()))
    assert record["neighbours"] == "replace-one"
    assert record["value"] == release.value
    private = dpf.private_quantiles(WHOLE, [0.5, 0.9], ONE, neighbours="add-remove")
    assert str(private).endswith("ε=1 per row added or removed")
    assert private.to_dict()["items"] is None
    assert private.to_dict()["neighbours"] == "add-or-remove-one"
    assert "5001" not in repr(private)


def test_release__times_are_text_in_json() -> None:
    stamped = dpf.private_quantiles(np.array(["2024-01-05"] * 999, "M8[s]"), 0.5, dpf.PureDP(epsilon=20))
    record = json.loads(json.dumps(stamped.to_dict()))
    assert record["value"].startswith("2024-01-05")
    assert record["intervals"][0][0].startswith("2024-01-05")


def test_release__intervals_hold_their_values() -> None:
    for data in (FLOATS, WHOLE):
        release = dpf.private_quantiles(data, [0.9, 0.5, 0.1], ONE)
        for value, (low, high) in zip(release.values, release.intervals(0.95), strict=True):
            assert low <= value <= high
            assert type(low) is type(high) is type(value)
        assert release.interval(0.95) == release.intervals()
        assert list(release.values) == sorted(release.values, reverse=True)
        assert release.confidence == 0.95
        assert release.interval_of == "population"


def test_release__an_interval_of_another_confidence_is_refused() -> None:
    release = dpf.private_quantiles(FLOATS, 0.5, ONE, confidence=0.9)
    low, high = release.interval(0.9)
    assert low <= release.value <= high
    with pytest.raises(dpf.ParameterError, match=r"confidence must be 0\.9, as in the call"):
        release.interval(0.95)
    with pytest.raises(dpf.ParameterError, match="intervals=True"):
        dpf.private_quantiles(FLOATS, 0.5, ONE, intervals=False).interval()


def test_release__states_what_the_parts_cost() -> None:
    assert dpf.private_quantiles(FLOATS, 0.5, ONE).shares == {"values": 0.5, "intervals": 0.5}
    assert dpf.private_quantiles(FLOATS, 0.5, ONE, intervals=False).shares == {"values": 1.0}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_release__a_small_table_says_so_and_has_no_ends(neighbours: Any) -> None:
    release = dpf.private_quantiles(FLOATS[:20], [0.5, 0.99], ONE, neighbours=neighbours)
    assert release.intervals() == ((-math.inf, math.inf),) * 2
    assert all(reason and "too few rows" in reason for reason in release.reasons)
    assert "too few rows for q=0.99" in str(release)
    assert json.loads(json.dumps(release.to_dict()))["intervals"] == [[None, None], [None, None]]
    times = dpf.private_quantiles(np.array(["2024-01-05"] * 9, "M8[s]"), 0.5, ONE, neighbours=neighbours)
    assert times.interval() == (None, None)


def test_release__without_intervals_a_small_table_says_so_where_its_size_is_public() -> None:
    release = dpf.private_quantiles(FLOATS[:20], [0.5, 0.99], ONE, intervals=False)
    assert all(reason and "there are 20" in reason for reason in release.reasons)
    assert dpf.private_quantiles(FLOATS, 0.5, ONE, intervals=False).reasons == (None,)


@pytest.mark.parametrize(
    ("value", "width", "shown"),
    [
        (7, None, "7"),
        (7.0, None, "7"),
        (0.1 + 0.2, None, "0.3"),
        (12.99, 0.0, "12.99"),
        (1234567.891, 0.02, "1234567.891"),
        (1234567.891234, 500.0, "1234568"),
        (40.01234567, 0.0005, "40.012346"),
        (-math.inf, math.inf, "-inf"),
    ],
)
def test_shown_value__has_the_digits_that_an_interval_can_tell(value: Any, width: float | None, shown: str) -> None:
    assert shown_value(value, width) == shown


@pytest.mark.parametrize(
    ("limits", "has_persons", "expected"),
    [
        ((1, None), False, "row"),
        ((1, None), True, "person of ≤ 1 row"),
        ((3, None), False, "person of ≤ 3 rows"),
        ((3, 2), True, "person of ≤ 3 rows in each of ≤ 2 keys"),
    ],
)
def test_unit_of__says_whose_change_is_hidden(limits: tuple[int, int | None], has_persons: bool, expected: str) -> None:
    assert unit_of(*limits, has_persons=has_persons) == expected


def test_release__of_rows_with_persons_names_the_person() -> None:
    rows = pa.table({"ms": np.arange(4_000) % 90, "user": np.arange(4_000) // 2})
    one = dpf.PureDP(epsilon=1.0)
    assert dpf.private_quantiles(rows, 0.5, one, column="ms").unit == "row"
    assert dpf.private_quantiles(rows, 0.5, one, column="ms", person="user").unit == "person of ≤ 1 row"
    grouped = dpf.quantiles_by(rows, "ms", 0.5, one, by="ms", keys=[1], person="user")
    assert grouped.schema.metadata[b"unit"].decode() == "person of ≤ 1 row"
    assert {each.unit for each in dpf.describe(rows, one, person="user").columns.values()} == {"person of ≤ 1 row"}


def test_release__of_enough_rows_whose_interval_is_unbounded_does_not_say_too_few() -> None:
    rows = np.repeat([1.0, np.inf], [499, 500])  # half-way between one and infinity
    reasons = [dpf.private_quantiles(rows, 0.5, ONE).reasons[0] for _ in range(20)]
    assert any(reasons)
    assert all("no bounded interval holds q=0.5" in reason for reason in reasons if reason)
