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
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, _epsilon_of_zcdp

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
        if isinstance(self.guarantee, ZCDP):
            return self.guarantee.rho
        if isinstance(self.guarantee, PureDP):
            implied = self.guarantee.epsilon * math.tanh(self.guarantee.epsilon / 2) * (1 + 1e-12)
            return implied if self.rho is None else min(self.rho, implied)
        return self.rho


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
    gaussian = [claim for claim in claims if isinstance(claim.guarantee, ZCDP)]
    others = [claim for claim in claims if not isinstance(claim.guarantee, ZCDP)]
    with_rho = [claim for claim in claims if claim.concentrated is not None]
    bare = [claim for claim in claims if claim.concentrated is None]
    noisy = [claim for claim in claims if claim.concentrated is not None and not isinstance(claim.guarantee, PureDP)]
    pure = [claim for claim in claims if isinstance(claim.guarantee, PureDP)]
    ways = [
        (_lost([*known, *others], gaussian, delta), "pld"),
        (_lost([*known, *bare, *pure], noisy, delta), "pld"),
    ]
    if known:
        return ways
    return [
        (_summed(others, gaussian, delta), "zcdp" if gaussian else "sum"),
        (_summed(bare, with_rho, delta), "zcdp"),
        (_summed([*bare, *pure], noisy, delta), "zcdp"),
        *ways,
    ]


def fits(total: Guarantee, claims: Sequence[Claim], *, adaptive: bool = False) -> str | None:
    """The rule by which all claims together are within ``total``, or None where there is none.

    Sums of ε and of ρ hold even if guarantees are chosen by looking at earlier releases. As (ε, δ) that is so for the
    sum of ε and δ only: ``adaptive`` allows nothing else.
    """
    if isinstance(total, PureDP):
        pure = [exact(claim.guarantee.epsilon) for claim in claims if isinstance(claim.guarantee, PureDP)]
        return "sum" if len(pure) == len(claims) and sum(pure) <= exact(total.epsilon) else None
    if isinstance(total, ZCDP):
        rhos = [exact(rho) for claim in claims if (rho := claim.concentrated) is not None]
        return "zcdp" if len(rhos) == len(claims) and sum(rhos) <= exact(total.rho) else None
    if adaptive:
        plain = not any(isinstance(claim.guarantee, ZCDP) for claim in claims)
        return "sum" if plain and _summed(claims, [], total.delta) <= total.epsilon else None
    try:
        spent = composed(claims, total.delta)
    except ParameterError:
        return None
    return spent.rule if exact(spent.epsilon) <= exact(total.epsilon) else None


def left(total: Guarantee, claims: Sequence[Claim], like: Guarantee, *, adaptive: bool = False) -> Guarantee | None:
    """The largest guarantee of the kind of ``like`` that still fits, to four digits; None where nothing does."""

    def candidate(size: float) -> Guarantee:
        if isinstance(like, ZCDP):
            return ZCDP(rho=size)
        return PureDP(epsilon=size) if isinstance(like, PureDP) else ApproxDP(epsilon=size, delta=like.delta)

    def possible(size: float) -> bool:
        return size > 0 and fits(total, [*claims, Claim(candidate(size))], adaptive=adaptive) is not None

    if isinstance(total, PureDP) and isinstance(like, PureDP):
        low = float(exact(total.epsilon) - sum(exact(_epsilon(claim)) for claim in claims))
    elif isinstance(total, ZCDP) and isinstance(like, ZCDP):
        low = float(exact(total.rho) - sum(exact(claim.concentrated or 0.0) for claim in claims))
    else:
        plainly = _summed([claim for claim in claims if not isinstance(claim.guarantee, ZCDP)], [], 1 - 1e-16)
        rest = float(f"{getattr(total, 'epsilon', 0.0) - plainly:.12g}")
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
            return candidate(size)
    return None


def used(total: Guarantee, claims: Sequence[Claim], *, adaptive: bool = False) -> float:
    """How much of ``total`` is spent, by the rule that decides: in its ρ, or in its ε (at its δ)."""
    if isinstance(total, ZCDP):
        return _rho(claims)
    if isinstance(total, PureDP) or adaptive:
        return added(*map(_epsilon, claims))
    return composed(claims, total.delta).epsilon


def _epsilon(claim: Claim) -> float:
    """ε of a claim that is not zero-concentrated."""
    return math.inf if isinstance(claim.guarantee, ZCDP) else claim.guarantee.epsilon


def _delta(claim: Claim) -> float:
    return claim.guarantee.delta if isinstance(claim.guarantee, ApproxDP) else 0.0


def _summed(plain: Sequence[Claim], concentrated: Sequence[Claim], delta: float) -> float:
    """The ε of some claims by adding ε and δ, and of the others by adding ρ and converting with the δ that is left."""
    epsilon, taken = Fraction(0), Fraction(0)
    for claim in plain:
        epsilon += exact(_epsilon(claim))
        taken += exact(_delta(claim))
    if taken > exact(delta):
        return math.inf
    if not concentrated:
        return _upwards(epsilon)
    rest = float(exact(delta) - taken) * (1 - 1e-12)
    if rest <= 0:
        return math.inf
    return (_upwards(epsilon) + _epsilon_of_zcdp(_rho(concentrated), rest)) * ROUNDING


def _lost(plain: Sequence[Claim], concentrated: Sequence[Claim], delta: float) -> float:
    """The same, with privacy losses composed instead of added: of known noise, or of whatever has the guarantee."""
    if (losses := _losses(plain, delta)) is None:
        return math.inf
    if not concentrated:
        return losses.epsilon(delta) * ROUNDING
    rho = _rho(concentrated)
    return min(
        (losses.epsilon(part * delta) + _epsilon_of_zcdp(rho, (1 - part) * delta * (1 - 1e-12))) * ROUNDING
        for part in PARTS
    )


def _losses(claims: Sequence[Claim], delta: float) -> loss_distributions.Losses | None:
    pairs = [(_epsilon(claim), _delta(claim)) for claim in claims if claim.exposure is None]
    if not claims or len(claims) > loss_distributions.MOST_PAIRS:
        return None
    if max(pairs, default=(0.0, 0.0))[0] > loss_distributions.LARGEST_EPSILON:
        return None
    known = [claim.exposure for claim in claims if claim.exposure is not None]
    return person_move_losses.composed([*known, *pairs], delta) if known else loss_distributions.composed(pairs)


def _rho(claims: Sequence[Claim]) -> float:
    return added(*(claim.concentrated or 0.0 for claim in claims))


def _upwards(number: Fraction) -> float:
    """The float that prints as ``number``, or the next one above it."""
    nearest = float(number)
    return nearest if exact(nearest) >= number else math.nextafter(nearest, math.inf)
