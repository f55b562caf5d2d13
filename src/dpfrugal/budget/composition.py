"""Composition: what several guarantees on the same data come to, by the tightest sound rule (Theorem 12).

Under a total of a kind whose sizes add up (ε of pure DP, ρ of zCDP), spends are summed in that size. Under a total in
(ε, δ), three rules are tried and the one with the smallest ε is named: ``sum`` adds ε and δ; ``zcdp`` adds ρ and
converts the sum to (ε, δ); ``pld`` composes privacy loss distributions, as Google's ``dp-accounting`` does: that of the
noise where an estimator has recorded it, else that of randomised response, which dominates every (ε, δ)-DP mechanism.

Worked number: fifty releases at ε = 0.1 are ε = 5 by their sum, and at δ = 1e-6 ε = 3.54 by zCDP and ε = 3.17 by their
privacy losses. Ten medians at ρ = 0.1 are ε = 7.77 by zCDP, and 7.29 by the losses of their noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dpfrugal.budget import loss_distributions, person_move_losses
from dpfrugal.budget.person_moves import Exposure
from dpfrugal.errors import ParameterError
from dpfrugal.parameters import probability
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.privacy.zcdp_conversions import epsilon_of_zcdp

# Computed bounds are multiplied by this, to cover the rounding errors of their arithmetic.
ROUNDING: Final = 1 + 1e-9
# Fractions of δ that privacy losses may take where zCDP needs the rest of it; every fraction is sound.
PARTS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class Claim:
    """A guarantee that was spent and, where they are known, the ρ of zCDP and the exposure of the same transcript."""

    guarantee: Guarantee
    rho: float | None = None
    exposure: Exposure | None = None

    @property
    def zcdp_rho(self) -> float | None:
        """The smallest known ρ of zCDP: what the guarantee implies, or that of its noise; None for a bare (ε, δ)."""
        implied = self.guarantee.implied_rho
        if implied is None:
            return self.rho
        # A guarantee without (ε, δ) states its ρ itself: a second one is not taken for it.
        return implied if self.rho is None or self.guarantee.epsilon_delta is None else min(self.rho, implied)


@dataclass(frozen=True)
class Spent:
    """What was spent as (ε, δ), and the rule that gave it."""

    epsilon: float
    delta: float
    rule: str

    def __str__(self) -> str:
        return f"ε={self.epsilon:.4g}, δ={self.delta:g}"


def exact(number: float) -> Fraction:
    """The decimal number that a float prints as, so that three times 0.1 is 0.3."""
    return Fraction(repr(number))


def added(*numbers: float) -> float:
    """The sum of decimals, rounded upwards.

    >>> added(0.1, 0.2), 0.1 + 0.2
    (0.3, 0.30000000000000004)
    """
    return _upwards(sum(map(exact, numbers), Fraction(0)))


def total_spent(claims: Sequence[Claim], delta: float) -> Spent:
    """The smallest ε found for which all claims together are (ε, δ)-DP.

    No claim may have been chosen by looking at a release: neither its guarantee, nor what its exposure depends on, nor
    whether it was made at all.
    """
    delta = probability("delta", delta)
    if not claims:
        return Spent(0.0, delta, "sum")
    known = [claim for claim in claims if claim.exposure is not None]
    unknown = [claim for claim in claims if claim.exposure is None]
    found = _epsilons_by_rule([*unknown, *(replace(claim, exposure=None) for claim in known)], [], delta)
    if known:
        found += _epsilons_by_rule(unknown, known, delta)
        # The newest claim by its guarantee alone, so that rounding never makes a spend with recorded noise cost more.
        found += _epsilons_by_rule([*unknown, replace(known[-1], exposure=None)], known[:-1], delta)
    epsilon, rule = min(found, key=lambda pair: pair[0])
    if math.isinf(epsilon):
        raise ParameterError(
            f"delta={delta:g} is too small to state the total at: the δ of what was spent add up to more."
        )
    return Spent(epsilon, delta, rule)


def _epsilons_by_rule(claims: Sequence[Claim], known: Sequence[Claim], delta: float) -> list[tuple[float, str]]:
    """ε by each sound division of the claims among the rules; claims with ``known`` noise go to privacy losses."""
    stated = [claim for claim in claims if claim.guarantee.epsilon_delta is not None]
    unstated = [claim for claim in claims if claim.guarantee.epsilon_delta is None]
    with_rho = [claim for claim in claims if claim.zcdp_rho is not None]
    without_rho = [claim for claim in claims if claim.zcdp_rho is None]
    pure = [claim for claim in claims if claim.guarantee.pure_epsilon is not None]
    noisy = [claim for claim in with_rho if claim.guarantee.pure_epsilon is None]
    ways = [
        (_epsilon_by_losses([*known, *stated], unstated, delta), "pld"),
        (_epsilon_by_losses([*known, *without_rho, *pure], noisy, delta), "pld"),
    ]
    if known:
        return ways
    return [
        (_epsilon_by_sums(stated, unstated, delta), "zcdp" if unstated else "sum"),
        (_epsilon_by_sums(without_rho, with_rho, delta), "zcdp"),
        (_epsilon_by_sums([*without_rho, *pure], noisy, delta), "zcdp"),
        *ways,
    ]


def fits(total: Guarantee, claims: Sequence[Claim], *, adaptive: bool = False) -> str | None:
    """The rule by which all claims together are within ``total``; None where no rule shows it.

    Sums of ε and of ρ are sound even if guarantees are chosen by looking at earlier releases. Under a total in (ε, δ)
    only the sum of ε and δ is: with ``adaptive`` no other rule is tried.
    """
    if total.composition_rule is not None:
        taken = _taken(total, claims)
        return total.composition_rule if taken is not None and taken <= exact(total.size) else None
    if total.epsilon_delta is None:
        return None
    epsilon, delta = total.epsilon_delta
    if adaptive:
        return "sum" if _epsilon_by_sums(claims, [], delta) <= epsilon else None
    try:
        spent = total_spent(claims, delta)
    except ParameterError:
        return None
    return spent.rule if exact(spent.epsilon) <= exact(epsilon) else None


def left(total: Guarantee, claims: Sequence[Claim], like: Guarantee, *, adaptive: bool = False) -> Guarantee | None:
    """The largest guarantee of the kind of ``like`` that still fits, to four digits; None where none fits."""

    def possible(size: float) -> bool:
        return size > 0 and fits(total, [*claims, Claim(like.of_size(size))], adaptive=adaptive) is not None

    taken = _taken(total, claims)
    if taken is not None and total.taken_by(like, like.implied_rho) == like.size:
        low = float(exact(total.size) - taken)
    else:
        plainly = _epsilon_by_sums(
            [claim for claim in claims if claim.guarantee.epsilon_delta is not None], [], 1 - 1e-16
        )
        most = 0.0 if total.epsilon_delta is None else total.epsilon_delta[0]
        rest = float(f"{most - plainly:.12g}")
        low, high = (rest, 1.01 * rest) if possible(rest) else (0.0, 1e-3)
        while high < 1e4 and possible(high):
            low, high = high, high * 4
        while high - low > 2e-3 * high and high > 1e-6:
            middle = float(f"{(low + high) / 2:.4g}")  # with few digits the lattice of losses stays coarse
            low, high = (middle, high) if possible(middle) else (low, middle)
    if low <= 0:
        return None
    digits = 3 - math.floor(math.log10(low))
    for size in (float(f"{low:.12g}"), math.floor(low * 10.0**digits) / 10.0**digits):
        if possible(size):
            return like.of_size(size)
    return None


def used(total: Guarantee, claims: Sequence[Claim], *, adaptive: bool = False) -> float:
    """How much of ``total`` is spent, by the rule that decides: in its size, which is ε (at its δ), ρ or the like."""
    if total.composition_rule is not None:
        taken = _taken(total, claims)
        return math.inf if taken is None else _upwards(taken)
    if total.epsilon_delta is None:
        return math.inf
    delta = total.epsilon_delta[1]
    return _epsilon_by_sums(claims, [], delta) if adaptive else total_spent(claims, delta).epsilon


def _taken(total: Guarantee, claims: Sequence[Claim]) -> Fraction | None:
    """The sizes that all claims take of a total; None where one of them cannot be part of it."""
    sizes = [total.taken_by(claim.guarantee, claim.zcdp_rho) for claim in claims]
    known = [exact(size) for size in sizes if size is not None]
    return sum(known, Fraction(0)) if len(known) == len(claims) else None


def _epsilon_by_sums(plain: Sequence[Claim], concentrated: Sequence[Claim], delta: float) -> float:
    """ε, with the ``plain`` claims' ε and δ added, and the others' ρ added and converted at the δ that is left."""
    epsilon, taken = Fraction(0), Fraction(0)
    for claim in plain:
        if (pair := claim.guarantee.epsilon_delta) is None:
            return math.inf
        epsilon, taken = epsilon + exact(pair[0]), taken + exact(pair[1])
    if taken > exact(delta):
        return math.inf
    if not concentrated:
        return _upwards(epsilon)
    rest = float(exact(delta) - taken) * (1 - 1e-12)
    if rest <= 0:
        return math.inf
    return (_upwards(epsilon) + epsilon_of_zcdp(_rho(concentrated), rest)) * ROUNDING


def _epsilon_by_losses(plain: Sequence[Claim], concentrated: Sequence[Claim], delta: float) -> float:
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


def _losses(claims: Sequence[Claim], delta: float) -> loss_distributions.Losses | None:
    stated = [claim.guarantee.epsilon_delta for claim in claims if claim.exposure is None]
    pairs = [pair for pair in stated if pair is not None]
    if not claims or len(claims) > loss_distributions.MOST_PAIRS or len(pairs) < len(stated):
        return None
    if max(pairs, default=(0.0, 0.0))[0] > loss_distributions.LARGEST_EPSILON:
        return None
    known = [claim.exposure for claim in claims if claim.exposure is not None]
    return (
        person_move_losses.losses_of_spends([*known, *pairs], delta)
        if known
        else loss_distributions.losses_of_pairs(pairs)
    )


def _rho(claims: Sequence[Claim]) -> float:
    """The sum of ρ; infinite where a claim has none."""
    rhos = [rho for claim in claims if (rho := claim.zcdp_rho) is not None]
    return added(*rhos) if len(rhos) == len(claims) else math.inf


def _upwards(number: Fraction) -> float:
    """The float that prints as ``number``, or the next one above it."""
    nearest = float(number)
    return nearest if exact(nearest) >= number else math.nextafter(nearest, math.inf)
