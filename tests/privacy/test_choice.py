"""The exact choice against its definition: enumerated, at forced fallbacks, and by chi-square with a leg that fails."""

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Computed, Point, Ranges, Weight, below, by_digits, by_floats, choose, slope
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dpfrugal.privacy.zcdp_conversions import rho_for
from tests.support.statistics import FALSE_ALARM

HALF = Fraction(1, 2)


class Script:
    """The bits of one given point, then zeros."""

    def __init__(self, numerator: int, length: int) -> None:
        self.numerator, self.length = numerator, length

    def __call__(self, count: int) -> int:
        taken = min(count, self.length)
        self.length -= taken
        bits = self.numerator >> self.length & ((1 << taken) - 1)
        return bits << (count - taken)


def value(weight: Weight) -> mpmath.mpf:
    exponent = mpmath.mpf(weight.exponent.numerator) / weight.exponent.denominator
    return weight.mass * mpmath.exp(-exponent)


def index_at(weights: Sequence[Weight], numerator: int, length: int) -> int:
    """By the definition, at 200 digits."""
    with mpmath.workdps(200):
        total, sum_so_far = mpmath.fsum(map(value, weights)), mpmath.mpf(0)
        point = mpmath.mpf(numerator) / mpmath.mpf(2) ** length * total
        for index, weight in enumerate(weights):
            sum_so_far += value(weight)
            if point < sum_so_far:
                return index
    raise AssertionError("the point is below the total")


def floats(weights: Sequence[Weight]) -> np.ndarray:
    return np.array([float(value(weight)) for weight in weights])


fractions = st.builds(Fraction, st.integers(0, 10**6), st.integers(1, 10**5))
weights_of_any_kind = st.lists(
    st.builds(Weight, st.one_of(st.integers(0, 5), st.integers(0, 2**150)), fractions),
    min_size=1,
    max_size=6,
).filter(lambda weights: any(weight.mass for weight in weights))


# Bits that follow those a test chooses: after zeros only, a point could lie on a boundary for ever.
TAIL, TAIL_LENGTH = int.from_bytes(hashlib.sha512(b"any bits").digest()), 512


@given(weights_of_any_kind, st.integers(0, 2**64 - 1))
def test_choose__is_the_definition_at_every_point(weights: list[Weight], first_bits: int) -> None:
    numerator, length = first_bits << TAIL_LENGTH | TAIL, 64 + TAIL_LENGTH
    expected = index_at(weights, numerator, length)
    assert by_digits(weights, Point(Script(numerator, length))) == expected
    assert choose(floats(weights), lambda: weights, Script(numerator, length)) == expected
    forced = by_floats(floats(weights), Point(Script(numerator, length)), margin=1.0)
    assert forced is None or len(weights) == 1, "a margin of everything leaves the decision to the digits"


@given(weights_of_any_kind, st.integers(10, 60))
def test_weight__has_the_digits_that_it_promises(weights: list[Weight], digits: int) -> None:
    with mpmath.workdps(150):
        for weight in weights:
            exact, given_ = value(weight), mpmath.mpf(str(weight.to_decimal(digits)))
            assert abs(given_ - exact) <= exact * mpmath.mpf(10) ** -digits


def test_choose__a_point_on_a_boundary_asks_for_more_bits_until_one_decides() -> None:
    weights = [Weight(5, HALF), Weight(5, HALF)]
    for last in (0, 1):
        # 0.1000…0 with a 1 or a 0 at the end: two equal weights meet at exactly one half.
        bits = Script((1 << 999 | last) - (1 - last), 1000)
        assert choose(floats(weights), lambda: weights, bits) == last
        assert bits.length == 0


def test_choose__beside_a_boundary_floats_leave_it_to_the_digits() -> None:
    weights = [Weight(1, Fraction(0)), Weight(1, Fraction(1)), Weight(0, Fraction(0)), Weight(7, Fraction(3, 7))]
    with mpmath.workdps(60):
        total = mpmath.fsum(map(value, weights))
        for boundary in itertools.accumulate(map(value, weights[:-2])):
            exact = int(mpmath.floor(boundary / total * 2**64))
            for numerator in range(exact - 3, exact + 4):
                assert by_floats(floats(weights), Point(Script(numerator, 64))) is None
                assert by_digits(weights, Point(Script(numerator, 64))) == index_at(weights, numerator, 64)


def test_choose__weights_beyond_floats_are_left_to_the_digits() -> None:
    weights = [Weight(1, Fraction(10**7)), Weight(3, Fraction(10**7))]
    for numerator, expected in ((0, 0), (1 << 60, 0), (1 << 63, 1)):
        assert choose(np.zeros(2), lambda: weights, Script(numerator, 64)) == expected


def test_choose__enumerated_over_few_bits_has_exact_probabilities() -> None:
    weights = [Weight(1, Fraction(0)), Weight(2, Fraction(0)), Weight(5, Fraction(0))]
    points = (Script(point << TAIL_LENGTH | TAIL, 8 + TAIL_LENGTH) for point in range(256))
    chosen = Counter(choose(floats(weights), lambda: weights, point) for point in points)
    assert chosen == {0: 32, 1: 64, 2: 160}


def p_value(observed: Sequence[int], expected: Sequence[float]) -> float:
    total = sum(observed)
    statistic = sum((o - total * e) ** 2 / (total * e) for o, e in zip(observed, expected, strict=True))
    return float(mpmath.gammainc((len(observed) - 1) / 2, statistic / 2, mpmath.inf, regularized=True))


@pytest.mark.parametrize("fallback", [False, True])
def test_choose__draws_the_distribution_and_no_other(fallback: bool) -> None:
    weights = [Weight(3, Fraction(0)), Weight(10, Fraction(1)), Weight(4, Fraction(1, 3)), Weight(0, HALF)]
    approximate = np.zeros(4) if fallback else floats(weights)
    draws = Counter(choose(approximate, lambda: weights) for _ in range(6_000 if fallback else 20_000))
    exact = floats(weights)[:3] / floats(weights).sum()
    assert set(draws) <= {0, 1, 2}
    observed = [draws[index] for index in range(3)]
    assert p_value(observed, exact) > FALSE_ALARM
    off = exact * np.exp([0.0, 0.3, 0.0])
    assert p_value(observed, off / off.sum()) < FALSE_ALARM, "a wrong exponent must be noticed"


def test_below__is_uniform_and_certain_for_one_number() -> None:
    assert below(1) == 0
    assert Counter(below(5, Script(point, 3)) for point in range(5)) == dict.fromkeys(range(5), 1)


def test_choose__a_margin_of_the_caller_counts_where_it_is_larger() -> None:
    """A computed weight decides where float sums may be off by more than floats are."""
    weights = [Weight(1, Fraction(0)), Weight(1, Fraction(0))]
    exact = [Computed(weight.to_decimal) for weight in weights]
    beside = Script(int(2**64 * 0.501), 64)
    assert choose(np.array([0.998, 1.0]), lambda: exact, beside, margin=0.01) == 1
    assert by_floats(np.array([0.998, 1.0]), Point(Script(int(2**64 * 0.501), 64)), margin=0.01) is None
    assert by_floats(np.array([0.998, 1.0]), Point(Script(int(2**64 * 0.501), 64))) == 1


ranges = st.builds(lambda a, b: Ranges(Fraction(a, 7), Fraction(b, 49)), st.integers(1, 500), st.integers(1, 500))
small = st.floats(1e-9, 50.0)


@given(ranges, small)
def test_slope__spends_the_guarantee_and_no_more(of: Ranges, budget: float) -> None:
    assert slope(PureDP(epsilon=budget), of) * of.l1 == Fraction(budget)
    spent = slope(ZCDP(rho=budget), of) ** 2 * of.l2_squared / 8
    assert Fraction(budget) * (1 - Fraction(1, 2**60)) < spent <= Fraction(budget)


@given(ranges, st.floats(0.01, 5.0), st.sampled_from([1e-9, 1e-5, 0.01]))
def test_slope__of_an_approximate_guarantee_is_the_better_of_two_ways(of: Ranges, epsilon: float, delta: float) -> None:
    ways: list[Guarantee] = [PureDP(epsilon=epsilon), ZCDP(rho=rho_for(epsilon, delta))]
    assert slope(ApproxDP(epsilon=epsilon, delta=delta), of) == max(slope(way, of) for way in ways)


def test_slope__worked_number() -> None:
    assert slope(PureDP(epsilon=1), Ranges(Fraction(2), Fraction(4))) == HALF
    assert Ranges(Fraction(2), Fraction(4)).scaled(Fraction(3)) == Ranges(Fraction(6), Fraction(36))
    assert math.isclose(slope(ZCDP(rho=0.125), Ranges(Fraction(2), Fraction(4))), 0.5)
    assert choice.FLOAT_ERROR < 2.0**-39
