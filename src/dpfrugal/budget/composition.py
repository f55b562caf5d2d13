"""Composition: what several guarantees on the same data come to, by the tightest sound rule (Theorem 12).

Under a total of a kind whose sizes add up (ε of pure DP, ρ of zCDP), spends are summed in that size. Under a total in
(ε, δ), three rules are tried and the one with the smallest ε is named: ``sum`` adds ε and δ; ``zcdp`` adds ρ and
converts the sum to (ε, δ); ``pld`` composes privacy loss distributions, as Google's ``dp-accounting`` does: that of the
noise where an estimator has recorded it, else that of randomised response, which dominates every (ε, δ)-DP mechanism.

Worked number: fifty releases at ε = 0.1 are ε = 5 by their sum, and at δ = 1e-6 ε = 3.54 by zCDP and ε = 3.17 by their
privacy losses. Ten medians at ρ = 0.1 are ε = 7.77 by zCDP, and 7.29 by the losses of their noise.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpfrugal.budget import loss_distributions, person_move_losses
from dpfrugal.budget.claims import Claim, Tally
from dpfrugal.errors import ParameterError
from dpfrugal.parameters import exact, probability
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.privacy.zcdp_conversions import epsilon_of_zcdp

# Computed bounds are multiplied by this, to cover the rounding errors of their arithmetic.
ROUNDING: Final = 1 + 1e-9
# Fractions of δ that privacy losses may take where zCDP needs the rest of it; every fraction is sound.
PARTS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)


Claims = Tally | Iterable[Claim]
Kinds = Sequence[tuple[Claim, int]]


@dataclass(frozen=True)
class Spent:
    """What was spent as (ε, δ), and the rule that gave it."""

    epsilon: float
    delta: float
    rule: str

    def __str__(self) -> str:
        return f"ε={self.epsilon:.4g}, δ={self.delta:g}"


def added(*numbers: float) -> float:
    """The sum of decimals, rounded upwards.

    >>> added(0.1, 0.2), 0.1 + 0.2
    (0.3, 0.30000000000000004)
    """
    return _upwards(sum(map(exact, numbers), Fraction(0)))


def total_spent(claims: Claims, delta: float) -> Spent:
    """The smallest ε found for which all claims together are (ε, δ)-DP.

    No claim may have been chosen by looking at a release: neither its guarantee, nor what its exposure depends on, nor
    whether it was made at all.
    """
    delta, made = probability("delta", delta), Tally.of(claims)
    if not made:
        return Spent(0.0, delta, "sum")
    known = [kind for kind in made if kind[0].exposure is not None]
    unknown = [kind for kind in made if kind[0].exposure is None]
    found = _epsilons_by_rule(list(made.without_exposures()), [], delta)
    if known:
        found += _epsilons_by_rule(unknown, known, delta)
    if made.newest is not None:
        # The newest claim by its guarantee alone, so that rounding never makes a spend with recorded noise cost more.
        older = made.plus(made.newest, -1)
        again = [(replace(made.newest, exposure=None), 1)]
        others = [kind for kind in older if kind[0].exposure is not None]
        found += _epsilons_by_rule([*unknown, *again], others, delta)
    epsilon, rule = min(found, key=lambda pair: pair[0])
    if math.isinf(epsilon):
        raise ParameterError(
            f"delta={delta:g} is too small to state the total at: the δ of what was spent add up to more."
        )
    return Spent(epsilon, delta, rule)


def _epsilons_by_rule(claims: Kinds, known: Kinds, delta: float) -> list[tuple[float, str]]:
    """ε by each sound division of the claims among the rules; claims with ``known`` noise go to privacy losses."""
    stated = [kind for kind in claims if kind[0].guarantee.epsilon_delta is not None]
    unstated = [kind for kind in claims if kind[0].guarantee.epsilon_delta is None]
    with_rho = [kind for kind in claims if kind[0].zcdp_rho is not None]
    without_rho = [kind for kind in claims if kind[0].zcdp_rho is None]
    pure = [kind for kind in claims if kind[0].guarantee.pure_epsilon is not None]
    noisy = [kind for kind in with_rho if kind[0].guarantee.pure_epsilon is None]
    by_losses = {}  # two divisions may be the same one
    for plain, concentrated in (([*known, *stated], unstated), ([*known, *without_rho, *pure], noisy)):
        by_losses[frozenset(plain), frozenset(concentrated)] = (plain, concentrated)
    ways = [(_epsilon_by_losses(*way, delta), "pld") for way in by_losses.values()]
    if known:
        return ways
    return [
        (_epsilon_by_sums(stated, unstated, delta), "zcdp" if unstated else "sum"),
        (_epsilon_by_sums(without_rho, with_rho, delta), "zcdp"),
        (_epsilon_by_sums([*without_rho, *pure], noisy, delta), "zcdp"),
        *ways,
    ]


def fits(total: Guarantee, claims: Claims, *, adaptive: bool = False) -> str | None:
    """The rule by which all claims together are within ``total``; None where no rule shows it.

    Sums of ε and of ρ are sound even if guarantees are chosen by looking at earlier releases. Under a total in (ε, δ)
    only the sum of ε and δ is: with ``adaptive`` no other rule is tried.
    """
    made = Tally.of(claims)
    if total.composition_rule is not None:
        taken = _taken(total, made)
        return total.composition_rule if taken is not None and taken <= exact(total.size) else None
    if total.epsilon_delta is None:
        return None
    epsilon, delta = total.epsilon_delta
    if adaptive:
        return "sum" if _epsilon_by_sums(made.kinds, [], delta) <= epsilon else None
    try:
        spent = total_spent(made, delta)
    except ParameterError:
        return None
    return spent.rule if exact(spent.epsilon) <= exact(epsilon) else None


def left(total: Guarantee, claims: Claims, like: Guarantee, *, adaptive: bool = False) -> Guarantee | None:
    """The largest guarantee of the kind of ``like`` that still fits, to four digits; None where none fits."""
    made = Tally.of(claims)

    def possible(size: float) -> bool:
        return size > 0 and fits(total, made.plus(Claim(like.of_size(size))), adaptive=adaptive) is not None

    taken = _taken(total, made)
    if taken is not None and total.taken_by(like, like.implied_rho) == like.size:
        low = float(exact(total.size) - taken)
    else:
        stated = [kind for kind in made if kind[0].guarantee.epsilon_delta is not None]
        most = 0.0 if total.epsilon_delta is None else total.epsilon_delta[0]
        rest = float(f"{most - _epsilon_by_sums(stated, [], 1 - 1e-16):.12g}")
        low = _largest(total, made, like, rest if possible(rest) else 0.0, adaptive=adaptive)
    if low <= 0:
        return None
    digits = 3 - math.floor(math.log10(low))
    for size in (float(f"{low:.12g}"), math.floor(low * 10.0**digits) / 10.0**digits):
        if possible(size):
            return like.of_size(size)
    return None


def _largest(total: Guarantee, made: Tally, like: Guarantee, low: float, *, adaptive: bool) -> float:
    """The largest size that fits, to two parts in a thousand, found by secants; ``low`` is one that fits, or 0.

    What is used grows with the size, and nearly in a straight line; every few steps the interval is halved instead.
    """

    def missing(size: float) -> float:
        """How far the total is from being used up; negative where it is exceeded."""
        try:
            return total.size - used(total, made.plus(Claim(like.of_size(size))), adaptive=adaptive)
        except ParameterError:
            return -math.inf

    at_low = missing(low) if low else _missing_of(total, made, adaptive=adaptive)
    reach = min(max(1.0004 * at_low, 2e-3 * low, 1e-3), 1e4)
    while (at_high := missing(high := low + reach)) >= 0 and high < 1e4:
        low, at_low, reach = high, at_high, 2 * reach
    for step in range(60):
        if high - low <= 2e-3 * high or high <= 1e-6:
            break
        share = at_low / (at_low - at_high) if math.isfinite(at_high) and at_low > 0 else 0.5
        # Beside the crossing, on alternating sides, so that both ends come near to it.
        share = 0.5 if step % 4 == 3 else min(max(share * (1.0008 if step % 2 else 0.9992), 5e-4), 1 - 5e-4)
        middle = float(f"{low + share * (high - low):.4g}")  # with few digits the lattice of losses stays coarse
        if not low < middle < high:
            break
        if (found := missing(middle)) >= 0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    return low


def _missing_of(total: Guarantee, made: Tally, *, adaptive: bool) -> float:
    try:
        return total.size - used(total, made, adaptive=adaptive)
    except ParameterError:
        return 0.0


def used(total: Guarantee, claims: Claims, *, adaptive: bool = False) -> float:
    """How much of ``total`` is spent, by the rule that decides: in its size, which is ε (at its δ), ρ or the like."""
    made = Tally.of(claims)
    if total.composition_rule is not None:
        taken = _taken(total, made)
        return math.inf if taken is None else _upwards(taken)
    if total.epsilon_delta is None:
        return math.inf
    delta = total.epsilon_delta[1]
    return _epsilon_by_sums(made.kinds, [], delta) if adaptive else total_spent(made, delta).epsilon


def _taken(total: Guarantee, made: Tally) -> Fraction | None:
    """The sizes that all claims take of a total; None where one of them cannot be part of it."""
    taken = Fraction(0)
    for claim, times in made:
        if (size := total.taken_by(claim.guarantee, claim.zcdp_rho)) is None:
            return None
        taken += times * exact(size)
    return taken


def _epsilon_by_sums(plain: Kinds, concentrated: Kinds, delta: float) -> float:
    """ε, with the ``plain`` claims' ε and δ added, and the others' ρ added and converted at the δ that is left."""
    epsilon, taken = Fraction(0), Fraction(0)
    for claim, times in plain:
        if (pair := claim.guarantee.epsilon_delta) is None:
            return math.inf
        epsilon, taken = epsilon + times * exact(pair[0]), taken + times * exact(pair[1])
    if taken > exact(delta):
        return math.inf
    if not concentrated:
        return _upwards(epsilon)
    rest = float(exact(delta) - taken) * (1 - 1e-12)
    if rest <= 0:
        return math.inf
    return (_upwards(epsilon) + epsilon_of_zcdp(_rho(concentrated), rest)) * ROUNDING


def _epsilon_by_losses(plain: Kinds, concentrated: Kinds, delta: float) -> float:
    """The same with the plain claims' privacy losses composed: those of known noise, or of randomised response."""
    if (losses := _losses(plain, delta)) is None:
        return math.inf
    if not concentrated:
        return losses.epsilon(delta) * ROUNDING
    rho = _rho(concentrated)
    return min(
        (losses.epsilon(part * delta) + epsilon_of_zcdp(rho, (1 - part) * delta * (1 - 1e-12))) * ROUNDING
        for part in PARTS
    )


def _losses(kinds: Kinds, delta: float) -> loss_distributions.Losses | None:
    counts: Counter[person_move_losses.Kind] = Counter()
    for claim, times in kinds:
        kind = claim.guarantee.epsilon_delta if claim.exposure is None else claim.exposure
        if kind is None or (isinstance(kind, tuple) and kind[0] > loss_distributions.LARGEST_EPSILON):
            return None
        counts[kind] += times
    pairs = Counter({kind: times for kind, times in counts.items() if isinstance(kind, tuple)})
    if pairs and len(pairs) == len(counts) and pairs.total() <= loss_distributions.MOST_PAIRS:
        return loss_distributions.losses_of_pairs(pairs)
    return person_move_losses.losses_of_spends(counts, delta)


def _rho(kinds: Kinds) -> float:
    """The sum of ρ, rounded upwards; infinite where a claim has none."""
    total = Fraction(0)
    for claim, times in kinds:
        if (rho := claim.zcdp_rho) is None:
            return math.inf
        total += times * exact(rho)
    return _upwards(total)


def _upwards(number: Fraction) -> float:
    """The float that prints as ``number``, or the next one above it."""
    nearest = float(number)
    return nearest if exact(nearest) >= number else math.nextafter(nearest, math.inf)
