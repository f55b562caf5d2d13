"""Pilots: what they find, and what the base is then."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfrugal as dpf
from dpfrugal.estimators.table.base.base_measure import Base, Regions, base_of_doubles, base_of_times
from dpfrugal.estimators.table.base.codes import INFINITY, Codes, codes_of, doubles_of
from dpfrugal.estimators.table.base.spacings import Beside, Decimals, Every
from dpfrugal.estimators.table.choices import pilot
from dpfrugal.estimators.table.choices.pilot import Votes, choose_pilot, directed, ranks_of_pilot
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.rows.order_statistics import SortedRows
from tests.support.naive_table import naive_votes
from tests.theorems.test_pilot import WORLD

HALF = Fraction(1, 2)
DOUBLES = base_of_doubles()
ONE = dpf.PureDP(epsilon=1.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), max_size=12),
    st.fractions(0, 1, max_denominator=9),
    st.fractions(Fraction(5), Fraction(90)),
)
def test_votes__are_those_of_the_definition(rows: list[int], quantile: Fraction, slope: Fraction) -> None:
    rank, reach = quantile * len(rows), -(-pilot.CAP * slope.denominator // slope.numerator)
    votes = naive_votes(rows, WORLD, rank, reach)
    counted = Votes(SortedRows(np.array(rows, dtype=np.int64)), WORLD, rank, slope)
    exact = counted.exact()
    assert [each.mass for each in exact] == [lattice.weight for lattice in WORLD.lattices]
    assert [each.exponent for each in exact] == [slope * (max(votes) - vote) for vote in votes]
    likely = [float(each.to_decimal(30)) for each in exact]
    assert counted.approximate.tolist() == pytest.approx(likely, rel=2**-40)


def drawn(kind: str, rng: np.random.Generator) -> np.ndarray:
    whole = rng.integers(0, 40, 10_000)
    numbers = {
        "whole": whole.astype(np.float64),
        "tenths": rng.integers(0, 4000, 10_000) / 10,
        "cents": np.round(rng.lognormal(3, 1, 10_000), 2),
        "knots in miles": whole * 1.15078,
        "minutes in hours": whole / 60,
        "just below": whole + 0.99,
        "measured": rng.normal(50, 2, 10_000),
    }
    return numbers[kind]


@pytest.mark.parametrize(
    ("kind", "spacing"),
    [
        ("whole", Decimals(0)),
        ("tenths", Decimals(1)),
        ("cents", Decimals(2)),
        ("knots in miles", Beside(10**6, 1150780)),
        ("minutes in hours", Beside(2520)),
        ("just below", Every(100, -1, Decimals(2))),
        ("measured", None),
    ],
)
def test_choose_pilot__finds_where_rows_lie_and_on_what(kind: str, spacing: object) -> None:
    """Each is right but with a probability below 10^-6 (the weights of lattices), or 10^-9 (that of the rank)."""
    numbers = drawn(kind, np.random.default_rng(1))
    found = choose_pilot(SortedRows(codes_of(numbers)), DOUBLES, HALF, Fraction(1, 20))
    assert found.lattice is not None
    parts = [DOUBLES.components[at] for at in DOUBLES.lattices[found.lattice].parts]
    assert (len(parts) > 1 and spacing is None) or [part.spacing for part in parts] == [spacing]
    middle = doubles_of(np.array([found.middle]))[0]
    below, upto = (numbers < middle).sum(), (numbers <= middle).sum()
    assert below - 500 < 5_000 < upto + 500


def test_directed__has_half_of_its_mass_on_the_lattice_and_a_little_around_the_middle() -> None:
    spacings = [DOUBLES.components[each.parts[0]].spacing for each in DOUBLES.lattices]
    cents = spacings.index(Decimals(2))
    base = DOUBLES.towards(int(codes_of(np.array([1e9]))[0]), cents)
    assert len(base.components) == len(DOUBLES.components) + 2
    around = codes_of(np.array([1e9 + 8, 1e9 + 16]))

    def share(of: Base, at: Codes, region: int) -> float:
        regions = Regions(of.components, of.low, at, of.high)
        return regions.exact(region) / sum(regions.exact(each) for each in range(2 * at.size + 1))

    assert share(DOUBLES, around, 2) < 1e-7
    assert share(base, around, 2) == pytest.approx(1 / 1024 / 107 + 1 / 1024 / 74, rel=0.4)
    seven = codes_of(np.array([6.99]))
    own = next(part for part in DOUBLES.components if part.spacing == Decimals(2))
    alone = Base(DOUBLES.low, DOUBLES.high, (own,))
    expected = share(DOUBLES, seven, 1) * 510 / 1024 + share(alone, seven, 1) / 2
    assert share(base, seven, 1) == pytest.approx(expected, rel=1e-6)


def test_towards__of_infinity_and_zero_and_times() -> None:
    assert len(DOUBLES.towards(INFINITY, None).components) == len(DOUBLES.components)
    assert len(DOUBLES.towards(0, None).components) == len(DOUBLES.components)
    times = base_of_times(-(2**63) + 1, 2**63 - 1, (1, 60, 3600, 86400), 2**32)
    days = times.towards(1_600_000_000, 0)
    assert len(days.components) == len(times.components) + 2
    hints = DOUBLES.within(*codes_of(np.array([-3.0, 1e6])).tolist())
    assert hints.towards(int(codes_of(np.array([2.5]))[0]), 3).lattices == DOUBLES.lattices


def test_plan_of__has_a_pilot_where_answers_share_it_away_from_all_of_them() -> None:
    assert not plan_of(Asked((HALF,), ONE)).pilot_slope
    assert directed(SortedRows(np.zeros(3, np.int64)), plan_of(Asked((HALF,), ONE)), DOUBLES) is DOUBLES
    assert ranks_of_pilot(plan_of(Asked((HALF,), ONE))) is None
    places = {
        (HALF,): Fraction(7, 20),
        (Fraction(99, 100),): HALF,
        (HALF, Fraction(9, 10), Fraction(99, 100)): Fraction(7, 20),
        (Fraction(1, 5), HALF): Fraction(7, 20),
        tuple(Fraction(i, 10) for i in range(1, 10)): Fraction(1, 4),
    }
    for quantiles, place in places.items():
        plan = plan_of(Asked(quantiles, ONE, grouped=True))
        assert plan.asked.pilot_quantile == place
        assert plan.pilot_slope == Fraction(1, 100)
        reach = ranks_of_pilot(plan)
        assert reach is not None
        assert reach.quantile == float(place)


def test_quantiles_by__of_times_far_from_zero_finds_a_p99_of_few_rows() -> None:
    """Without a pilot all of a group's answers would pay for 10^9: a p99 with 100 rows beyond came from anywhere."""
    import pyarrow as pa

    rows = np.random.default_rng(3).normal(1e9, 5, (40, 10_000))
    table = pa.table({"k": np.repeat(np.arange(40), 10_000), "x": rows.ravel()})
    asked = table, "x", [0.5, 0.9, 0.99], ONE
    found = dpf.quantiles_by(*asked, by="k", keys=list(range(40)), counts=False, intervals=False)
    values = found["value"].to_numpy().reshape(40, 3)
    off = [abs((rows < values[:, [at]]).mean(axis=1) - q) * 10_000 for at, q in enumerate((0.5, 0.9, 0.99))]
    # 10 rows off (root mean square): a mean square of 40 above 30² has a probability below 10^-9.
    assert np.sqrt(np.mean(np.square(off))) < 30


def test_private_quantiles__of_speeds_in_knots_are_speeds_in_knots() -> None:
    rows = np.random.default_rng(4).poisson(9, 100_000) * 1.15078
    values = dpf.private_quantiles(rows, [0.5, 0.9, 0.99], dpf.PureDP(epsilon=0.1), intervals=False).values
    assert set(values) <= set(np.unique(rows))
