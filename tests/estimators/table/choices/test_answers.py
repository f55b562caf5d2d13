"""The answers of a plan are monotone and near their ranks."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.estimators.table.base.base_measure import base_of_doubles, base_of_integers
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.choices.answers import answers
from dpfrugal.privacy.guarantees import PureDP
from tests.support.naive_table import planned, statistics

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
THREE = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))


@pytest.mark.parametrize("quantiles", [THREE, DECILES])
def test_answers__are_monotone_and_near_their_ranks(quantiles: tuple[Fraction, ...]) -> None:
    rng = np.random.default_rng(2)
    for values in (rng.lognormal(3, 1, 4000), np.round(rng.exponential(3, 4000)), rng.normal(1e9, 5, 4000)):
        plan = planned(quantiles, PureDP(epsilon=1), "replace")
        rows = statistics(codes_of(values).tolist())
        for _ in range(5):
            codes = answers(rows, plan, base_of_doubles())
            assert list(codes) == sorted(codes)
            for q, code in zip(quantiles, codes, strict=True):
                below, upto = rows.counts(code)
                assert max(below - q * 4000, q * 4000 - upto) < 400


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=20))
def test_answers__of_tiny_tables_are_monotone_too(rows: list[int]) -> None:
    plan = planned(DECILES, PureDP(epsilon=5), "add-remove")
    codes = answers(statistics(rows), plan, base_of_integers())
    assert list(codes) == sorted(codes)
    assert not math.isnan(sum(codes))


def test_answers__of_one_number_repeated_are_that_number() -> None:
    plan = planned(DECILES, PureDP(epsilon=1), "replace")
    assert set(answers(statistics([7] * 100_000), plan, base_of_integers())) == {7}
