"""Choices of many groups: their targets, the arrays of a base, and what the twin is left to do."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import (
    base_of_decimals,
    base_of_doubles,
    base_of_integers,
    base_of_times,
)
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.choices import many_choices
from dpfrugal.estimators.table.choices.many_choices import Targets, choose_many, compiled
from dpfrugal.estimators.table.choices.mechanism import Choice


@given(st.lists(st.integers(0, 10**30), min_size=1, max_size=5), st.integers(1, 10**20))
def test_targets__are_whole_ranks_and_what_lies_above_them(numerators: list[int], denominator: int) -> None:
    small = [number % (denominator * 10**9) for number in numerators]
    targets = Targets(small, denominator)
    floors, ceilings, rests = targets.parts(0, len(small))
    for group, (floor, ceiling, rest) in enumerate(
        zip(floors.tolist(), ceilings.tolist(), rests.tolist(), strict=True)
    ):
        exact = targets[group]
        assert floor <= exact <= ceiling
        assert ceiling - floor == (exact.denominator > 1)
        assert rest == pytest.approx(float(exact - floor), abs=1e-12)


@pytest.mark.parametrize(
    "base",
    [
        base_of_doubles(),
        base_of_doubles().within(0, 10**18),
        base_of_doubles().towards(codes_of(np.array([1e3])).item(), 3),
        base_of_doubles().towards(codes_of(np.array([-1e9])).item(), 12),
        base_of_decimals(2),
        base_of_times(-(2**40), 2**40, (60, 3600), 2**39),
    ],
)
def test_compiled__has_an_entry_for_each_component(base: object) -> None:
    arrays = compiled(base)  # type: ignore[arg-type]
    parts = base.components  # type: ignore[attr-defined]
    assert {len(each) for each in vars(arrays).values()} == {len(parts)}
    assert arrays.weights.tolist() == [float(part.weight) for part in parts]


def test_choose_many__answers_each_group_from_its_own_rows_and_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slope of 30 per row: an answer three rows off has a chance below e^-90 each."""
    monkeypatch.setattr(many_choices, "AT_ONCE", 7)
    sizes = [41] * 20
    starts = np.cumsum([0, *sizes])
    codes = np.concatenate([1000 * group + np.arange(41) for group in range(20)])
    done = list[int]()
    targets = Targets(list(sizes), 2)
    found = choose_many(codes, starts, Choice(base_of_integers(), Fraction(30)), targets, done.append)
    assert (np.abs(found - (1000 * np.arange(20) + 20)) <= 3).all()
    assert done == [7, 14, 20]
