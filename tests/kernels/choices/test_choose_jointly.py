"""Several answers for many groups: bit for bit those of the readable twin, for all kinds of bases, rows and windows."""

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import length_hint

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import (
    base_of_decimals,
    base_of_doubles,
    base_of_integers,
    base_of_times,
)
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.choices import joint_choice, many_joint_choices
from dpfrugal.estimators.table.choices.joint_choice import JointChoice, choose_jointly
from dpfrugal.estimators.table.choices.many_joint_choices import WORDS_EACH, choose_many_jointly
from dpfrugal.estimators.table.choices.walk_sums import Room
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach
from dpfrugal.estimators.table.rows.stretches import GroupStretches, Windows
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Tape
from tests.support.naive_table import statistics

LEAST, MOST = -(2**63), 2**63 - 1
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


def code(value: float) -> int:
    return int(codes_of(np.array([value], dtype=np.float64))[0])


BASES = {
    "doubles": base_of_doubles(),
    "doubles between": base_of_doubles().within(code(-3.5), code(1e6)),
    "doubles of cents": base_of_doubles().towards(code(1e3 + 0.5), 3),
    "doubles in miles": base_of_doubles().towards(code(-7.7), 6),
    "doubles of all sorts": base_of_doubles().within(code(-3.5), None).towards(code(12.0), 12),
    "cents": base_of_decimals(2),
    "integers": base_of_integers(),
    "hours": base_of_times(LEAST + 1, MOST, (1, 60, 3600, 86400), MOST).towards(10**6, 1),
    "few integers": base_of_integers(0, 5),
    "times": base_of_times(LEAST + 1, MOST, (1, 10**6, 6 * 10**7, 36 * 10**8), MOST),
}
doubles = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, 1.0, 7.25, 12.99, 2.0**53, math.inf, -math.inf]), st.integers(-9, 9)
).map(code)
integers = st.one_of(st.integers(LEAST, MOST), st.integers(-9, 9))


def windows_of(groups: Sequence[Sequence[int]], reaches: Sequence[Reach] | None, quantiles: int) -> list[Windows]:
    """All rows of all groups for every quantile, or those that an engine would deliver."""
    starts = np.cumsum([0, *map(len, groups)])
    codes = np.array([row for rows in groups for row in rows], dtype=np.int64)
    nothing = np.zeros(len(groups), dtype=np.int64)
    if reaches is None:
        return [Windows(codes, starts, nothing)] * quantiles
    sizes = np.diff(starts)
    whole = GroupStretches(sizes, nothing + LEAST, nothing + MOST, nothing, codes, starts)
    return [whole.windows(reach.ranks(sizes)) for reach in reaches]


def check(public: JointChoice, groups: Sequence[Sequence[int]], seed: int, cut: bool = False) -> None:
    base, many = public.base, len(public.quantiles)
    groups = [sorted(min(max(row, base.low), base.high) for row in rows) for rows in groups]
    words = np.random.default_rng(seed).integers(0, 2**64, (len(groups), WORDS_EACH * many), dtype=np.uint64)
    reaches = [Reach(float(q), public.cap + 1.0, 0.0) for q in public.quantiles] if cut else None
    sizes = np.array([len(rows) for rows in groups], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "words", lambda groups, each: words)
        patch.setattr(joint_choice, "worth_loading", lambda work, least: False)
        windows = windows_of(groups, reaches, many)
        found = choose_many_jointly(windows, sizes, lambda group: statistics(groups[group]), public).tolist()
        for rows, answers, drawn in zip(groups, found, words, strict=True):
            left = iter(drawn.tolist())
            expected = list(choose_jointly(statistics(rows), public, Tape(left)))
            assert answers == expected or not length_hint(left), "the same bits, unless new ones had to be drawn"
            assert answers == sorted(answers)
            assert all(base.low <= answer <= base.high for answer in answers)


@pytest.mark.parametrize("name", BASES)
@settings(max_examples=12, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_choose_many_jointly__equals_one_group_after_the_other(name: str, data: st.DataObject, seed: int) -> None:
    """With quantiles whose ranks have fractions of all sorts, and caps so low that rows lie beyond them."""
    base = BASES[name]
    groups = data.draw(st.lists(st.lists(doubles if base.of_doubles else integers, max_size=25), max_size=5))
    denominator = data.draw(st.sampled_from([10, 1000, 10**15 + 37]))
    parts = data.draw(st.sets(st.integers(1, denominator - 1), min_size=2, max_size=5))
    asked = tuple(Fraction(part, denominator) for part in sorted(parts))
    slope = data.draw(st.fractions(Fraction(1, 50), 40, max_denominator=10**6))
    check(JointChoice(base, asked, slope), groups, seed, cut=data.draw(st.booleans()))


def test_choose_many_jointly__needs_no_row_beyond_its_windows() -> None:
    """Ties that begin or end outside of a window, or reach from one window into the next."""
    rng, base = np.random.default_rng(4), BASES["integers"]
    public = JointChoice(base, (Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)), Fraction(40))
    assert public.cap == 3
    for spread in (2, 5, 40):
        groups = [rng.integers(0, spread, size).tolist() for size in (10, 33, 60, 61, 100)]
        for seed in range(8):
            check(public, groups, seed, cut=True)


def test_choose_many_jointly__makes_room_for_all_states(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Scarce(Room):
        def __init__(self, states: int) -> None:
            asked.append(states)
            super().__init__(states if len(asked) > 1 else 8)

    monkeypatch.setattr(many_joint_choices, "Room", Scarce)
    groups = [np.arange(number).tolist() for number in (3, 40, 70)]
    check(JointChoice(BASES["integers"], DECILES, Fraction(1, 4)), groups, 1)
    assert len(asked) > 2


def test_choose_many_jointly__uncertain_groups_are_left_to_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """One place, three answers for each of two quantiles: a point on a boundary, and points away from it."""
    asked: list[int] = []

    def by_the_twin(rows: OrderStatistics, public: JointChoice, bits: Bits) -> tuple[int, ...]:
        asked.append(1)
        return choose_jointly(rows, public, bits)

    monkeypatch.setattr(many_joint_choices, "choose_jointly", by_the_twin)
    public = JointChoice(base_of_integers(0, 1), (Fraction(1, 3), Fraction(2, 3)), Fraction(1, 10**15))
    # 0 with 0 and 1 with 1 have a half each, 0 with 1 has one: a row at 0 leaves it and a gap above it.
    for point, uncertain in ((2**62, True), (2**62 + 2**20, True), (2**62 + 2**40, False), (2**63, False)):
        asked.clear()
        words = np.full((1, 2 * WORDS_EACH), point, dtype=np.uint64)
        monkeypatch.setattr(choice, "words", lambda groups, each, words=words: words)
        windows = windows_of([[0]], None, 2)
        found = choose_many_jointly(windows, np.array([1]), lambda _: statistics([0]), public)
        assert bool(asked) == uncertain
        assert {0, 1} >= set(found.ravel().tolist())
