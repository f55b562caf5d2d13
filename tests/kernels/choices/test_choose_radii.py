"""Intervals of many groups: lists and choices are those of the twin, for all kinds of columns, rows and bits."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, UNSIGNED, decimals_of, hinted, times_of
from dpfrugal.estimators.table.choices.intervals import IntervalRule, Margin
from dpfrugal.estimators.table.choices.many_intervals import choose_intervals
from dpfrugal.estimators.table.choices.radius import (
    ITSELF,
    Interval,
    choose_interval,
    places_of,
    radii_around,
    radius_tables,
)
from dpfrugal.kernels.choices.choose_radii import ends_of_doubles, ends_of_integers, weigh
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Tape
from tests.support.base_masses import code, doubles, integers
from tests.support.naive_table import SMALL_WORLD, statistics
from tests.support.whole_windows import whole

TIMES = times_of("timestamp", "us", np.datetime64)
BASES = {
    "doubles": FLOATS.base,
    "doubles between": hinted(FLOATS, -3.5, 1e6, None),
    "doubles above": hinted(FLOATS, 1e9, None, None),
    "doubles below": hinted(FLOATS, None, -1e-310, None),
    "doubles with two decimals": hinted(FLOATS, 0.0, 20.0, 2),
    "one double": hinted(FLOATS, 7.25, 7.25, None),
    "integers": INTEGERS.base,
    "integers between": hinted(INTEGERS, -5, 10**15, None),
    "unsigned": UNSIGNED.base,
    "unsigned between": hinted(UNSIGNED, 0, 2**63 + 7, None),
    "decimals": decimals_of(2).base,
    "times": TIMES.base,
    "times above": hinted(TIMES, "2020-01-01", None, None),
    "dates": times_of("date", "D", np.datetime64).base,
    "few": SMALL_WORLD,
}
SLOPES = [Fraction(1, 50), Fraction(1, 4), Fraction(7, 3), Fraction(40)]


def some_of(base: Base) -> st.SearchStrategy[int]:
    """Codes of a base, its ends and what lies next to them; near the unsigned 0, too."""
    near = st.integers(0, 300).map(lambda more: base.low + more)
    any_code = doubles.map(code) if base.of_doubles else st.one_of(integers, near)
    ends = st.sampled_from([base.low, base.low + 1, base.high - 1, base.high])
    return st.one_of(any_code, any_code, ends).map(lambda each: min(max(each, base.low), base.high))


def words(seed: int, groups: int) -> NDArray[np.uint64]:
    drawn = np.random.default_rng(seed).integers(0, 2**64, (groups, 8), dtype=np.uint64)
    drawn.setflags(write=False)
    return drawn


@pytest.mark.parametrize("name", BASES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_weigh__has_the_list_of_the_twin(name: str, data: st.DataObject) -> None:
    """With a slope of 0 weights are masses."""
    base, tables = BASES[name], radius_tables()
    value = data.draw(some_of(base))
    place = int(places_of(base, np.array([value]))[0])
    listed = tables.offsets.size if place >= 0 else 0
    low, high, kept = (np.zeros(tables.offsets.size + 2, dtype=np.int64) for _ in range(3))
    weights = np.zeros(tables.offsets.size + 2)
    with np.errstate(all="ignore"):
        if listed and base.of_doubles:
            ends_of_doubles(np.int64(value), place, base.low, base.high, tables.offsets, tables.radii, low, high)
        elif listed:
            ends_of_integers(np.int64(value), place, base.low, base.high, tables.offsets, tables.whole, low, high)
        size = weigh(
            np.zeros(0, dtype=np.int64), 0, 0, np.int64(value), (0, 0.0, 0, 0.0), 75.0, 0.0, listed, place,
            base.low, base.high, tables.offsets, tables.masses, tables.factors, float(ITSELF), low, high, kept, weights,
        )  # fmt: skip
    radii = radii_around(base, value)
    assert weights[:size].tolist() == radii.masses.tolist()
    within = kept[1 : size - 1]
    assert low[within].tolist() == radii.low[1:-1].tolist()
    assert high[within].tolist() == radii.high[1:-1].tolist()
    assert size == 1 or (radii.low[0], radii.high[0]) == (value, value)


def check(
    base: Base, groups: Sequence[Sequence[int]], values: Sequence[int], q: Fraction, margin: Margin, slope: Fraction,
    drawn: NDArray[np.uint64],
) -> None:  # fmt: skip
    codes = np.array([row for rows in groups for row in sorted(rows)], dtype=np.int64)
    starts = np.cumsum([0, *(len(rows) for rows in groups)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "words", lambda groups, each: drawn)
        many = choose_intervals(*whole(codes, starts), base, np.array(values, dtype=np.int64), q, margin, slope)
    found = [Interval(*each) for each in zip(*(part.tolist() for part in many), strict=True)]
    expected = [
        choose_interval(statistics(rows), base, value, q, margin.rows(len(rows)), slope, Tape(bits.tolist()))
        for rows, value, bits in zip(groups, values, drawn, strict=True)
    ]
    assert found == expected


@pytest.mark.parametrize("name", BASES)
@settings(max_examples=12, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), slope=st.sampled_from(SLOPES))
def test_choose_intervals__equal_one_choice_after_the_other(
    name: str, data: st.DataObject, seed: int, slope: Fraction
) -> None:
    base = BASES[name]
    q = data.draw(st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(1, 3), Fraction(0.99)]))
    margin = data.draw(
        st.sampled_from([IntervalRule().margin(q, slope), IntervalRule(of="table").margin(q, slope), Margin(4**15, 1)])
    )
    groups = data.draw(st.lists(st.lists(some_of(base), max_size=30), max_size=4))
    values = [data.draw(st.one_of(some_of(base), *([st.sampled_from(rows)] if rows else []))) for rows in groups]
    check(base, groups, values, q, margin, slope, words(seed, len(groups)))


@pytest.mark.parametrize("name", ["doubles", "integers", "unsigned", "times"])
def test_choose_intervals__equal_one_choice_after_the_other_where_rows_are_near(name: str) -> None:
    """Rows around the value, with ties, so that all radii up to it matter; groups of none to 200 rows."""
    base, rng = BASES[name], np.random.default_rng(8)
    groups, values = [], []
    for size in (0, 1, 2, 20, 60, 200):
        numbers = np.round(rng.lognormal(4, 1, size + 1), 1)
        codes = [code(number) if base.of_doubles else int(10 * number) for number in numbers]
        codes = [each - 2**63 for each in codes] if name == "unsigned" else codes
        groups.append(sorted(codes[1:]))
        values.append(groups[-1][size // 2] if size else codes[0])
    for seed in range(4):
        for slope in SLOPES:
            check(base, groups, values, Fraction(1, 2), Margin(4**16, 2**17), slope, words(seed, len(groups)))


def test_choose_intervals__around_infinity_are_that_or_everything() -> None:
    infinities = [code(math.inf), code(-math.inf)]
    check(FLOATS.base, [infinities * 9] * 2, infinities, Fraction(1, 2), Margin(0, 1), Fraction(1), words(1, 2))


@pytest.mark.parametrize("name", ["doubles", "unsigned", "few"])
def test_choose_intervals__equal_the_twin_on_and_beside_all_boundaries(name: str) -> None:
    """Floats are not certain there, so that the twin decides, with more bits of the same tape."""
    base = BASES[name]
    value, q, slope, margin = base.low + 3, Fraction(1, 2), Fraction(1, 4), Margin(0, 2**16)
    rows = [base.low + each for each in (0, 2, 3, 3, 5)]
    masses = radii_around(base, value).masses
    ends = [2**63, 2**62, *(int(sum(masses[: at + 1].tolist())) * 2**64 // int(masses.sum()) for at in range(4))]
    points = [end + offset for end in ends for offset in (-(2**40), -1, 0, 1, 2**26)]
    drawn = np.array([[point % 2**64, *range(7)] for point in points], dtype=np.uint64)
    drawn.setflags(write=False)
    check(base, [[]] * len(points), [value] * len(points), q, margin, Fraction(1, 10**15), drawn)
    check(base, [rows] * len(points), [value] * len(points), q, margin, slope, drawn)
