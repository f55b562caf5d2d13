"""One choice against its definition, and its draws against its weights."""

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import base_of_doubles
from dpfrugal.estimators.table.base.codes import codes_of, doubles_of
from dpfrugal.estimators.table.choices import mechanism
from dpfrugal.estimators.table.choices.mechanism import Choice, Scores, choose_code
from dpfrugal.privacy import choice
from tests.support.naive_table import SMALL_WORLD, drawn, naive, statistics
from tests.support.statistics import FALSE_ALARM

HALF = Fraction(1, 2)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 6), max_size=12),
    st.integers(1, 5),
    st.integers(0, 12),
    st.sampled_from([Fraction(1, 3), Fraction(1), 75]),
    st.sampled_from([Fraction(0), Fraction(1, 5), Fraction(-1, 10)]),
)
def test_choice__is_the_definition_one_answer_at_a_time(
    rows: list[int], steepness: int, share: int, cap: Fraction, lean: Fraction
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanism, "CAP", cap)  # so low that rows lie beyond it
        public, target = Choice(SMALL_WORLD, Fraction(1, steepness), lean), Fraction(share, 12) * len(rows)
        expected, found = naive(rows, public, target), drawn(statistics(rows), public, target)
        assert found.keys() == expected.keys()
        for code, probability in expected.items():
            assert abs(found[code] / probability - 1) < 1e-50


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, 1.0, 2.5, 5e-324])), max_size=40),
    st.integers(1, 40),
    st.data(),
)
def test_choice__floats_are_close_to_exact_weights(values: list[float], steepness: int, data: st.DataObject) -> None:
    """For targets that are no round numbers."""
    rows = statistics(codes_of(np.array(values, dtype=np.float64)).tolist())
    target = Fraction(data.draw(st.integers(0, 10**15)), 10**15) * len(values)
    scores = Scores(rows, Choice(base_of_doubles(), Fraction(1, steepness), Fraction(1, 7)), target)
    for weight, approximate in zip(scores.exact(), scores.approximate.tolist(), strict=True):
        exact = float(weight.to_decimal(30))
        assert abs(approximate - exact) <= choice.FLOAT_ERROR / 8 * exact


def test_choose_code__draws_the_distribution_and_no_other() -> None:
    rows, target = [0, 1, 1, 3, 3, 3, 4, 6], Fraction(9, 2)
    public = Choice(SMALL_WORLD, Fraction(1, 2))
    exact = naive(rows, public, target)
    number = 6000
    draws = Counter(choose_code(statistics(rows), public, target) for _ in range(number))
    assert draws.keys() <= exact.keys()

    def p_value(chances: dict[int, float]) -> float:
        statistic = sum((draws[code] - number * each) ** 2 / (number * each) for code, each in chances.items())
        return float(mpmath.gammainc((len(chances) - 1) / 2, statistic / 2, mpmath.inf, regularized=True))

    assert p_value({code: float(each) for code, each in exact.items()}) > FALSE_ALARM
    other = naive(rows, public, target + 1)
    assert p_value({code: float(other[code]) for code in exact}) < FALSE_ALARM, "a rank one row off must be noticed"


def test_choose_code__order_of_rows_cannot_matter() -> None:
    rows, public = [5, 0, 3, 3, 1], Choice(SMALL_WORLD, HALF)
    orders = (rows, sorted(rows), sorted(rows, reverse=True))
    one, *others = (drawn(statistics(order), public, Fraction(2)) for order in orders)
    assert all(other == one for other in others)


def test_choose_code__looks_at_no_row_beyond_the_cap() -> None:
    near = [float(x) for x in range(1000)]
    public = Choice(base_of_doubles(), Fraction(1, 2))
    far = [-1e9 * x for x in range(200)] + near[200:800] + [1e9 + x for x in range(200)]
    weights = [
        Scores(statistics(codes_of(np.array(rows)).tolist()), public, Fraction(500)).exact() for rows in (near, far)
    ]
    assert public.cap == 150
    assert weights[0] == weights[1]


def test_choose_code__is_three_rows_off() -> None:
    """2.83 rows where the base is even; a false alarm is rarer than once in a million."""
    values = np.random.default_rng(1).lognormal(3, 1, 2001)
    rows, public = statistics(codes_of(values).tolist()), Choice(base_of_doubles(), HALF)
    errors = []
    for _ in range(300):
        below, upto = rows.counts(choose_code(rows, public, HALF * 2001))
        errors.append(max(below - 1000.5, 1000.5 - upto, 0))
    assert 1.5 < math.sqrt(np.mean(np.square(errors))) < 4.5
    assert np.median(doubles_of(codes_of(values))) == np.median(values)


def test_choose_code__an_empty_table_gives_a_number_of_the_base() -> None:
    code = choose_code(statistics([]), Choice(base_of_doubles(), HALF), Fraction(0))
    assert not math.isnan(doubles_of(np.array([code]))[0])
