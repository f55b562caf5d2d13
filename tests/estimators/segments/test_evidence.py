"""What segments teach about a quantile, in five sums; and whether they agree."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfrugal.estimators.segments.evidence import KEPT, LARGEST_MEAN, LARGEST_MEAN_SQUARE, Agreement, Evidence, Target

centres = st.floats(-1e6, 1e6)
gaps = st.floats(-0.1, 0.1)
weights = st.floats(1.0, 1e6)
measurements = st.lists(st.tuples(centres, gaps, weights), min_size=1, max_size=12)


def gathered(several: list[tuple[float, float, float]]) -> Evidence:
    evidence = Evidence()
    for centre, gap, weight in several:
        evidence.add(centre, gap, weight)
    return evidence


@pytest.mark.parametrize(("q", "variance", "tail", "bend"), [(0.5, 0.25, 0.5, 0.0), (0.9, 0.09, 0.1, -0.8 / 0.09)])
def test_target__knows_its_variance_its_tail_and_its_bend(q: float, variance: float, tail: float, bend: float) -> None:
    target = Target(q)
    assert (target.variance, target.tail, target.bend) == pytest.approx((variance, tail, bend))
    assert Target(1 - q).bend == pytest.approx(-bend)


def test_evidence__of_nothing_is_infinitely_unsure() -> None:
    assert Evidence().error == math.inf


@given(measurements, st.floats(0.01, 100.0))
def test_evidence__is_the_weighted_mean_of_the_one_step_estimates(
    several: list[tuple[float, float, float]], density: float
) -> None:
    total = math.fsum(weight for *_, weight in several)
    mean = math.fsum(weight * (centre + gap / density) for centre, gap, weight in several) / total
    evidence = gathered(several)
    assert evidence.quantile(density) == pytest.approx(mean, rel=1e-9, abs=1e-6)
    assert evidence.error == pytest.approx(1 / math.sqrt(total))


@given(measurements, st.floats(-1e5, 1e5))
def test_evidence__moves_with_the_data(several: list[tuple[float, float, float]], shift: float) -> None:
    moved = gathered([(centre + shift, gap, weight) for centre, gap, weight in several])
    assert moved.quantile(2.0) == pytest.approx(gathered(several).quantile(2.0) + shift, rel=1e-9, abs=1e-6)


@given(measurements, st.tuples(centres, gaps, weights))
def test_evidence__that_was_forgotten_leaves_no_trace(
    several: list[tuple[float, float, float]], last: tuple[float, float, float]
) -> None:
    evidence = gathered(several)
    evidence.forget()
    assert evidence.error == math.inf
    evidence.add(*last)
    assert evidence == gathered([last])


@given(measurements, st.floats(0.01, 100.0), st.floats(-100, 100))
def test_evidence__corrects_for_a_bent_cdf_by_half_an_error_at_most(
    several: list[tuple[float, float, float]], density: float, bend: float
) -> None:
    evidence = gathered(several)
    correction = evidence.quantile(density, bend) - evidence.quantile(density)
    assert abs(correction) <= 0.5 * evidence.error / density + 1e-9 * abs(evidence.base) + 1e-9
    assert correction * bend >= -1e-6 * abs(bend) * (1 + abs(evidence.quantile(density)))


def test_evidence__takes_back_what_a_bent_cdf_adds() -> None:
    """Two edges, each 0.1 from the quantile 0, on either side; F(x) = q + f·x + bend·f²·x²/2 exactly."""
    density, bend = 0.5, -1.6
    several = [(c, -(density * c + bend * density**2 * c**2 / 2), 100.0) for c in (-0.1, 0.1)]
    without, corrected = gathered(several).quantile(density), gathered(several).quantile(density, bend)
    assert abs(without) > 1e-3
    assert abs(corrected) < abs(without) / 20


def test_agreement__is_stable_at_first_and_while_residuals_are_ordinary() -> None:
    agreement = Agreement()
    for residual in [0.5, -1.0, 1.5, -0.3, 0.9, -1.8] * 20:
        assert agreement.stable
        assert agreement.widening == 1.0
        agreement.note(residual)


@pytest.mark.parametrize("residuals", [[3.0] * 8, [-3.0] * 8, [4.0, -4.0] * 6, [1.8] * 30], ids=str)
def test_agreement__ends_where_residuals_are_large_or_all_on_one_side(residuals: list[float]) -> None:
    agreement = Agreement()
    for residual in residuals:
        agreement.note(residual)
    assert not agreement.stable
    assert agreement.widening >= 2.0
    for _ in range(60):
        agreement.note(0.0)
    assert agreement.stable, "it is forgotten again"


def test_agreement__is_the_running_mean_that_it_says() -> None:
    agreement = Agreement()
    agreement.note(2.0)
    assert agreement.surprise == pytest.approx(KEPT + (1 - KEPT) * 4)
    assert agreement.trend == pytest.approx((1 - KEPT) * 2)


@given(st.lists(st.floats(allow_nan=False), max_size=50))
def test_agreement__is_not_carried_off_by_one_residual(residuals: list[float]) -> None:
    agreement = Agreement()
    for residual in residuals:
        agreement.note(residual)
    assert 0 <= agreement.surprise <= 25.0
    assert abs(agreement.trend) <= 5.0
    assert agreement.widening <= 15.0
    assert agreement.stable == (agreement.surprise < LARGEST_MEAN_SQUARE and abs(agreement.trend) < LARGEST_MEAN)


def test_agreement__that_was_contradicted_is_not_stable_until_it_is_explained() -> None:
    agreement = Agreement()
    agreement.contradicted()
    assert not agreement.stable
    assert agreement.widening == 5.0
    agreement.explained()
    assert agreement.stable
    assert agreement == Agreement()
