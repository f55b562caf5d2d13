"""Guarantees: the figures of the notes to four digits, exact calibration against an independent oracle."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.privacy import discrete_gaussian, noise
from dpfrugal.privacy.guarantee_interface import GaussianNoise
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity, checked_guarantee
from dpfrugal.privacy.noise_distributions import LAPLACE
from dpfrugal.privacy.zcdp_conversions import rho_for
from tests.support.statistics import FALSE_ALARM, chi_square_p_value, discrete_laplace, oracle_delta
from tests.support.statistics import discrete_gaussian as discrete_gaussian_mass

CLASSIC = dpf.ApproxDP(epsilon=1, delta=0.04, calibration="classic")


def four_digits(found: float, expected: float) -> bool:
    return round(found, 4) == expected


@pytest.mark.parametrize(
    ("guarantee", "one_sided", "two_sided"),
    [(dpf.PureDP(epsilon=1), 6.4378, 6.4378), (CLASSIC, 9.1867, 10.7770), (dpf.ZCDP(rho=1), 2.4758, 2.9044)],
)
def test_alpha__is_two_sided_and_paper_alpha_is_the_papers(
    guarantee: Guarantee, one_sided: float, two_sided: float
) -> None:
    """Notes, item 4: β = 0.04, ε = 1, δ = 0.04, ρ = 1."""
    assert four_digits(guarantee.paper_alpha(0.04), one_sided)
    assert four_digits(guarantee.alpha(0.04), two_sided)


@pytest.mark.parametrize(
    ("epsilon", "delta", "classic", "exact"),
    [(1, 0.04, 5.2475, 2.8220), (0.1, 1e-6, 105.976, 72.609), (1, 1e-6, 10.598, 8.449), (2, 1e-6, 5.299, 4.461)],
)
def test_approx_dp__has_the_classic_and_the_exact_sigma(
    epsilon: float, delta: float, classic: float, exact: float
) -> None:
    """Notes, item 5. The discrete Gaussian needs up to 0.04% more than the continuous one on these."""
    guarantee = dpf.ApproxDP(epsilon=epsilon, delta=delta)
    places = 4 if delta == 0.04 else 3
    assert round(guarantee.classic_scale(2), places) == classic
    assert round(guarantee.continuous_scale(2), places) == exact
    assert exact * 0.9999 <= guarantee.noise_scale(2) <= exact * 1.0005


def test_zcdp__converts_to_approx_dp() -> None:
    assert round(dpf.ZCDP(rho=1).to_approx(1e-6).epsilon, 3) == 7.766
    assert round(dpf.ZCDP(rho=1).paper_to_approx(1e-6).epsilon, 3) == 8.434


@settings(max_examples=60)
@given(epsilon=st.floats(0.4, 30), delta=st.floats(1e-10, 0.3), items=st.integers(1, 3))
def test_approx_dp__has_an_exact_delta_of_at_most_the_promised_one(epsilon: float, delta: float, items: int) -> None:
    sigma = dpf.ApproxDP(epsilon=epsilon, delta=delta).noise_scale(2 * items)
    for shift in range(1, 2 * items + 1):  # smaller shifts need no more (Theorem 6)
        assert oracle_delta(sigma, shift, epsilon) <= delta


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 1e-3, 40.0, 500.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.1])
def test_approx_dp__can_be_calibrated_for_every_epsilon(epsilon: float, delta: float) -> None:
    guarantee = dpf.ApproxDP(epsilon=epsilon, delta=delta)
    sigma = guarantee.noise_scale(2)
    assert sigma > 0
    assert guarantee.covers(4 / (2 * sigma**2), 2)
    assert not guarantee.covers(4 / (2 * (sigma * 0.2) ** 2), 2)


def test_approx_dp__is_calibrated_tightly() -> None:
    """A part in ten thousand less noise breaks the promise, unless the continuous answer was already enough."""
    guarantee = dpf.ApproxDP(epsilon=1, delta=1e-6)
    assert discrete_gaussian.delta(guarantee.noise_scale(2) * 0.9999, 2, 1.0) > 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(10, 1e-6), (20, 1e-6), (50, 1e-3)])
def test_approx_dp__refuses_the_classic_calibration_where_it_does_not_hold(epsilon: float, delta: float) -> None:
    sigma = 2 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert oracle_delta(sigma, 2, epsilon) > delta
    with pytest.raises(ParameterError, match='"analytic"'):
        dpf.ApproxDP(epsilon=epsilon, delta=delta, calibration="classic")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1, 0.04), (2, 1e-6)])
def test_approx_dp__accepts_the_classic_calibration_where_it_holds(epsilon: float, delta: float) -> None:
    sigma = dpf.ApproxDP(epsilon=epsilon, delta=delta, calibration="classic").noise_scale(2)
    assert oracle_delta(sigma, 2, epsilon) <= delta


@given(rho=st.floats(1e-6, 100), delta=st.floats(1e-15, 0.5))
def test_zcdp__converts_soundly_and_never_more_loosely_than_the_paper(rho: float, delta: float) -> None:
    """Against the formula of arXiv:2004.00010v5, Section 2.3, minimised over the orders at 40 digits."""
    found = dpf.ZCDP(rho=rho).to_approx(delta).epsilon
    assert found <= dpf.ZCDP(rho=rho).paper_to_approx(delta).epsilon * (1 + 1e-9)
    with mpmath.workdps(40):

        def epsilon(a: mpmath.mpf) -> mpmath.mpf:
            return a * rho + (-mpmath.log(delta) + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)) / (a - 1)

        low, high = mpmath.mpf(-9), mpmath.mpf(30)  # a - 1 from 1e-9 to 1e30
        for _ in range(200):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if epsilon(1 + 10**left) < epsilon(1 + 10**right) else (left, high)
        best = float(epsilon(1 + 10**low))
    assert found == pytest.approx(max(best, 1e-12), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.01, 1e-9), (8.0, 0.01)])
def test_rho_for__inverts_the_conversion(epsilon: float, delta: float) -> None:
    assert dpf.ZCDP(rho=rho_for(epsilon, delta)).to_approx(delta).epsilon == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("beta", [0.3, 0.05, 0.04, 1e-6])
@pytest.mark.parametrize("guarantee", [dpf.PureDP(epsilon=1), CLASSIC, dpf.ZCDP(rho=1), dpf.ZCDP(rho=8)], ids=repr)
def test_exact_alpha__is_the_smallest_that_holds_of_discrete_noise(guarantee: Guarantee, beta: float) -> None:
    k, scale = round(guarantee.alpha(beta, exact=True)), guarantee.noise_scale(2)
    if guarantee.noise is LAPLACE:
        mass = discrete_laplace(scale)

        def tail(at_least: int) -> float:
            return 1 - sum(mass(x) for x in range(-at_least + 1, at_least))
    else:

        def tail(at_least: int) -> float:
            return discrete_gaussian.tail(scale, at_least)

    assert tail(k) <= beta * (1 + 1e-9)
    assert k == 1 or tail(k - 1) > beta


@pytest.mark.parametrize("rho", [1e-7, 1e-20, 1e-300])
def test_exact_alpha__of_enormous_noise_is_found_at_once(rho: float) -> None:
    guarantee = dpf.ZCDP(rho=rho)
    assert guarantee.alpha(0.05) <= guarantee.alpha(0.05, exact=True) <= guarantee.alpha(0.05) * (1 + 1e-3)


def test_noise_scale__is_shared_by_several_numbers() -> None:
    three = Sensitivity(l1=6, l2_squared=12)
    assert dpf.PureDP(epsilon=1).noise_scale(three) == 6.0
    assert dpf.ZCDP(rho=0.5).noise_scale(three) == pytest.approx(math.sqrt(12))
    single, shared = (dpf.ApproxDP(epsilon=1, delta=1e-6).noise_scale(s) for s in (2, three))
    assert single < shared < 3 * single


def test_noise_scale__is_refused_for_an_epsilon_too_small_for_any_noise() -> None:
    with pytest.raises(ParameterError, match="too small"):
        dpf.PureDP(epsilon=1e-320).noise_scale(2)


@settings(max_examples=200)
@given(epsilon=st.floats(1e-4, 30), delta=st.floats(1e-30, 0.3), quantiles=st.integers(1, 9), items=st.integers(1, 9))
def test_approx_dp__passes_its_own_check_once_calibrated(
    epsilon: float, delta: float, quantiles: int, items: int
) -> None:
    """So nothing is refused at the release that was accepted at construction."""
    guarantee = dpf.ApproxDP(epsilon=epsilon, delta=delta)
    sensitivity = Sensitivity(2 * items * quantiles, 4 * items**2 * quantiles)
    sigma = guarantee.noise_scale(sensitivity)
    assert guarantee.covers(sensitivity.l2_squared / (2 * sigma**2) * (1 + 1e-14), sensitivity)


@pytest.mark.parametrize("value", [0, -1, 0.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "make",
    [lambda x: dpf.PureDP(epsilon=x), lambda x: dpf.ApproxDP(epsilon=x, delta=0.1), lambda x: dpf.ZCDP(rho=x)],
)
def test_guarantees__refuse_parameters_that_are_not_positive(make: Any, value: float) -> None:
    with pytest.raises(ParameterError, match="must be finite and above 0"):
        make(value)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan, math.inf])
def test_guarantees__refuse_a_delta_outside_the_unit_interval(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta"):
        dpf.ApproxDP(epsilon=1, delta=delta)


@pytest.mark.parametrize("value", ["1", None, 1j, True, [1]])
def test_guarantees__refuse_parameters_of_other_types(value: Any) -> None:
    with pytest.raises(ParameterTypeError, match="epsilon must be a number"):
        dpf.PureDP(epsilon=value)


def test_guarantees__have_keyword_only_parameters_and_are_frozen() -> None:
    with pytest.raises(TypeError):
        dpf.PureDP(1.0)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        dpf.PureDP(epsilon=1.0).epsilon = 2.0  # type: ignore[misc]
    with pytest.raises(ParameterError, match="calibration"):
        dpf.ApproxDP(epsilon=1, delta=0.1, calibration="guess")  # type: ignore[arg-type]


def test_approx_dp__does_not_imply_a_smaller_delta() -> None:
    guarantee = dpf.ApproxDP(epsilon=1, delta=1e-6)
    assert guarantee.to_approx(1e-3) == dpf.ApproxDP(epsilon=1, delta=1e-3)
    with pytest.raises(ParameterError, match="delta"):
        guarantee.to_approx(1e-9)


@pytest.mark.parametrize("beta", [0, 1, -1, math.nan])
def test_alpha__refuses_a_beta_outside_the_unit_interval(beta: float) -> None:
    with pytest.raises(ParameterError, match="beta"):
        dpf.PureDP(epsilon=1).alpha(beta)


THREE: list[Guarantee] = [dpf.PureDP(epsilon=0.7), dpf.ApproxDP(epsilon=0.7, delta=1e-6), dpf.ZCDP(rho=0.7)]


def test_noise_deviation__and_variance_are_those_of_the_noise() -> None:
    """By the formulas of continuous noise, and of the integer noise: 2a/(1-a)², a = e^(-1/b)."""
    pure, zcdp, histogram = dpf.PureDP(epsilon=1), dpf.ZCDP(rho=0.5), Sensitivity(l1=2, l2_squared=4)
    assert pure.noise_deviation(histogram) == pytest.approx(2 * math.sqrt(2))
    assert pure.noise_variance(histogram) == pytest.approx(
        sum(x * x * discrete_laplace(2.0)(x) for x in range(-99, 99))
    )
    assert dpf.PureDP(epsilon=1e4).noise_variance(histogram) == 0.0
    assert zcdp.noise_deviation(histogram) == pytest.approx(2)
    assert zcdp.noise_variance(histogram) == pytest.approx(4)


def test_implied__epsilon_delta_and_rho() -> None:
    pure, approx, zcdp = THREE
    assert [g.epsilon_delta for g in THREE] == [(0.7, 0.0), (0.7, 1e-6), None]
    assert [g.pure_epsilon for g in THREE] == [0.7, None, None]
    assert pure.implied_rho == pytest.approx(0.7 * math.tanh(0.35))
    assert (approx.implied_rho, zcdp.implied_rho) == (None, 0.7)


def test_noise_rho__that_of_the_gaussian_noise_of_an_epsilon_delta() -> None:
    one, three = Sensitivity.of(2), Sensitivity(l1=6, l2_squared=12)
    approx = THREE[1]
    found = [approx.noise_rho(s) for s in (one, three)]
    assert found == pytest.approx([s.l2_squared / (2 * approx.noise_scale(s) ** 2) for s in (one, three)])
    assert approx.noise_rho(one, three) == max(rho for rho in found if rho is not None)
    assert approx.noise_rho() is None
    assert THREE[0].noise_rho(one) is None
    assert THREE[2].noise_rho(one) is None


@pytest.mark.parametrize("guarantee", THREE, ids=repr)
def test_size__another_of_the_same_kind(guarantee: Guarantee) -> None:
    assert guarantee.size == 0.7
    assert guarantee.of_size(0.7) == guarantee
    assert guarantee.of_size(0.2).size == 0.2
    assert guarantee.symbol in str(guarantee)


def test_repeated__in_decimals() -> None:
    assert dpf.PureDP(epsilon=0.1).repeated(3) == dpf.PureDP(epsilon=0.3)
    assert dpf.ZCDP(rho=0.3).repeated(3) == dpf.ZCDP(rho=0.9)
    assert dpf.ApproxDP(epsilon=0.1, delta=1e-7).repeated(3) == dpf.ApproxDP(epsilon=0.3, delta=3e-7)


def test_how_many__inverts_repeated() -> None:
    for guarantee in THREE:
        for times in (1, 3, 7, 10):
            assert guarantee.repeated(times).how_many(guarantee) == times
    assert dpf.PureDP(epsilon=0.3).how_many(dpf.PureDP(epsilon=0.30001)) == 0
    assert dpf.ApproxDP(epsilon=9, delta=1e-6).how_many(dpf.ApproxDP(epsilon=1, delta=2e-7)) == 5
    assert dpf.ApproxDP(epsilon=1, delta=1e-6).how_many(dpf.ApproxDP(epsilon=0.3, delta=1e-9)) == 3


def test_is_like__kinds_and_not_sizes() -> None:
    assert [dpf.ZCDP(rho=9.0).is_like(other) for other in THREE] == [False, False, True]


def test_taken_by__a_total_takes_only_what_composes_to_it() -> None:
    pure, approx, zcdp = THREE
    assert [pure.taken_by(spend, 0.1) for spend in THREE] == [0.7, None, None]
    assert [zcdp.taken_by(spend, 0.1) for spend in THREE] == [0.1, 0.1, 0.1]
    assert zcdp.taken_by(approx, None) is None
    assert approx.composition_rule is None


@pytest.mark.parametrize("guarantee", [*THREE, CLASSIC], ids=repr)
def test_record__read_back_by_name(guarantee: Guarantee) -> None:
    record = json.loads(json.dumps(guarantee.to_record()))
    assert list(record) == [type(guarantee).__name__]
    assert Guarantee.of_record(record) == guarantee
    assert type(guarantee).of_record(record) == guarantee


@pytest.mark.parametrize(
    "record", [None, {}, {"PureDP": {}}, {"PureDP": {"epsilon": 1.0}, "ZCDP": {}}, {"Guarantee": {}}, {"NoDP": {}}]
)
def test_record__of_anything_else_is_refused(record: Any) -> None:
    with pytest.raises(ValueError, match=r"guarantee|record"):
        Guarantee.of_record(record)
    with pytest.raises(ValueError, match="no such guarantee"):
        dpf.ApproxDP.of_record(dpf.PureDP(epsilon=1.0).to_record())


def test_checked_guarantee__names_what_it_may_be() -> None:
    assert checked_guarantee(THREE[0]) is THREE[0]
    with pytest.raises(ParameterTypeError, match=r"guarantee must be a PureDP, ApproxDP.* or .*, not float"):
        checked_guarantee(1.0)  # type: ignore[type-var]
    with pytest.raises(ParameterTypeError, match="cost must be an ApproxDP, not PureDP"):
        checked_guarantee(THREE[0], dpf.ApproxDP, "cost")


def test_guarantee__is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Guarantee()  # type: ignore[abstract]


@dataclass(frozen=True, kw_only=True)
class GaussianDP(GaussianNoise):
    """μ-GDP (Dong, Roth, Su, arXiv:1905.02383v3): a fourth guarantee, defined here and known nowhere else.

    Discrete Gaussian noise with σ = Δ/μ; it is μ²/2-zCDP. μ² adds up under composition (Corollary 3.3), so that is its
    size. (That noise on integers tells no more than noise on reals would have to be proved before this is used.)
    """

    mu: float
    symbol = "μ²"
    composition_rule = "gdp"

    def __str__(self) -> str:
        return f"μ={self.mu:g}"

    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        return Sensitivity.of(sensitivity).l2 / self.mu * (1 + 1e-12)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        return reported <= self.implied_rho

    @property
    def epsilon_delta(self) -> None:
        return None

    @property
    def implied_rho(self) -> float:
        return self.mu**2 / 2

    def to_approx(self, delta: float) -> dpf.ApproxDP:
        return dpf.ZCDP(rho=self.implied_rho).to_approx(delta)

    @property
    def size(self) -> float:
        return self.mu**2

    def of_size(self, size: float) -> "GaussianDP":
        return GaussianDP(mu=math.sqrt(size))

    def taken_by(self, spend: Guarantee, rho: float | None) -> float | None:
        return spend.size if isinstance(spend, GaussianDP) else None

    def least_size(self, p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
        quantile = np.vectorize(lambda x: NormalDist().inv_cdf(min(max(float(x), 1e-12), 1 - 1e-12)))
        return np.asarray(np.maximum(quantile(p) - quantile(q), 0.0) ** 2)


FOURTH = GaussianDP(mu=0.5)


def test_a_fourth_guarantee__noise_that_opendp_vouches_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """σ = 4 for a shift of 2; false alarms and power as in test_noise. Less noise is refused."""
    sample = np.array(noise.add_noise([0] * 100_000, FOURTH, Sensitivity.of(2)))
    assert chi_square_p_value(sample, discrete_gaussian_mass(4.0)) > FALSE_ALARM
    assert chi_square_p_value(sample, discrete_gaussian_mass(3.6)) < FALSE_ALARM
    monkeypatch.setattr(GaussianDP, "noise_scale", lambda self, sensitivity: 3.99)
    noise.measurement.cache_clear()
    with pytest.raises(dpf.PrivacyError, match=r"does not give μ=0\.5"):
        noise.add_noise([0], FOURTH, Sensitivity.of(2))
    noise.measurement.cache_clear()


def test_a_fourth_guarantee__releases_checkpoints_and_records(tmp_path: Path) -> None:
    estimator = dpf.DPFrugal1U(0.5, FOURTH)
    estimator.update_many([1.0, 2.0, 3.0])
    release = estimator.release()
    assert str(FOURTH) in str(release)
    assert release.to_dict()["guarantee"] == {"GaussianDP": {"mu": 0.5}}
    assert release.alpha(0.05) == pytest.approx(4 * NormalDist().inv_cdf(0.975))
    assert Guarantee.of_record(json.loads(json.dumps(FOURTH.to_record()))) == FOURTH
    estimator.save(tmp_path / "walk.raw")
    restored = dpf.DPFrugal1U.load(tmp_path / "walk.raw", accept_replay_risk=True)
    assert restored.guarantee == FOURTH


def test_a_fourth_guarantee__every_estimator_takes_it() -> None:
    segments = dpf.PrivateQuantile(0.5, FOURTH)
    segments.update_many(range(5_000))
    assert segments.release().guarantee == FOURTH
    keyed = dpf.KeyedDPFrugal1U(0.5, FOURTH, discover_keys=dpf.ApproxDP(epsilon=1.0, delta=1e-6), adaptive_steps=True)
    keyed.update_many(["a"] * 200, range(200))
    assert keyed.release().schema.metadata[b"guarantee"].decode() == "μ=0.5"


def test_a_fourth_guarantee__a_spend_under_totals_of_other_kinds(tmp_path: Path) -> None:
    """Under ρ and (ε, δ) it counts as μ²/2-zCDP; a pure total never covers it."""
    dpf.Ledger(tmp_path / "budget.db", total=dpf.ZCDP(rho=0.25)).open("rho", dpf.ZCDP(rho=0.25))
    ledger = dpf.Ledger(tmp_path / "budget.db")
    estimator = dpf.DPFrugal1U(0.5, FOURTH, ledger=ledger, dataset="rho")
    estimator.update_many([1.0, 2.0, 3.0])
    estimator.release()
    (spend,) = ledger.dataset("rho").spends
    assert (spend.guarantee, spend.rule) == (FOURTH, "zcdp")
    assert spend.exposure is not None
    assert ledger.left("rho") == dpf.ZCDP(rho=0.125)
    ledger.open("approx", dpf.ApproxDP(epsilon=3.0, delta=1e-6))
    ledger.spend("approx", FOURTH)
    assert ledger.total_spent("approx", 1e-6).epsilon == pytest.approx(FOURTH.to_approx(1e-6).epsilon, rel=1e-6)
    ledger.open("pure", dpf.PureDP(epsilon=9.0))
    with pytest.raises(
        dpf.BudgetExceeded, match=r"a PureDP total cannot cover a GaussianDP spend \(μ=0\.5 was asked for\)"
    ):
        ledger.spend("pure", FOURTH)


def test_a_fourth_guarantee__a_total(tmp_path: Path) -> None:
    """μ² adds up: four spends of μ = 0.5 are one of μ = 1. No other guarantee can be part of it."""
    path = tmp_path / "budget.db"
    ledger = dpf.Ledger(path, total=GaussianDP(mu=1.0))
    with pytest.raises(dpf.BudgetExceeded):
        ledger.spend("clicks", dpf.ZCDP(rho=1e-6))
    for _ in range(3):
        ledger.spend("clicks", FOURTH)
    dataset = dpf.Ledger(path).dataset("clicks")
    assert (dataset.total, dataset.spends[0].rule) == (GaussianDP(mu=1.0), "gdp")
    assert (dataset.used, dataset.share, dataset.left) == (0.75, 0.75, FOURTH)
    with pytest.raises(dpf.BudgetExceeded, match=r"of which μ=0\.5 is left; μ=0\.6 was asked for"):
        ledger.spend("clicks", GaussianDP(mu=0.6))
    ledger.spend("clicks", FOURTH)
    assert ledger.left("clicks") is None


def test_a_fourth_guarantee__is_audited() -> None:
    """Events of Gaussian noise with σ = 4 on a value moved by 2 show μ = 0.5, and no more."""
    first, second = (np.array([1 - NormalDist(mean, 4.0).cdf(t) for t in range(-8, 9)]) for mean in (2.0, 0.0))
    assert FOURTH.least_size(first, second) == pytest.approx(np.full(17, FOURTH.size))


def test_checked_guarantee__refuses_a_class_that_is_no_dataclass_of_its_own() -> None:
    """All its instances would be recorded alike, whatever they promise."""

    class Undecorated(dpf.PureDP):
        pass

    small, large = Undecorated(epsilon=0.01), Undecorated(epsilon=100.0)
    with pytest.raises(ParameterTypeError, match="frozen dataclass"):
        dpf.DPFrugal1U(0.5, small)
    assert small != large


def test_of_record__reads_the_names_of_this_package_as_its_own_classes() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Other(dpf.PureDP):
        pass

    Other.__name__ = "ApproxDP"
    record = dpf.ApproxDP(epsilon=1.0, delta=1e-6).to_record()
    assert Guarantee.of_record(record) == dpf.ApproxDP(epsilon=1.0, delta=1e-6)
    del Other
