"""Brackets: what a scan looks for, and that they probably hold the ranks they are for."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.rows.brackets import FEW, Bracket, bracket_of, jittered, merged

codes = st.integers(-20, 20)


@given(codes, st.integers(0, 15), st.sets(codes))
def test_intervals__cover_the_bracket_once_and_count_its_atoms(low: int, width: int, numbers: set[int]) -> None:
    atoms = tuple(sorted(atom for atom in numbers if low <= atom <= low + width))
    found = Bracket(low, low + width, atoms).intervals()
    covered = [code for first, last, _ in found for code in range(first, last + 1)]
    assert covered == list(range(low, low + width + 1))
    assert [first for first, last, collected in found if not collected] == list(atoms)
    assert all(first == last for first, last, collected in found if not collected)


@given(st.lists(st.tuples(codes, st.integers(0, 9)), max_size=8))
def test_merged__are_disjoint_and_cover_the_same_codes(parts: list[tuple[int, int]]) -> None:
    brackets = [Bracket(low, low + width, (low,)) for low, width in parts]
    found = merged(brackets)
    assert all(before.high < after.low for before, after in itertools.pairwise(found))
    covered = {code for bracket in found for code in range(bracket.low, bracket.high + 1)}
    assert covered == {code for low, width in parts for code in range(low, low + width + 1)}
    assert {atom for bracket in found for atom in bracket.atoms} == {low for low, _ in parts}


@pytest.mark.parametrize("sizes", [[1000], [1, 700, 0, 299], [3]])
def test_jittered__takes_one_row_of_each_of_equally_long_parts(sizes: list[int]) -> None:
    ends = np.cumsum([0, *sizes])
    arrays = [np.arange(first, last) for first, last in itertools.pairwise(ends)]
    sample = jittered(arrays, sum(sizes), 10)
    stride = max(sum(sizes) // 10, 1)
    assert sample.size == -(-sum(sizes) // stride)
    assert (np.abs(sample - np.arange(sample.size) * stride) < stride).all()


def test_bracket_of__holds_its_ranks_within_the_deviations_it_is_given() -> None:
    """A sample of 1,000 of 100,000 rows; each of 200 brackets of eight deviations fails once in 10^14."""
    rng = np.random.default_rng(2)
    rows = np.sort(rng.integers(0, 10**9, 100_000))
    for _ in range(200):
        sample = np.sort(rng.choice(rows, 1000, replace=False))
        bracket = bracket_of(sample, rows.size, (49_990, 50_010), 8, (-1, 10**10))
        assert bracket.low <= rows[49_990]
        assert rows[50_010] <= bracket.high
        assert np.count_nonzero((rows >= bracket.low) & (rows <= bracket.high)) < 70_000
    none = bracket_of(sample, rows.size, (49_990, 50_010), 0, (-1, 10**10))  # the leg that must fail
    assert np.count_nonzero((rows >= none.low) & (rows <= none.high)) < 1_000


def test_bracket_of__reaches_the_ends_where_the_sample_does_not() -> None:
    sample = np.arange(100) * 1000
    bracket = bracket_of(sample, 10_000, (0, 9_999), 3, (-7, 7 * 10**6))
    assert (bracket.low, bracket.high) == (-7, 7 * 10**6)


def test_bracket_of__frequent_codes_are_atoms() -> None:
    sample = np.sort(np.concatenate([np.full(3 * FEW, 500), np.arange(1000)]))
    assert bracket_of(sample, 10_000, (4_700, 4_900), 1, (0, 10**6)).atoms == (500,)
    assert bracket_of(np.arange(1000), 10_000, (4_700, 4_900), 1, (0, 10**6)).atoms == ()
