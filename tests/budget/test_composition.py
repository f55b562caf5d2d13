"""What guarantees add up to: against exact sums, against an oracle, and never below what one mechanism really leaks."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution as distributions
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.budget import composition, loss_distributions
from dpfrugal.budget.claims import Claim
from dpfrugal.budget.composition import fits, total_spent
from dpfrugal.errors import ParameterError
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from tests.support.accounting_oracle import INTERVAL, ROUNDING, oracle

epsilons = st.floats(0.01, 3.0).map(lambda number: float(f"{number:.3g}"))


def pure(*sizes: float) -> list[Claim]:
    return [Claim(PureDP(epsilon=size)) for size in sizes]


pairs_of_all_kinds = st.lists(
    st.tuples(st.floats(0.01, 3.0) | epsilons, st.sampled_from([0.0, 1e-12, 1e-11]), st.integers(1, 12)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=30)
@given(pairs_of_all_kinds, st.sampled_from([1e-9, 1e-6, 1e-4]))
def test_composition__has_the_privacy_losses_of_dp_accounting(
    pairs: list[tuple[float, float, int]], delta: float
) -> None:
    """Never below its optimistic result, and above its pessimistic one by no more than our own rounding."""
    plain = [(epsilon, chance) for epsilon, chance, times in pairs for _ in range(times)]
    found = loss_distributions.losses_of_pairs(plain).epsilon(delta)
    assert found >= oracle(pairs, pessimistic=False).get_epsilon_for_delta(delta + ROUNDING) - 1e-9
    finest = 2 * sum(epsilon for epsilon, _ in plain) / loss_distributions.MOST_POINTS
    highest = oracle(pairs, pessimistic=True).get_epsilon_for_delta(delta - ROUNDING)
    assert found <= highest + len(plain) * finest + 1e-9


@settings(max_examples=20)
@given(
    st.lists(st.tuples(epsilons, st.sampled_from([0.0, 1e-8]), st.integers(1, 4)), max_size=4),
    st.lists(st.floats(0.001, 0.5), min_size=1, max_size=4),
    st.sampled_from([1e-6, 1e-4]),
    st.booleans(),
)
def test_composition__never_says_less_than_gaussian_noise_leaks(
    pairs: list[tuple[float, float, int]], rhos: list[float], delta: float, stated_as_approximate: bool
) -> None:
    """Beside spends of every other kind: dp-accounting's own distribution of Gaussian noise, from below."""
    claims = [
        Claim(ApproxDP(epsilon=epsilon, delta=chance) if chance else PureDP(epsilon=epsilon))
        for epsilon, chance, times in pairs
        for _ in range(times)
    ]
    together: Any = oracle(pairs, pessimistic=False) if pairs else None
    for rho in rhos:
        noise = ZCDP(rho=rho)
        claims.append(Claim(noise.to_approx(1e-9), rho=rho) if stated_as_approximate else Claim(noise))
        part = distributions.from_gaussian_mechanism(
            1 / math.sqrt(2 * rho), pessimistic_estimate=False, value_discretization_interval=INTERVAL
        )
        together = part if together is None else together.compose(part, tail_mass_truncation=0.0)
    assert total_spent(claims, delta).epsilon >= together.get_epsilon_for_delta(delta + ROUNDING) - 1e-9


def test_composition__would_be_below_dp_accounting_with_a_tenth_less() -> None:
    """The comparison can fail: losses of smaller guarantees are found out."""
    pairs = [(0.1, 0.0, 20), (0.7, 1e-9, 3)]
    smaller = [(0.9 * epsilon, delta) for epsilon, delta, times in pairs for _ in range(times)]
    lowest = oracle(pairs, pessimistic=False).get_epsilon_for_delta(1e-6 + ROUNDING)
    assert loss_distributions.losses_of_pairs(smaller).epsilon(1e-6) < lowest - 0.1


@given(epsilons, st.floats(1.01, 50.0))
def test_composition__takes_pure_guarantees_to_be_as_concentrated_as_they_are(epsilon: float, order: float) -> None:
    """The Rényi divergence of randomised response is at most order·ρ, for ρ = ε·tanh(ε/2)."""
    rho = Claim(PureDP(epsilon=epsilon)).zcdp_rho
    assert rho is not None
    likely = 1 / (1 + math.exp(-epsilon))
    moment = math.log(likely**order * (1 - likely) ** (1 - order) + (1 - likely) ** order * likely ** (1 - order))
    assert moment / (order - 1) <= order * rho * (1 + 1e-9)
    assert rho <= epsilon**2 / 2


def test_composition__would_not_hold_with_a_hundredth_less_concentration() -> None:
    """The bound is the divergence itself as the order goes to 1, so a smaller ρ is refuted."""
    epsilon, order = 1.0, 1 + 1e-6
    likely = 1 / (1 + math.exp(-epsilon))
    moment = math.log(likely**order * (1 - likely) ** (1 - order) + (1 - likely) ** order * likely ** (1 - order))
    assert moment / (order - 1) > order * 0.99 * epsilon * math.tanh(epsilon / 2)


def test_composition__adds_up_decimals_exactly() -> None:
    assert fits(PureDP(epsilon=0.3), pure(0.1, 0.1, 0.1)) == "sum"
    assert fits(PureDP(epsilon=0.3), pure(0.1, 0.1, 0.1, 1e-12)) is None
    assert fits(ApproxDP(epsilon=0.3, delta=1e-6), [Claim(ApproxDP(epsilon=0.1, delta=1e-6 / 4))] * 3) is not None


def test_composition__refuses_what_a_total_can_never_cover() -> None:
    gaussian, approximate = Claim(ZCDP(rho=1e-9)), Claim(ApproxDP(epsilon=1e-3, delta=1e-9))
    assert fits(PureDP(epsilon=9), [gaussian]) is None
    assert fits(PureDP(epsilon=9), [approximate]) is None
    assert fits(ZCDP(rho=9), [approximate]) is None  # a bare (ε, δ) is not concentrated
    assert fits(ZCDP(rho=9), [Claim(approximate.guarantee, rho=1e-6)]) == "zcdp"  # unless its noise is
    assert fits(ApproxDP(epsilon=9, delta=1e-10), [approximate]) is None


def test_composition__chooses_the_best_of_its_rules() -> None:
    assert total_spent(pure(1.0), 1e-12).rule == "sum"
    assert total_spent([Claim(ZCDP(rho=0.01))] * 50, 1e-6).rule == "zcdp"
    assert total_spent(pure(*[0.1] * 50), 1e-6).rule == "pld"
    assert total_spent([*pure(*[0.1] * 50), Claim(ZCDP(rho=0.01))], 1e-6).rule in {"pld", "zcdp"}
    assert total_spent([], 1e-6).epsilon == 0.0


def test_composition__lets_one_spend_use_the_whole_total() -> None:
    totals: list[Guarantee] = [PureDP(epsilon=0.7), ApproxDP(epsilon=0.7, delta=1e-7), ZCDP(rho=0.7)]
    for total in totals:
        assert fits(total, [Claim(total)]) is not None
        assert fits(total, [Claim(total), Claim(total)]) is None


@settings(max_examples=40)
@given(st.lists(epsilons, min_size=1, max_size=8), st.lists(st.floats(0.001, 0.2), max_size=4))
def test_composition__never_shrinks_and_never_beats_its_parts(sizes: list[float], rhos: list[float]) -> None:
    claims = [*pure(*sizes), *(Claim(ZCDP(rho=rho)) for rho in rhos)]
    whole = total_spent(claims, 1e-6).epsilon
    assert whole >= total_spent(claims[:-1], 1e-6).epsilon * (1 - 1e-6)
    assert whole >= max(total_spent([claim], 1e-6).epsilon for claim in claims) * (1 - 1e-6)
    assert (
        whole <= float(sum(map(Fraction, sizes))) + (ZCDP(rho=sum(rhos)).to_approx(1e-6).epsilon if rhos else 0) + 1e-6
    )


def test_composition__allows_sums_only_where_spends_are_chosen_by_looking() -> None:
    total = ApproxDP(epsilon=2.0, delta=1e-6)
    assert fits(total, pure(*[0.1] * 20), adaptive=True) == "sum"
    assert fits(total, pure(*[0.1] * 22), adaptive=True) is None
    assert fits(total, pure(*[0.1] * 22)) == "pld"
    assert fits(total, [Claim(ZCDP(rho=1e-6))], adaptive=True) is None


@pytest.mark.parametrize("total", [PureDP(epsilon=2.0), ApproxDP(epsilon=2.0, delta=1e-6), ZCDP(rho=0.5)])
@pytest.mark.parametrize("like", [PureDP(epsilon=1.0), ApproxDP(epsilon=1.0, delta=1e-7), ZCDP(rho=1.0)])
def test_composition__leaves_what_fits_and_no_more(total: Guarantee, like: Guarantee) -> None:
    claims = pure(0.3, 0.2)
    found = composition.left(total, claims, like)
    if found is None:
        assert isinstance(total, PureDP) or isinstance(like, ApproxDP)
        return
    assert fits(total, [*claims, Claim(found)]) is not None
    size = "rho" if isinstance(found, ZCDP) else "epsilon"
    more = replace(found, **{size: 1.01 * getattr(found, size)})
    assert fits(total, [*claims, Claim(more)]) is None


def test_composition__states_no_total_below_its_own_delta() -> None:
    with pytest.raises(ParameterError, match="delta"):
        total_spent([Claim(ApproxDP(epsilon=1, delta=1e-3))], 1e-6)


class Opaque(ZCDP):
    """A guarantee that implies neither an (ε, δ) nor a ρ."""

    @property
    def implied_rho(self) -> None:  # type: ignore[override]
        return None


@pytest.mark.parametrize("others", [[], pure(0.1), [Claim(ZCDP(rho=0.01))], [Claim(ApproxDP(epsilon=0.1, delta=1e-9))]])
def test_composition__a_claim_that_implies_nothing_is_covered_by_no_total(others: list[Claim]) -> None:
    """It counts as infinite, never as nothing; with a ρ stated beside it, it composes by that."""
    unknown = [Claim(Opaque(rho=1e-9)), *others]
    totals: list[Guarantee] = [PureDP(epsilon=9), ApproxDP(epsilon=9, delta=1e-6), ZCDP(rho=9), Opaque(rho=9)]
    for total in totals:
        assert fits(total, unknown) is None
        assert fits(total, unknown, adaptive=True) is None
        assert composition.left(total, unknown, total) is None
    with pytest.raises(ParameterError, match="delta"):
        total_spent(unknown, 1e-6)
    assert total_spent([Claim(Opaque(rho=1e-9), rho=0.01)], 1e-6) == total_spent([Claim(ZCDP(rho=0.01))], 1e-6)
