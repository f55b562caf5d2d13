"""Choices of many groups: bit for bit those of the readable twin, for all kinds of bases, rows and bits."""

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction
from operator import length_hint

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import (
    Base,
    base_of_decimals,
    base_of_doubles,
    base_of_integers,
    base_of_times,
)
from dpfrugal.estimators.table.base.codes import INFINITY, codes_of
from dpfrugal.estimators.table.choices import many_choices
from dpfrugal.estimators.table.choices.many_choices import Targets, choose_many, compiled
from dpfrugal.estimators.table.choices.mechanism import Choice, choose_code
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.kernels.bit_layout import WORDS
from dpfrugal.kernels.choices.base_masses import code_at, mass_between, number_between, places
from dpfrugal.kernels.choices.choose_regions import UNCERTAIN, chosen_by, number_below, part_of
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Point, Tape, by_floats
from tests.support.naive_table import statistics

LEAST, MOST = -(2**63), 2**63 - 1


def code(value: float) -> int:
    return int(codes_of(np.array([value], dtype=np.float64))[0])


OF_DOUBLES = {
    "doubles": base_of_doubles(),
    "doubles between": base_of_doubles().within(code(-3.5), code(1e6)),
    "doubles above": base_of_doubles().within(code(1e9), None),
    "doubles below": base_of_doubles().within(None, code(-1e-310)),
    "doubles between, twice": base_of_doubles().within(code(-1e3), code(1e6)).within(code(1.5), None),
    "cents": base_of_decimals(2),
    "cents between": base_of_decimals(2).within(code(1.0), code(20.0)),
    "many decimals": base_of_decimals(15),
}
OF_INTEGERS = {
    "integers": base_of_integers(),
    "integers above": base_of_integers().within(LEAST + 1, None),
    "integers between": base_of_integers().within(LEAST, MOST),
    "unsigned": base_of_integers(zero=LEAST),
    "dates": base_of_integers(-(2**31), 2**31 - 1),
    "times": base_of_times(LEAST + 1, MOST, (1, 10**6, 6 * 10**7, 36 * 10**8), MOST),
    "times between": base_of_times(LEAST + 1, MOST, (1, 1000, 60_000), 10**13).within(-5, 10**15),
}
SPECIAL = [0.0, -0.0, 5e-324, 1.0, 2.0, 7.25, -0.1, 12.99, 2.0**53, 9e14, 1.7976931348623157e308, math.inf, -math.inf]
doubles = st.one_of(st.sampled_from(SPECIAL), st.floats(allow_nan=False), st.integers(-30, 30)).map(code)
integers = st.one_of(
    st.integers(LEAST, MOST), st.integers(-20, 20), st.sampled_from([LEAST, LEAST + 1, MOST, 2**53 + 1])
)


def words(seed: int, groups: int, each: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, (groups, each), dtype=np.uint64)


def one_by_one(
    groups: Sequence[Sequence[int]], public: Choice, targets: Targets, drawn: NDArray[np.uint64]
) -> list[int | None]:
    """By the twin; None where the words did not suffice, so that new bits were drawn."""
    found: list[int | None] = []
    for at, rows in enumerate(groups):
        left = iter(drawn[at].tolist())
        answer = choose_code(statistics(rows), public, targets[at], Tape(left))
        found.append(answer if length_hint(left) else None)
    return found


def check(base: Base, groups: Sequence[Sequence[int]], slope: Fraction, targets: Targets, seed: int) -> None:
    public = Choice(base, slope, Fraction(seed % 5 - 2, 10))
    clipped = [sorted(min(max(row, base.low), base.high) for row in rows) for rows in groups]
    starts = np.cumsum([0, *(len(rows) for rows in clipped)])
    codes = np.array([row for rows in clipped for row in rows], dtype=np.int64)
    drawn = words(seed, len(groups), WORDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "words", lambda groups, each: drawn)
        many = choose_many(codes, starts, public, targets).tolist()
    expected = one_by_one(clipped, public, targets, drawn)
    assert all(answer in (None, found) for found, answer in zip(many, expected, strict=True))
    assert all(base.low <= answer <= base.high for answer in many)


@st.composite
def slopes_and_targets(draw: st.DrawFn, rows: Sequence[int]) -> tuple[Fraction, Targets]:
    denominator = draw(st.sampled_from([1, 2, 10, 1000, 10**18 + 9]))
    numerators = [draw(st.integers(0, denominator * number)) for number in rows]
    return draw(st.fractions(Fraction(1, 50), 40, max_denominator=10**6)), Targets(numerators, denominator)


@pytest.mark.parametrize("name", [*OF_DOUBLES, *OF_INTEGERS])
@settings(max_examples=15, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_choose_many__equals_one_choice_after_the_other(name: str, data: st.DataObject, seed: int) -> None:
    base = {**OF_DOUBLES, **OF_INTEGERS}[name]
    groups = data.draw(st.lists(st.lists(doubles if base.of_doubles else integers, max_size=12), max_size=6))
    slope, targets = data.draw(slopes_and_targets([len(rows) for rows in groups]))
    check(base, groups, slope, targets, seed)


def test_choose_many__windows_leave_out_far_rows_and_count_ties_beyond_them() -> None:
    """With a slope of 40 the cap is 2 rows: the window begins and ends among equal rows."""
    rows = [code(value) for value in [0.0] * 9 + [1.0, 2.5, 2.5, 3.0] + [4.0] * 9 + [5.0] * 3]
    for seed in range(20):
        for at in range(len(rows) + 1):
            check(OF_DOUBLES["doubles"], [rows, rows], Fraction(40), Targets([at, 3 * at], 3), seed)


def test_choose_many__uncertain_groups_are_left_to_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points on, beside and away from a boundary that is known exactly."""
    asked: list[int] = []

    def by_the_twin(rows: OrderStatistics, public: Choice, target: Fraction, bits: Bits) -> int:
        asked.append(1)
        return choose_code(rows, public, target, bits)

    monkeypatch.setattr(many_choices, "choose_code", by_the_twin)
    base = base_of_integers(-1, 1)  # masses 1, 1, 1: boundaries at thirds
    third = 2**64 // 3
    for point, uncertain in ((third, True), (third + 2**25, True), (third + 2**30, False), (2**63, False), (0, False)):
        asked.clear()
        drawn = np.full((1, WORDS), point, dtype=np.uint64)
        monkeypatch.setattr(choice, "words", lambda groups, each, drawn=drawn: drawn)
        found = choose_many(np.array([0]), np.array([0, 1]), Choice(base, Fraction(1, 10**15)), Targets([0], 1))
        assert bool(asked) == uncertain
        assert -1 <= int(found[0]) <= 1


def test_choose_many__too_few_words_are_continued_by_the_twin() -> None:
    """All words are 2^64 − 1: places are rejected until the words end."""
    base = base_of_integers(0, 2**62)
    drawn = np.full((3, WORDS), 2**64 - 1, dtype=np.uint64)
    drawn[:, :2] = 2**63
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "words", lambda groups, each: drawn)
        found = choose_many(
            np.zeros(0, dtype=np.int64), np.zeros(4, dtype=np.int64), Choice(base, Fraction(1)), Targets([0] * 3, 1)
        )
    assert all(0 <= answer <= 2**62 for answer in found.tolist())


@pytest.mark.parametrize("name", [*OF_DOUBLES, *OF_INTEGERS])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_masses__of_components_equal_those_of_the_twin(name: str, data: st.DataObject) -> None:
    """Cumulative masses are the same pairs, differences the same integers, and places lead to the same codes."""
    base = {**OF_DOUBLES, **OF_INTEGERS}[name]
    low, high = sorted(data.draw(st.tuples(*[doubles if base.of_doubles else integers] * 2)))
    low, high = (min(max(each, base.low), base.high) for each in (low, high))
    arrays = compiled(base)
    for index, component in enumerate(base.components):
        part = part_of(arrays.kinds, arrays.numbers, arrays.scales, index)
        with np.errstate(all="ignore"):
            found = [places(part, np.int64(end)) for end in (low, high)]
        pairs = [(np.int64(each[at]), np.uint64(each[at + 1])) for each in found for at in (0, 2)]
        below, upto = component.around(np.array([low, high]))
        assert pairs == [(each.high[at], each.low[at]) for at in (0, 1) for each in (below, upto)]
        first, last, bits = below.exact(0), upto.exact(1), np.uint64(below.bits)
        if first == last:
            continue
        with np.errstate(all="ignore"):
            upper, lower = number_between(*pairs[0], *pairs[3], bits)
            approximate = mass_between(*pairs[0], *pairs[3], bits)
        assert int(upper) << 64 | int(lower) == last - first
        assert abs(Fraction(float(approximate)) - (last - first)) <= Fraction(last - first, 2**50)
        for more in {0, last - first - 1, data.draw(st.integers(0, last - first - 1))}:
            with np.errstate(all="ignore"):
                answer = code_at(part, *pairs[0], np.uint64(more >> 64), np.uint64(more % 2**64))
            assert int(answer) == component.code(first + more)


@given(
    st.one_of(
        st.integers(1, 2**70), st.integers(0, 70).map(lambda e: 2**e), st.integers(1, 70).map(lambda e: 2**e - 1)
    ),
    st.integers(0, 2**32),
)
def test_number_below__equals_the_twin(count: int, seed: int) -> None:
    drawn = words(seed, 1, WORDS)[0]
    with np.errstate(all="ignore"):
        upper, lower, used = number_below(np.uint64(count >> 64), np.uint64(count % 2**64), drawn, 2)
    if used:
        assert int(upper) << 64 | int(lower) == choice.below(count, Tape(drawn[2:].tolist()))


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-30, 1e30)), min_size=1, max_size=9), st.integers(0, 2**64 - 1))
def test_chosen_by__has_the_margins_of_the_twin(weights: list[float], point: int) -> None:
    """At random points, and at and around every boundary."""
    total = math.fsum(weights)
    near = [int(sum(weights[: k + 1]) / total * 2**64) if total else 0 for k in range(len(weights))]
    around = [place + offset for place in near for offset in (0, -(2**26), 2**26, -(2**28), 2**28, -(2**40), 2**40)]
    for at in (point, *(place for place in around if 0 <= place < 2**64)):
        expected = by_floats(np.array(weights), Point(Tape([at])))
        found = chosen_by(np.array(weights), len(weights), np.uint64(at))
        assert found == (UNCERTAIN if expected is None else expected)


def test_words__are_taken_whole_and_from_the_top() -> None:
    first, second = (int.from_bytes(hashlib.sha256(name).digest()[:8]) for name in (b"one", b"two"))
    tape = Tape([first, second, first, second])
    assert tape(64) == first
    assert tape(3) == second >> 61
    assert tape(70) == (first << 64 | second) >> 58
    assert 0 <= tape(5) < 32
    assert code(math.inf) == INFINITY
