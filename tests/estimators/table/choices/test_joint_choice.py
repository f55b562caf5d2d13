"""Several answers against their definition, their draws against their weights, and floats against decimals."""

import math
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import base_of_decimals, base_of_doubles
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.choices import joint_choice
from dpfrugal.estimators.table.choices.joint_choice import Joint, JointChoice, choose_jointly
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Point, Tape, by_digits, by_floats
from tests.support.naive_table import SMALL_WORLD, drawn_jointly, naive_jointly, statistics
from tests.support.statistics import FALSE_ALARM

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
THREE = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
quantiles = st.sets(st.fractions(Fraction(1, 20), Fraction(19, 20)), min_size=2, max_size=3).map(
    lambda found: tuple(sorted(found))
)
values = st.one_of(st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, 1.0, 2.5, 5e-324, -math.inf, math.inf]))


@pytest.fixture(params=[False, True], ids=["readable", "compiled"])
def compiled(request: pytest.FixtureRequest) -> Iterator[bool]:
    with with_levels(request.param):
        yield request.param


@contextmanager
def with_levels(compiled: bool) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_choice, "worth_loading", lambda work, least: compiled)
        yield patch


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 4), max_size=8),
    quantiles,
    st.integers(1, 5),
    st.sampled_from([(0, 0), (0, 1), (30, 45)]),
    st.booleans(),
)
def test_joint_choice__is_the_definition_one_transcript_at_a_time(
    rows: list[int], asked: tuple[Fraction, ...], steep: int, caps: tuple[int, int], compiled: bool
) -> None:
    """With caps so low that rows lie beyond them, too."""
    with with_levels(compiled) as patch:
        patch.setattr(joint_choice, "CAP", caps[0])
        patch.setattr(joint_choice, "CAP_OF_EACH", caps[1])
        public = JointChoice(replace(SMALL_WORLD, high=4), asked, Fraction(1, steep))
        expected, found = naive_jointly(rows, public), drawn_jointly(statistics(rows), public)
        assert found.keys() == expected.keys()
        for answers, probability in expected.items():
            assert abs(found[answers] / probability - 1) < 1e-50


@settings(max_examples=25, deadline=None)
@given(st.lists(values, max_size=30), st.integers(1, 40), st.integers(2, 5), st.booleans(), st.data())
def test_joint_choice__floats_are_as_close_to_exact_weights_as_they_say(
    rows: list[float], steep: int, number: int, compiled: bool, data: st.DataObject
) -> None:
    """With targets that are no round numbers; states are the same, whether compiled or not."""
    parts = sorted(data.draw(st.sets(st.integers(1, 10**15 - 1), min_size=number, max_size=number)))
    public = JointChoice(base_of_doubles(), tuple(Fraction(part, 10**15) for part in parts), Fraction(1, steep))
    with with_levels(compiled):
        joint = Joint(statistics(codes_of(np.array(rows, dtype=np.float64)).tolist()), public)
        exact = joint._exact_levels(40)
        for answer, (level, states) in enumerate(zip(joint.levels, exact, strict=True)):
            assert [each.region for each in states] == level.regions.tolist()
            assert [each.first for each in states] == level.sources.tolist()
            assert [each.last for each in states] == level.source_ends.tolist()
            scale = level.scale + joint._mass_scale * answer
            for weight, state in zip(level.weights.tolist(), states, strict=True):
                expected = Fraction(state.weight) / Fraction(2) ** scale
                assert abs(Fraction(weight) - expected) <= level.error * expected + Fraction(level.lost)
            assert level.error < 2.0**-36


def test_joint_choice__digits_decide_as_floats_do(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever floats are certain of, decimals say too, at the same point."""
    certain = Counter[bool]()

    def by_both(approximate: Any, exactly: Any, bits: Bits | None = None, margin: float = 0.0) -> int:
        point = Point(bits or secrets.randbits)
        index, exact = by_floats(approximate, point, margin), by_digits(exactly(), point)
        assert index in (None, exact)
        certain[index is not None] += 1
        return exact

    monkeypatch.setattr(choice, "choose", by_both)
    rng, asked = np.random.default_rng(8), (Fraction(1, 4), Fraction(1, 3), Fraction(9, 10))
    tables = [rng.lognormal(1, 1, 40), np.round(rng.exponential(2, 60)), np.zeros(5), np.zeros(0)]
    for table in tables:
        rows = statistics(codes_of(table).tolist())
        joint = Joint(rows, JointChoice(base_of_doubles(), asked, Fraction(3)))
        for _ in range(20):
            joint.draw()
    assert certain[True] > 100 * certain[False]


def test_choose_jointly__draws_the_distribution_and_no_other(compiled: bool) -> None:
    rows = [0, 1, 1, 3, 3, 3, 4, 6]
    public = JointChoice(SMALL_WORLD, (Fraction(1, 3), Fraction(3, 4)), Fraction(1, 2))
    number = 4000
    joint = Joint(statistics(rows), public)
    draws = Counter(codes for _ in range(number) if (codes := joint.draw()) is not None)

    def p_value(chances: dict[tuple[int, ...], float]) -> float:
        often = {answers: each for answers, each in chances.items() if number * each >= 2}
        statistic = sum((draws[answers] - number * each) ** 2 / (number * each) for answers, each in often.items())
        return float(mpmath.gammainc(len(often) / 2, statistic / 2, mpmath.inf, regularized=True))

    def chances(table: list[int]) -> dict[tuple[int, ...], float]:
        return {answers: float(each) for answers, each in naive_jointly(table, public).items()}

    assert draws.keys() <= chances(rows).keys()
    assert p_value(chances(rows)) > FALSE_ALARM
    assert p_value(chances([0, 1, 1, 3, 3, 3, 4, 4])) < FALSE_ALARM, "another row must be noticed"


def test_choose_jointly__order_of_rows_cannot_matter() -> None:
    rows, public = [5, 0, 3, 3, 1], JointChoice(SMALL_WORLD, (Fraction(1, 3), Fraction(3, 4)), Fraction(1, 2))
    orders = (rows, sorted(rows), sorted(rows, reverse=True))
    one, *others = (drawn_jointly(statistics(order), public) for order in orders)
    assert all(other == one for other in others)


def test_choose_jointly__looks_at_no_row_beyond_the_cap() -> None:
    near = [float(x) for x in range(1000)]
    public = JointChoice(base_of_doubles(), (Fraction(1, 2), Fraction(3, 5)), Fraction(1))
    far = [-1e9 * x for x in range(400)] + near[400:700] + [1e9 + x for x in range(300)]
    assert public.cap == 60
    words = np.random.default_rng(3).integers(0, 2**62, 100).tolist()
    drawn = [choose_jointly(statistics(codes_of(np.array(rows)).tolist()), public, Tape(words)) for rows in (near, far)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(("asked", "most"), [(THREE, 9.0), (DECILES, 15.0)])
def test_choose_jointly__is_as_near_as_documented(asked: tuple[Fraction, ...], most: float) -> None:
    """About 5 and 10 rows; of 60 tables the root mean square exceeds 1.5 times that less than once in a million."""
    rng, n, slope = np.random.default_rng(1), 4000, Fraction(1, 4)
    errors = []
    for _ in range(60):
        values = rng.lognormal(3, 1, n)
        rows = statistics(codes_of(values).tolist())
        codes = choose_jointly(rows, JointChoice(base_of_doubles(), asked, slope))
        counts = [rows.counts(code) for code in codes]
        errors.append([max(low - q * n, q * n - high, 0) for q, (low, high) in zip(asked, counts, strict=True)])
    found = np.sqrt(np.mean(np.square(np.array(errors, dtype=np.float64)), axis=0))
    assert found.max() < most
    assert found.max() > most / 6, "not nearer than is private"


@pytest.mark.parametrize("rows", [[], [0.5], [0.5, 0.7]])
def test_choose_jointly__where_no_answer_is_near_any_is_drawn(rows: list[float], compiled: bool) -> None:
    """Between the rows are no whole numbers: answers are chosen regardless of rows, in order."""
    codes = codes_of(np.array(rows * 1000, dtype=np.float64)).tolist()
    base = base_of_decimals(0).within(int(codes_of(np.array([0.2]))[0]), int(codes_of(np.array([9.0]))[0]))
    found = choose_jointly(statistics(codes), JointChoice(base, THREE, Fraction(1, 4)))
    assert list(found) == sorted(found)
