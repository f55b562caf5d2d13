"""Answers of groups: values in order, intervals around them, and noisy numbers of rows."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpfrugal as dpf
from dpfrugal.estimators.table.base.kinds import INTEGERS, hinted
from dpfrugal.estimators.table.choices import group_answers
from dpfrugal.estimators.table.choices.group_answers import answer_groups, rounded_down
from dpfrugal.estimators.table.choices.intervals import IntervalRule
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows

ROWS = 401
STRONG = dpf.PureDP(epsilon=2000.0)  # so weak a promise that answers are within a row or two
DECILES = tuple(Fraction(k, 10) for k in range(1, 10))


def grouped(groups: int = 3) -> GroupedRows:
    codes = np.concatenate([10_000 * group + np.arange(ROWS) for group in range(groups)])
    starts = ROWS * np.arange(groups + 1)
    return GroupedRows(INTEGERS, {"key": pa.array(range(groups))}, codes.size, starts, codes)


def asked(quantiles: tuple[Fraction, ...], guarantee: Any = STRONG, **options: Any) -> Any:
    return plan_of(Asked(quantiles=quantiles, guarantee=guarantee, grouped=True, **options))


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("quantiles", [(Fraction(1, 2),), DECILES])
def test_answer_groups__values_are_near_their_ranks_and_in_order(
    quantiles: tuple[Fraction, ...], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_answers, "FEW_GROUPS", few)
    told = list[tuple[int, int]]()
    plan = asked(quantiles, intervals=IntervalRule(0.95, "population"), counts=True)
    found = answer_groups(grouped(), plan, INTEGERS.base, lambda done, of: told.append((done, of)))
    wanted = 10_000 * np.arange(3)[:, None] + np.array([float(q) * ROWS for q in quantiles])
    assert (np.abs(found.values - wanted) <= 3).all()
    assert (np.diff(found.values, axis=1) >= 0).all()
    assert ((found.lower <= found.values) & (found.values <= found.upper)).all()
    assert found.bounded.all()
    assert found.rows is not None
    assert (np.abs(found.rows - ROWS) <= 2).all()
    assert told[-1] == (3 * len(quantiles) * 2, 3 * len(quantiles) * 2)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_answer_groups__rows_beyond_public_hints_count_as_the_hints() -> None:
    plan = asked((Fraction(1, 2),))
    found = answer_groups(grouped(), plan, hinted(INTEGERS, 100, 10_100, None))
    assert found.values[0, 0] == pytest.approx(200, abs=3)
    assert found.values[1, 0] >= 10_098
    assert found.values[2, 0] >= 10_098
    assert found.rows is None


def test_answer_groups__numbers_of_rows_are_never_negative() -> None:
    """Noise of scale 10 or so on groups of no rows: of 60 numbers all are positive once in 2^50."""
    empty = GroupedRows(INTEGERS, {"key": pa.array(range(60))}, 0, np.zeros(61, dtype=np.int64), np.zeros(0, np.int64))
    found = answer_groups(empty, asked((Fraction(1, 2),), dpf.PureDP(epsilon=1), counts=True), INTEGERS.base)
    assert found.rows is not None
    assert found.rows.min() == 0


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(1, 10), Fraction(1, 2), Fraction(10**20 + 1, 10**20)])
def test_rounded_down__is_the_largest_float_that_is_no_larger(number: Fraction) -> None:
    found = rounded_down(number)
    assert Fraction(found) <= number < Fraction(np.nextafter(found, np.inf))
