"""Tallies: which kinds of claims were made, how often, and which of them was the last with its noise on record."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.budget.claims import Claim, Tally
from dpfrugal.budget.person_moves import Exposure, Move

EXPOSURE = Exposure("laplace", 1, (Move(1, 2.0, 2, 1),))
CLAIMS = [
    Claim(dpf.PureDP(epsilon=1.0)),
    Claim(dpf.PureDP(epsilon=0.5)),
    Claim(dpf.PureDP(epsilon=1.0), exposure=EXPOSURE),
    Claim(dpf.ZCDP(rho=0.5)),
    Claim(dpf.ApproxDP(epsilon=1.0, delta=1e-6), rho=0.01),
]
claims = st.lists(st.sampled_from(CLAIMS))


@given(claims)
def test_tally__counts_each_kind_in_the_order_in_which_it_came_first(made: list[Claim]) -> None:
    tally = Tally.of(made)
    assert list(tally) == [(claim, made.count(claim)) for claim in dict.fromkeys(made)]
    assert (tally.size, bool(tally)) == (len(made), bool(made))
    assert Tally.of(tally) is tally
    assert tally.newest == (CLAIMS[2] if CLAIMS[2] in made else None)


@given(claims)
def test_tally__grows_one_claim_at_a_time_as_it_is_made_of_all(made: list[Claim]) -> None:
    tally = Tally()
    for claim in made:
        tally = tally.plus(claim)
    assert tally == Tally.of(made)
    for claim in made:
        tally = tally.plus(claim, -1)
    assert (tally.kinds, tally.size) == ((), 0)


def test_tally__without_exposures_adds_up_what_differs_in_them_alone() -> None:
    tally = Tally.of([CLAIMS[0], CLAIMS[2], CLAIMS[2], CLAIMS[3]])
    assert list(tally.without_exposures()) == [(CLAIMS[0], 3), (CLAIMS[3], 1)]


def test_claim__knows_the_smallest_rho_that_is_on_record() -> None:
    assert CLAIMS[0].zcdp_rho == pytest.approx(math.tanh(0.5))  # ε·tanh(ε/2), below ε²/2
    assert CLAIMS[3].zcdp_rho == 0.5
    assert CLAIMS[4].zcdp_rho == 0.01
    assert Claim(dpf.PureDP(epsilon=1.0), rho=0.1).zcdp_rho == 0.1
    assert Claim(dpf.ZCDP(rho=0.5), rho=0.1).zcdp_rho == 0.5  # it states its ρ itself
    assert Claim(dpf.ApproxDP(epsilon=1.0, delta=1e-6)).zcdp_rho is None
