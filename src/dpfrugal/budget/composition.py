"""What several guarantees on the same data add up to, by the tightest rule that is sound (docs/proofs.md, Theorem 12).

Pure guarantees add their ε, zero-concentrated ones their ρ; an ε-DP transcript is ε·tanh(ε/2)-zCDP. As (ε, δ), three
rules are tried and the best is named: ``sum`` adds ε and δ; ``zcdp`` adds ρ and converts once; ``pld`` composes
privacy losses, as Google's ``dp-accounting`` does: those of the noise, where an estimator has recorded it, else those
of randomised response, which no (ε, δ)-DP transcript exceeds.

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

# What computed bounds are raised by, to cover the rounding of their arithmetic.
ROUNDING: Final = 1 + 1e-9
# Parts of δ that privacy losses may take where zCDP needs the rest of it; every part is sound.
PARTS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True)
class Claim:
    """A guarantee that was spent; where they are known, the ρ of zCDP and the noise that the same transcript has."""

    guarantee: Guarantee
    rho: float | None = None
    exposure: Exposure | None = None

    @property
    def concentrated(self) -> float | None:
        """ρ: the guarantee's own, that of its noise, or the one that ε-DP implies; None for a bare (ε, δ)."""
        implied = self.guarantee.implied_rho
        if implied is None:
            return self.rho
        # Beside the ρ of a zero-concentrated guarantee no other counts.
        return implied if self.rho is None or self.guarantee.epsilon_delta is None else min(self.rho, implied)


@dataclass(frozen=True)
class Spent:
    """A total as (ε, δ), and the rule that gave it."""

    epsilon: float
    delta: float
    rule: str

    def __str__(self) -> str:
        return f"ε={self.epsilon:.4g}, δ={self.delta:g}"


def exact(number: float) -> Fraction:
    """The decimal that a float prints as: three times 0.1 is 0.3."""
    return Fraction(repr(number))


def added(*numbers: float) -> float:
    """The sum of decimals, rounded upwards.

    >>> added(0.1, 0.2), 0.1 + 0.2
    (0.3, 0.30000000000000004)
    """
    return _upwards(sum(map(exact, numbers), Fraction(0)))


def composed(claims: Sequence[Claim], delta: float) -> Spent:
    """The smallest ε found for which all claims together are (ε, δ)-DP.

    None may have been chosen by looking at a release: neither its guarantee nor what its exposure depends on, nor
    whether it was made at all.
    """
    delta = probability("delta", delta)
    if not claims:
        return Spent(0.0, delta, "sum")
    known = [claim for claim in claims if claim.exposure is not None]
    unknown = [claim for claim in claims if claim.exposure is None]
    found = _ways([*unknown, *(replace(claim, exposure=None) for claim in known)], [], delta)
    if known:
        found += _ways(unknown, known, delta)
        # The newest by its guarantee alone: so that, for all rounding, noise on record never makes a spend larger.
        found += _ways([*unknown, replace(known[-1], exposure=None)], known[:-1], delta)
    epsilon, rule = min(found, key=lambda pair: pair[0])
    if math.isinf(epsilon):
        raise ParameterError(
            f"delta={delta:g} is too small to state the total at: the δ of what was spent add up to more."
        )
    return Spent(epsilon, delta, rule)


def _ways(claims: Sequence[Claim], known: Sequence[Claim], delta: float) -> list[tuple[float, str]]:
    """The ε of the ways to divide claims among the rules, those whose noise is known among privacy losses."""
    stated = [claim for claim in claims if claim.guarantee.epsilon_delta is not None]
    unstated = [claim for claim in claims if claim.guarantee.epsilon_delta is None]
    with_rho = [claim for claim in claims if claim.concentrated is not None]
    without_rho = [claim for claim in claims if claim.concentrated is None]
    pure = [claim for claim in claims if claim.guarantee.pure_epsilon is not None]
    noisy = [claim for claim in with_rho if claim.guarantee.pure_epsilon is None]
    ways = [
        (_lost([*known, *stated], unstated, delta), "pld"),
        (_lost([*known, *without_rho, *pure], noisy, delta), "pld"),
    ]
    if known:
        return ways
    return [
        (_summed(stated, unstated, delta), "zcdp" if unstated else "sum"),
        (_summed(without_rho, with_rho, delta), "zcdp"),
        (_summed([*without_rho, *pure], noisy, delta), "zcdp"),
        *ways,
    ]


def fits(total: Guarantee, claims: Sequence[Claim], *, adaptive: bool = False) -> str | None:
    """The rule by which all claims together are within ``total``, or None where there is none.

    Sums of ε and of ρ hold even if guarantees are chosen by looking at earlier releases. As (ε, δ) that is so for the
    sum of ε and δ only: ``adaptive`` allows nothing else.
    """
    if total.composition_rule is not None:
        taken = _taken(total, claims)
        return total.composition_rule if taken is not None and taken <= exact(total.size) else None
    if total.epsilon_delta is None:
        return None
    epsilon, delta = total.epsilon_delta
    if adaptive:
        return "sum" if _summed(claims, [], delta) <= epsilon else None
    try:
        spent = composed(claims, delta)
    except ParameterError:
        return None
    return spent.rule if exact(spent.epsilon) <= exact(epsilon) else None


def left(total: Guarantee, claims: Sequence[Claim], like: Guarantee, *, adaptive: bool = False) -> Guarantee | None:
    """The largest guarantee of the kind of ``like`` that still fits, to four digits; None where nothing does."""

    def possible(size: float) -> bool:
        return size > 0 and fits(total, [*claims, Claim(like.of_size(size))], adaptive=adaptive) is not None

    taken = _taken(total, claims)
    if taken is not None and total.taken_by(like, like.implied_rho) == like.size:
        low = float(exact(total.size) - taken)
    else:
        plainly = _summed([claim for claim in claims if claim.guarantee.epsilon_delta is not None], [], 1 - 1e-16)
        most = 0.0 if total.epsilon_delta is None else total.epsilon_delta[0]
        rest = float(f"{most - plainly:.12g}")
        low, high = (rest, 1.01 * rest) if possible(rest) else (0.0, 1e-3)
        while high < 1e4 and possible(high):
            low, high = high, high * 4
        while high - low > 2e-3 * high and high > 1e-6:
            middle = float(f"{(low + high) / 2:.4g}")  # few digits keep the lattice of losses coarse
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
    return _summed(claims, [], delta) if adaptive else composed(claims, delta).epsilon


def _taken(total: Guarantee, claims: Sequence[Claim]) -> Fraction | None:
    """The sizes that all claims take of a total; None where one of them cannot be part of it."""
    sizes = [total.taken_by(claim.guarantee, claim.concentrated) for claim in claims]
    known = [exact(size) for size in sizes if size is not None]
    return sum(known, Fraction(0)) if len(known) == len(claims) else None


def _summed(plain: Sequence[Claim], concentrated: Sequence[Claim], delta: float) -> float:
    """The ε of some claims by adding ε and δ, and of the others by adding ρ and converting with the δ that is left."""
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


def _lost(plain: Sequence[Claim], concentrated: Sequence[Claim], delta: float) -> float:
    """The same, with privacy losses composed instead of added: of known noise, or of whatever has the guarantee."""
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
    return person_move_losses.composed([*known, *pairs], delta) if known else loss_distributions.composed(pairs)


def _rho(claims: Sequence[Claim]) -> float:
    """The sum of ρ; infinite where a claim has none."""
    rhos = [rho for claim in claims if (rho := claim.concentrated) is not None]
    return added(*rhos) if len(rhos) == len(claims) else math.inf


def _upwards(number: Fraction) -> float:
    """The float that prints as ``number``, or the next one above it."""
    nearest = float(number)
    return nearest if exact(nearest) >= number else math.nextafter(nearest, math.inf)
