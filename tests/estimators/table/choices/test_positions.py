"""Positions against their definition: increasing, symmetric, and found again from a share."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.choices import mechanism
from dpfrugal.estimators.table.choices.positions import Positions
from tests.support.naive_table import share

KINDS = [Positions(bits) for bits in ((0,), (3,), (0, 0), (2, 2, 2), (1, 1, 1, 2, 4), (0, 3))]


@pytest.mark.parametrize("positions", KINDS)
def test_positions__have_the_shares_of_the_definition(positions: Positions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "POSITIONS", positions)
    shares = [Fraction(positions.share(at), positions.whole) for at in range(positions.last + 1)]
    assert shares == [share(at) for at in range(positions.last + 1)]
    assert shares == sorted(set(shares)), "increasing"
    assert shares[0] == 0
    assert shares[-1] == 1
    assert [1 - each for each in reversed(shares)] == shares


@pytest.mark.parametrize("positions", KINDS)
def test_stretches__have_all_positions_once(positions: Positions) -> None:
    places = [each.first + k for each in positions.stretches for k in range(each.count)]
    assert places == list(range(positions.last + 1))


@pytest.mark.parametrize("positions", [*KINDS, mechanism.POSITIONS])
@given(st.fractions(-0.5, 1.5), st.integers(1, 50))
def test_upto__counts_positions_whose_share_is_at_most_this(
    positions: Positions, wanted: Fraction, denominator: int
) -> None:
    numerator = round(wanted * positions.whole * denominator)
    count = positions.upto(numerator, denominator)
    assert count == 0 or positions.share(count - 1) * denominator <= numerator
    assert count == positions.last + 1 or positions.share(count) * denominator > numerator


def test_positions__are_dense_at_the_ends_of_a_heap() -> None:
    positions = mechanism.POSITIONS
    rows = 90_000
    within = positions.upto(20 * positions.whole, rows) / positions.last  # of the first 20 rows
    assert within > 0.05
