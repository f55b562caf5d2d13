"""Losses of known noise: against the definition, against every way a person may go on, and against dp-accounting."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as distributions
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfrugal.budget import person_move_losses
from dpfrugal.budget.claims import Claim
from dpfrugal.budget.composition import total_spent
from dpfrugal.budget.loss_distributions import Losses
from dpfrugal.budget.person_moves import Exposure, Move
from dpfrugal.estimators.keyed.sensitivity import keyed_exposure
from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.estimators.walk.dp_frugal import walk_exposure
from dpfrugal.privacy.discrete_gaussian import mass
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, PureDP
from tests.support.accounting_oracle import INTERVAL, ROUNDING, oracle

# How far above the truth a composed ε may be, as a part of it: losses are split between points of a lattice.
SPLIT = 2e-4
EPSILONS = (-4.0, -1.3, -0.2, 0.0, 0.1, 0.7, 2.0, 5.0, 9.0)
Chance = Callable[[int], Any]


def gaussian(sigma: float) -> Chance:
    return lambda x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2))


def laplace(scale: float) -> Chance:
    return lambda x: mpmath.exp(-abs(x) / mpmath.mpf(scale))


def pair_of(chance: Chance, shift: int, reach: int) -> list[tuple[Any, Any]]:
    """The chances of every output from the raw value 0, and from a raw value ``shift`` above it."""
    outputs = range(-reach, reach + shift + 1)
    total = mpmath.fsum(chance(x) for x in range(-2 * reach, 2 * reach + 1))
    return [(chance(x) / total, chance(x - shift) / total) for x in outputs]


def delta_of(pair: list[tuple[Any, Any]], epsilon: float) -> Any:
    """The definition."""
    return mpmath.fsum(max(mpmath.mpf(0), p - mpmath.exp(epsilon) * q) for p, q in pair)


def times(*pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [
        (mpmath.fprod(p for p, _ in several), mpmath.fprod(q for _, q in several))
        for several in itertools.product(*pairs)
    ]


@pytest.mark.parametrize("chance", [gaussian(0.7), gaussian(1.5), gaussian(4.0), laplace(0.6), laplace(3.0)])
def test_person_move_losses__of_a_smaller_shift_tell_no_more(chance: Chance) -> None:
    """At every ε, below 0 too: one direction and, as both distributions are mirror images, the other."""
    with mpmath.workdps(40):
        for epsilon in EPSILONS:
            told = [delta_of(pair_of(chance, shift, 60), epsilon) for shift in range(1, 6)]
            assert all(less <= more + mpmath.mpf(10) ** -30 for less, more in itertools.pairwise(told))
            turned = [(q, p) for p, q in pair_of(chance, 3, 60)]
            assert mpmath.almosteq(delta_of(turned, epsilon), told[2], 1e-30, 1e-30)


def test_person_move_losses__of_a_smaller_shift_may_tell_more_without_log_concavity() -> None:
    """The lemma needs it: noise that is mostly even is told from a shift by 1, and not from one by 2."""
    with mpmath.workdps(40):
        bumpy: Chance = lambda x: mpmath.exp(-abs(x) / 4) * (1 if x % 2 == 0 else mpmath.mpf(10) ** -3)  # noqa: E731
        assert delta_of(pair_of(bumpy, 1, 60), 1.0) > delta_of(pair_of(bumpy, 2, 60), 1.0)


@pytest.mark.parametrize(("sigma", "shift", "copies"), [(0.8, 1, 1), (1.3, 3, 1), (1.0, 2, 2), (0.9, 1, 3)])
def test_person_move_losses__of_gaussian_noise_are_those_of_the_definition(
    sigma: float, shift: int, copies: int
) -> None:
    found = person_move_losses.of_exposure(Exposure("gaussian", 1, (Move(1, sigma, shift, copies),)))
    with mpmath.workdps(40):
        truth = times(*[pair_of(gaussian(sigma), shift, 11)] * copies)
        for epsilon in EPSILONS:
            exact = float(delta_of(truth, epsilon))
            assert exact <= found.delta(epsilon) <= exact * (1 + 2e-9) + 1e-30


@pytest.mark.parametrize(("scale", "shift", "copies"), [(2.0, 1, 1), (0.7, 3, 1), (1.5, 2, 2), (4.0, 1, 3)])
def test_person_move_losses__of_laplace_noise_are_those_of_the_definition(
    scale: float, shift: int, copies: int
) -> None:
    found = person_move_losses.of_exposure(Exposure("laplace", 1, (Move(1, scale, shift, copies),)))
    outcomes: dict[int, tuple[float, float]] = {}
    a = math.exp(-1 / scale)
    for x in range(-200, 201):
        p, q = (1 - a) / (1 + a) * a ** abs(x), (1 - a) / (1 + a) * a ** abs(x - shift)
        inside = min(max(x, 0), shift)
        outcomes[inside] = (outcomes.get(inside, (0, 0))[0] + p, outcomes.get(inside, (0, 0))[1] + q)
    truth = times(*[list(outcomes.values())] * copies)
    for epsilon in EPSILONS:
        assert found.delta(epsilon) == pytest.approx(float(delta_of(truth, epsilon)), rel=1e-8, abs=1e-8)


def moves_of(kind: str) -> Exposure:
    if kind == "keyed":
        return Exposure("gaussian", 3, tuple(Move(steps, 1.1, steps, 1) for steps in (1, 2, 3)))
    if kind == "segments":
        return Exposure("gaussian", 2, (Move(1, 1.3, 1, 1), Move(2, 0.9, 1, 1)))
    return Exposure("laplace", 3, tuple(Move(items, 2.5, 2 * items, 1) for items in (1, 2, 3)))


def told_by(exposure: Exposure, choose: Callable[[int, tuple[int, ...]], int]) -> list[tuple[float, float]]:
    """Chances of all transcripts for a person who chooses every move by what was released before."""
    done: list[tuple[float, float]] = []

    def go_on(left: int, seen: tuple[int, ...], p: float, q: float) -> None:
        possible = [move for move in exposure.moves if move.cost <= left]
        if not possible:
            done.append((p, q))
            return
        move = possible[choose(len(possible), seen)]
        reach = math.ceil((7 if exposure.noise == "gaussian" else 12) * move.scale)
        for x in range(-reach, reach + move.shift + 1):
            if exposure.noise == "gaussian":
                ends = [math.exp(-((x - s) ** 2) / (2 * move.scale**2)) / mass(move.scale) for s in (0, move.shift)]
            else:
                a = math.exp(-1 / move.scale)
                ends = [(1 - a) / (1 + a) * a ** abs(x - s) for s in (0, move.shift)]
            go_on(left - move.cost, (*seen, x), p * ends[0], q * ends[1])

    go_on(exposure.budget, (), 1.0, 1.0)
    return done


@pytest.mark.parametrize("kind", ["keyed", "segments", "walk"])
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_person_move_losses__bound_whichever_moves_a_person_chooses_by_looking(kind: str, seed: int) -> None:
    """Random strategies, each move a function of all noisy numbers before it: none tells more than is said."""
    exposure, rng = moves_of(kind), np.random.default_rng(seed)
    chosen: dict[tuple[int, ...], int] = {}
    transcripts = told_by(exposure, lambda ways, seen: chosen.setdefault(seen, int(rng.integers(ways))))
    p, q = np.array(transcripts).T
    found = person_move_losses.of_exposure(exposure)
    for epsilon in EPSILONS:
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= found.delta(epsilon) * (1 + 1e-9)


def test_person_move_losses__do_not_overstate_the_best_that_a_person_can_do() -> None:
    """Where moves are equal in ρ, looking helps a little, and what is said is within a step of the lattice of that."""
    exposure = moves_of("segments")
    found = person_move_losses.of_exposure(exposure)
    ways = [told_by(exposure, lambda count, seen, way=way: min(way, count - 1)) for way in (0, 1)]  # type: ignore[misc]
    for epsilon in EPSILONS:
        best = max(sum(max(0.0, p - math.exp(epsilon - found.unit) * q) for p, q in way) for way in ways)
        assert found.delta(epsilon) <= best * (1 + 1e-8) + 1e-12


@settings(max_examples=50)
@given(
    st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=12),
    st.floats(0.05, 2.0),
    st.integers(-6, 3),
    st.floats(0.02, 3.0),
)
def test_on_lattice__never_tells_less_when_it_splits_a_loss(
    weights: list[float], unit: float, first: int, wanted: float
) -> None:
    losses = Losses(unit, first / 2, np.array(weights) / sum(weights), 0.0)
    split = person_move_losses.on_lattice(losses, wanted)
    assert split.chances.min() >= 0
    assert split.chances.sum() == pytest.approx(1.0, rel=1e-12)
    for epsilon in np.linspace(-4.0, 8.0, 61):
        assert losses.delta(epsilon) * (1 - 1e-12) - 1e-15 <= split.delta(epsilon)
        assert split.delta(epsilon) <= losses.delta(epsilon - wanted) + 1e-12


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0.3, 3.0), st.integers(1, 3)), min_size=2, max_size=4))
def test_worst__is_the_maximum_of_several(kinds: list[tuple[float, int]]) -> None:
    unit = 0.01
    several = [
        person_move_losses.on_lattice(
            person_move_losses.of_exposure(Exposure("gaussian", 1, (Move(1, sigma, shift, 1),))), unit
        )
        for sigma, shift in kinds
        if shift / sigma < 4
    ]
    if not several:
        return
    worst = person_move_losses.worst(several)
    assert worst.chances.min() >= 0
    for point in range(-500, 1500, 37):
        most = max(one.delta(point * unit) for one in several)
        assert most * (1 - 1e-9) <= worst.delta(point * unit) <= most * (1 + 1e-6) + 1e-30
        between = (point + 0.4) * unit
        assert worst.delta(between) >= max(one.delta(between) for one in several) * (1 - 1e-9)


def exact_epsilon(sigma: float, shift: int, count: int, delta: str) -> float:
    """ε of so many medians, in forty digits: sums of discrete Gaussians, convolved."""
    with mpmath.workdps(40):
        reach = math.ceil(14 * sigma)
        one = [gaussian(sigma)(x) for x in range(-reach, reach + 1)]
        one = [chance / mpmath.fsum(one) for chance in one]
        sums = [mpmath.mpf(1)]
        for _ in range(count):
            longer = [mpmath.mpf(0)] * (len(sums) + 2 * reach)
            for i, a in enumerate(sums):
                for j, b in enumerate(one):
                    longer[i + j] += a * b
            sums = longer
        unit = mpmath.mpf(shift) / mpmath.mpf(sigma) ** 2
        losses = [unit * (mpmath.mpf(shift * count) / 2 + i - reach * count) for i in range(len(sums))]

        def excess(epsilon: Any) -> Any:
            told = (p * -mpmath.expm1(epsilon - x) for p, x in zip(sums, losses, strict=True) if x > epsilon)
            return mpmath.fsum(told) - mpmath.mpf(delta)

        return float(mpmath.findroot(excess, (0, 200), solver="bisect", tol=1e-30, maxsteps=120, verify=False))


@pytest.mark.parametrize("delta", ["1e-6", "1e-12", "1e-20"])
def test_person_move_losses__keep_the_digits_of_a_small_delta(delta: str) -> None:
    exposure = Exposure("gaussian", 1, (Move(1, 1.5, 2, 1),))
    losses = person_move_losses.losses_of_spends([exposure] * 4, float(delta))
    assert losses is not None
    assert losses.epsilon(float(delta)) == pytest.approx(exact_epsilon(1.5, 2, 4, delta), rel=1e-6)


def known(kind: str, rho: float, quantiles: int) -> tuple[Claim, list[Any]]:
    """What an estimator spends, and what dp-accounting makes of each way its noise can be met (below, above)."""
    parts: list[tuple[float, int, int]]
    guarantee: Any = PureDP(epsilon=rho) if kind == "pure" else ZCDP(rho=rho)
    if kind == "approximate":
        guarantee = guarantee.to_approx(1e-9)
    if kind in {"walk", "approximate", "pure"}:
        exposure = walk_exposure(guarantee, quantiles, 1)
        assert exposure is not None
        parts = [(exposure.moves[0].scale, 2, quantiles)]
    elif kind == "keyed":
        exposure = keyed_exposure(guarantee, quantiles, 1, None)
        assert exposure is not None
        parts = [(exposure.moves[0].scale, 2, quantiles)]
    else:
        exposure = SegmentPlanner([0.5] * quantiles, guarantee).exposure
        assert exposure is not None
        parts = [(exposure.moves[0].scale, 1, 2), (exposure.moves[1].scale, 1, 1)]
    made: Any = distributions.from_discrete_laplace_mechanism
    if kind != "pure":
        made = distributions.from_discrete_gaussian_mechanism
    ways = [
        [
            made(
                1 / scale if kind == "pure" else scale,
                sensitivity=shift,
                pessimistic_estimate=above,
                value_discretization_interval=INTERVAL,
            ).self_compose(copies, tail_mass_truncation=0.0)
            for above in (False, True)
        ]
        for scale, shift, copies in parts
    ]
    rho_of_noise = exposure.size if kind == "approximate" else None
    return Claim(guarantee, rho_of_noise, exposure), ways


spends = st.lists(
    st.tuples(
        st.sampled_from(["walk", "approximate", "pure", "keyed", "segments"]),
        st.floats(0.02, 0.4),
        st.integers(1, 3),
        st.integers(1, 6),
    ),
    min_size=1,
    max_size=3,
)
others = st.lists(st.tuples(st.floats(0.01, 1.0), st.sampled_from([0.0, 1e-11]), st.integers(1, 6)), max_size=2)


@settings(max_examples=30, deadline=None)
@given(spends, others, st.sampled_from([1e-8, 1e-6, 1e-4]))
def test_person_move_losses__of_known_noise_have_the_totals_of_dp_accounting(
    kinds: list[tuple[str, float, int, int]], pairs: list[tuple[float, float, int]], delta: float
) -> None:
    """Beside bare guarantees: never below its optimistic ε, and above its pessimistic one by our rounding only."""
    claims = [
        Claim(ApproxDP(epsilon=epsilon, delta=chance) if chance else PureDP(epsilon=epsilon))
        for epsilon, chance, count in pairs
        for _ in range(count)
    ]
    begun = [oracle(pairs, pessimistic=above) if pairs else None for above in (False, True)]
    together: list[list[Any]] = [begun]
    for kind, rho, quantiles, count in kinds:
        claim, ways = known(kind, rho, quantiles)
        claims += [claim] * count
        together = [
            [
                part.self_compose(count, tail_mass_truncation=0.0)
                if before is None
                else before.compose(part.self_compose(count, tail_mass_truncation=0.0), tail_mass_truncation=0.0)
                for before, part in zip(all_before, way, strict=True)
            ]
            for all_before in together
            for way in ways
        ]
    found = total_spent(claims, delta).epsilon
    assert found >= max(low.get_epsilon_for_delta(delta + ROUNDING) for low, _ in together) - 1e-9
    # A segment's noise is met in one of two ways; the larger δ is taken at each ε, which is more than either alone.
    mixed = 2e-2 if len(together) > 1 else 0.0
    highest = max(high.get_epsilon_for_delta(delta - ROUNDING) for _, high in together)
    assert found <= highest * (1 + SPLIT + mixed) + 1e-9


def test_person_move_losses__of_less_shift_or_more_noise_would_be_below_dp_accounting() -> None:
    """The comparison can fail, in both parameters of a record."""
    guarantee = ZCDP(rho=0.1)
    sigma = guarantee.noise_scale(2)
    truth = distributions.from_discrete_gaussian_mechanism(
        sigma, sensitivity=2, pessimistic_estimate=False, value_discretization_interval=INTERVAL
    )
    lowest = truth.self_compose(10).get_epsilon_for_delta(1e-6 + ROUNDING)
    for wrong in (Move(1, sigma, 1, 1), Move(1, 1.05 * sigma, 2, 1)):
        losses = person_move_losses.losses_of_spends([Exposure("gaussian", 1, (wrong,))] * 10, 1e-6)
        assert losses is not None
        assert losses.epsilon(1e-6) < lowest - 0.2
    right = person_move_losses.losses_of_spends([Exposure("gaussian", 1, (Move(1, sigma, 2, 1),))] * 10, 1e-6)
    assert right is not None
    assert lowest - 1e-9 <= right.epsilon(1e-6) == pytest.approx(7.2854, abs=1e-4)


def test_person_move_losses__leave_what_would_take_too_long_to_the_other_rules() -> None:
    guarantee = ZCDP(rho=60.0)
    claim = Claim(guarantee, None, walk_exposure(guarantee, 1, 1))
    assert claim.exposure is not None
    assert person_move_losses.losses_of_spends([claim.exposure], 1e-6) is None
    assert total_spent([claim], 1e-6).rule == "zcdp"
    many = [Exposure("gaussian", 1, (Move(1, 10.0 + k / 1000, 2, 1),)) for k in range(600)]
    assert person_move_losses.losses_of_spends(many, 1e-6) is None
    assert person_move_losses.losses_of_spends({many[0]: person_move_losses.MOST_SPENDS + 1}, 1e-6) is None
    assert person_move_losses.losses_of_spends([], 1e-6) is None


@pytest.mark.parametrize("count", [1, 7, 100, 1500])
def test_person_move_losses__of_many_different_spends_are_near_those_of_one_lattice(count: int) -> None:
    """Spends that differ in the last digits share no lattice; their total is that of equal ones, but for rounding."""
    alike = Exposure("gaussian", 1, (Move(1, 20.0, 2, 1),))
    equal = person_move_losses.losses_of_spends([alike] * count, 1e-6)
    kinds = [Exposure("gaussian", 1, (Move(1, 20.0 * (1 + 1e-9 * (k % 300)), 2, 1),)) for k in range(count)]
    different = person_move_losses.losses_of_spends(kinds, 1e-6)
    assert equal is not None
    assert different is not None
    assert different.epsilon(1e-6) == pytest.approx(equal.epsilon(1e-6), rel=1e-3)
    assert different.epsilon(1e-6) >= equal.epsilon(1e-6) * (1 - 1e-5)


@pytest.mark.parametrize("budget", [1, 2])
def test_person_move_losses__count_all_moves_in_whichever_order_they_stand(budget: int) -> None:
    moves = Move(1, 5000.0, 1, 1), Move(1, 2.0, 2, 1)
    found = [person_move_losses.of_exposure(Exposure("laplace", budget, order)) for order in (moves, moves[::-1])]
    alone = person_move_losses.of_exposure(Exposure("laplace", budget, moves[1:]))
    for epsilon in (-0.5, 0.0, 0.3, 0.9):
        assert found[0].delta(epsilon) == pytest.approx(found[1].delta(epsilon), rel=1e-9)
        assert found[0].delta(epsilon) >= alone.delta(epsilon) * (1 - 1e-9)


def test_person_move_losses__of_far_moves_tell_no_less_at_a_negative_epsilon() -> None:
    """P(S) ≤ e^ε·Q(S) + δ for all S: at ε → -∞ a δ below 1 would be none."""
    moves = Move(1, 0.9792244975223755, 6, 1), Move(2, 0.9053933621500352, 8, 1)
    losses = person_move_losses.of_exposure(Exposure("gaussian", 2, moves))
    assert min(losses.delta(epsilon) + math.exp(epsilon) for epsilon in (-90.0, -60.0, -30.0, -10.0)) >= 1.0


def test_person_move_losses__on_record_make_no_spend_larger() -> None:
    gaussian = ZCDP(rho=0.0045)
    machine = SegmentPlanner([0.5], gaussian)
    made = [Claim(gaussian, None, machine.exposure)] * 2
    for epsilon in (0.7, 3.1, 19.53):
        pure = PureDP(epsilon=epsilon)
        own = SegmentPlanner([0.5], pure)
        with_noise = total_spent([*made, Claim(pure, None, own.exposure)], 1e-5).epsilon
        assert with_noise <= total_spent([*made, Claim(pure)], 1e-5).epsilon
