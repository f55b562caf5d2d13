"""The order of choices, between which answers each is made, and what a level costs."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.table.choices.levels import evenly, influences, range_of, ranges, steps_of
from dpfrugal.estimators.table.choices.pivots import MOST_PIVOTS
from dpfrugal.privacy.choice import Ranges

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
THREE = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))
several = st.sets(st.fractions(Fraction(1, 1000), Fraction(999, 1000)), min_size=1, max_size=12).map(
    lambda quantiles: tuple(sorted(quantiles))
)


@given(several, st.integers(1, MOST_PIVOTS))
def test_steps__choose_each_quantile_once_between_its_neighbours_of_earlier_levels(
    quantiles: tuple[Fraction, ...], pivots: int
) -> None:
    pivots = min(pivots, len(quantiles))
    steps = steps_of(quantiles, evenly(len(quantiles), pivots))
    assert sorted(step.quantile for step in steps) == list(range(len(quantiles)))
    assert [step.of_all for step in steps] == [True] * pivots + [False] * (len(quantiles) - pivots)
    assert [step.level for step in steps[:pivots]] == list(range(pivots))
    known: dict[int, int] = {}
    for step in steps:
        below, above = ([at for at in known if at < step.quantile], [at for at in known if at > step.quantile])
        assert step.low == max(below, default=None)
        assert step.high == min(above, default=None)
        assert all(known[end] < step.level for end in (step.low, step.high) if end is not None)
        first = Fraction(0) if step.low is None else quantiles[step.low]
        last = Fraction(1) if step.high is None else quantiles[step.high]
        share = quantiles[step.quantile] if step.of_all else (quantiles[step.quantile] - first) / (last - first)
        assert step.share == share
        known[step.quantile] = step.level
    divides = not all(step.of_all for step in steps)
    used = {end for step in steps for end in (step.low, step.high) if divides}
    assert all(step.cuts == (step.quantile in used) for step in steps)


def test_ranges__worked_numbers() -> None:
    """Three quantiles by halving: the middle one costs 2; 5/9 and 9/10 of what lies beside it cost 10/9 + 9/5."""
    steps = steps_of(THREE, (1,))
    assert [step.share for step in steps] == [Fraction(9, 10), Fraction(5, 9), Fraction(9, 10)]
    beside = Ranges(Fraction(131, 45), Fraction(10, 9) ** 2 + Fraction(9, 5) ** 2)
    assert ranges(steps, "replace") == [Ranges(Fraction(2), Fraction(4)), beside]
    most = Ranges(Fraction(9, 5), Fraction(81, 25))
    assert ranges(steps, "add-remove") == [most, most]
    # Two choices of range 1 each: a row that stays in one of them may still change it by 2.
    leaves = ranges(steps_of(DECILES, (1, 3, 5, 7)), "replace")
    assert leaves[-1] == Ranges(Fraction(2), Fraction(4))
    assert leaves[:-1] == [Ranges(Fraction(2), Fraction(4))] * 4


def test_influences__of_a_quantile_between_two_others() -> None:
    steps = steps_of((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), (0, 2))
    middle = influences(steps)[1]
    assert sorted(middle) == [(0, 0.5), (1, 0.5), (2, 1.0)]
    assert range_of(Fraction(1, 4)) == Fraction(3, 2)
