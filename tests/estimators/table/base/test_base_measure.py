"""Masses of the base against their definition, one point at a time."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import (
    UNITS,
    Base,
    Component,
    base_of_decimals,
    base_of_doubles,
    base_of_integers,
    base_of_times,
)
from dpfrugal.estimators.table.base.codes import INFINITY
from dpfrugal.estimators.table.base.spacings import MOST_INDEX, Decimals, Multiples
from dpfrugal.estimators.table.base.spreads import Binades, Even
from tests.support.base_masses import code, double, doubles, integers, regions, share


def decimal_mass(value: float, places: int, step: int = 1, first: int = 0) -> int:
    """Of all k that the division rounds to ``value``, of those that are ``first`` modulo ``step``."""
    if math.isinf(value):
        return 0
    near = round(Fraction(value) * 10**places)
    points = [k for k in range(near - 5, near + 6) if abs(k) <= MOST_INDEX and k / 10**places == value]
    return sum(share((k - first) // step) for k in points if (k - first) % step == 0)


def mass_beside(value: float, denominator: int, step: int = 1) -> int:
    """Of all k for which the double nearest to k·step / denominator is ``value``, or next to it."""
    if math.isinf(value):
        return 0
    near = round(Fraction(value) * denominator / step)
    points = [k for k in range(near - 3, near + 4) if abs(k) <= 2**49 // step]
    offsets = [(k, code(value) - code(k * step / denominator)) for k in points]
    return sum(share(3 * k + 1 + offset) for k, offset in offsets if abs(offset) <= 1)


def mass_of_double(place: int) -> int:
    value = double(place)
    lattices = zip((96, 128, 224, 32), range(4), strict=True)
    sizes = ((256, 16), (16, 64), (2, 256), (1, math.inf))
    plain = sum(weight for weight, reach in sizes if math.isinf(reach) or 2.0**-reach <= abs(value) < 2.0**reach)
    written = sum(weight * decimal_mass(value, places) for weight, places in lattices)
    written += 96 * decimal_mass(value, 2, 100, -1)
    written += sum(weight * mass_beside(value, parts) for weight, parts in ((64, 10**5), (32, 10**6), (32, 2520)))
    written += sum(2 * mass_beside(value, 10**6, each.step) for each in UNITS)
    return (plain << 9) + written + (512 << 63 if place == 0 else 0)


@given(doubles)
def test_base_of_doubles__gives_each_double_the_mass_of_the_definition(value: float) -> None:
    assert regions(base_of_doubles(), [code(value)]).exact(1) == mass_of_double(code(value))


@settings(max_examples=50)
@given(doubles, st.integers(2, 20))
def test_base_of_doubles__the_mass_of_a_gap_is_that_of_its_doubles(value: float, width: int) -> None:
    first = max(-INFINITY, min(code(value), INFINITY - width))
    gap = regions(base_of_doubles(), [first, first + width]).exact(2)
    assert gap == sum(mass_of_double(place) for place in range(first + 1, first + width))


def test_base_of_doubles__has_the_totals_it_states() -> None:
    base = base_of_doubles()
    total = regions(base, []).exact(0)
    plain = (2 * INFINITY + 1 << 9) + (64 * 64 + 4 * 256 + 512) * 2**63
    zero, prices = 512 << 63, regions(Base(base.low, base.high, base.components[1:2]), []).exact(0)
    computed = regions(Base(base.low, base.high, base.components[5:12]), []).exact(0)
    assert total == plain + 480 * 107 * 2**63 + zero + prices + computed
    written = 480 * 107 * 2**63 + prices
    assert computed / total == pytest.approx(1 / 6, rel=0.05)
    assert written / total == pytest.approx(3 / 4, rel=0.05)
    assert plain / total == pytest.approx(1 / 12, rel=0.1)
    stated = ((7.0, 3.3e-4), (6.99, 3.0e-4), (0.0, 0.014), (9 * 1.15078, 1.54e-6))
    for value, expected in stated:
        assert regions(base, [code(value)]).exact(1) / total == pytest.approx(expected, rel=0.03)
    binade = Base(code(4.0), code(math.nextafter(8, 0)), base.components[12:16])
    assert regions(binade, []).exact(0) / total == pytest.approx(0.00085, rel=0.03)


BASES = {
    "doubles": base_of_doubles(),
    "doubles between": base_of_doubles().within(code(-3.5), code(1e6)),
    "doubles above": base_of_doubles().within(code(1e9), None),
    "doubles below": base_of_doubles().within(None, code(-1e-310)),
    "doubles of cents": base_of_doubles().towards(code(1e9 + 0.5), 3),
    "doubles of all sorts": base_of_doubles().within(code(-3.5), None).towards(code(-1e-3), 12),
    "cents": base_of_decimals(2),
    "cents between": base_of_decimals(2).within(code(1.0), code(2.0)),
}


@pytest.mark.parametrize("name", BASES)
@given(values=st.lists(doubles, max_size=8))
def test_regions__floats_are_within_2_to_the_minus_45_of_exact_masses(name: str, values: list[float]) -> None:
    base = BASES[name]
    check(base, sorted({min(max(code(value), base.low), base.high) for value in values}))


INTEGER_BASES = {
    "integers": base_of_integers(),
    "integers above": base_of_integers().within(-(2**63) + 1, None),
    "integers between": base_of_integers().within(-(2**63), 2**63 - 1),
    "uint64": base_of_integers(zero=-(2**63)),
    "seconds": base_of_times(-(2**63) + 1, 2**63 - 1, (1, 60, 3600, 86400), 2**33 + 7),
    "hours of a year": base_of_times(-(2**63) + 1, 2**63 - 1, (1, 60, 3600, 86400), 2**33 + 7).towards(10**9, 1),
}


@pytest.mark.parametrize("name", INTEGER_BASES)
@given(values=st.lists(integers, max_size=8))
def test_regions__of_integers_too(name: str, values: list[int]) -> None:
    base = INTEGER_BASES[name]
    check(base, sorted({min(max(value, base.low), base.high) for value in values}))


def check(base: Base, at: list[int]) -> None:
    divided = regions(base, at)
    exact = [divided.exact(region) for region in range(2 * len(at) + 1)]
    assert min(exact) >= 0
    assert sum(exact) == regions(base, []).exact(0), "dividing loses nothing"
    for mass, approximate in zip(exact, divided.approximate.tolist(), strict=True):
        assert abs(Fraction(approximate) - mass) <= Fraction(mass, 2**45)
    ends = [base.low - 1, *(end for place in at for end in (place - 1, place)), base.high]
    for region, mass in enumerate(exact):
        if mass:
            assert ends[region] < divided.draw(region) <= ends[region + 1]


@pytest.mark.parametrize(
    "component",
    [
        *base_of_doubles().components,
        base_of_doubles().within(code(-1e-3), code(7.0)).components[-1],
        base_of_doubles().within(code(1e9), None).components[-1],
        *base_of_doubles().towards(code(1e9 + 0.5), 3).components[-2:],
        *base_of_doubles().towards(code(-7.7), 6).components[-2:],
        Component(1, Binades(), Decimals(9)),
    ],
)
@given(value=doubles)
def test_component__finds_the_code_at_a_position(component: Component, value: float) -> None:
    check_positions(component, code(value))


@pytest.mark.parametrize("zero", [0, -(2**63), 5])
@given(value=integers)
def test_component__finds_the_integer_at_a_position(zero: int, value: int) -> None:
    check_positions(Component(1, Binades(zero)), value)
    check_positions(Component(1, Even()), value)
    check_positions(Component(1, Binades(), Multiples(1000)), value // 1000)
    check_positions(Component(1, Binades(), Multiples(60, 99)), value)


def check_positions(component: Component, place: int) -> None:
    places = np.array([place], dtype=np.int64)
    first, end = (each.exact(0) for each in component.around(places))
    for position in {first, end - 1, (first + end) // 2} if end > first else ():
        assert component.code(position) == place


@given(doubles, doubles)
def test_within__has_half_of_its_mass_near_what_is_known(first: float, second: float) -> None:
    low, high = sorted((code(first), code(second)))
    base = base_of_doubles().within(low, high)
    assert (base.low, base.high) == (low, high)
    if low == high or math.isinf(first) or math.isinf(second):
        return
    *own, near, one, other = (regions(Base(low, high, (part,)), []).exact(0) for part in base.components)
    assert 3 * sum(own) == 4 * near == 12 * (one + other)
    assert one == other
    assert regions(base, [low]).exact(1) >= one
    assert regions(base, [high]).exact(1) >= other


def test_within__a_narrow_law_far_from_zero_gets_mass_once_an_answer_is_known() -> None:
    """The base's own mass around 1e9 ± 10 is tiny; near an answer it is one binade of 53 in each doubling."""
    base = base_of_doubles()
    around = [code(1e9 + 8), code(1e9 + 16)]
    before, after = (
        regions(each, around).exact(2) / regions(each, []).exact(0) for each in (base, base.within(code(1e9), None))
    )
    assert before < 1e-7
    assert after > 0.004


def test_within__an_answer_of_zero_or_inf_teaches_nothing() -> None:
    base = base_of_doubles()
    for low, high in ((code(0.0), None), (None, INFINITY), (5, 5)):
        assert base.within(low, high).components == base.components
