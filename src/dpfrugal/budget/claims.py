"""What was spent, as composition sees it: kinds of claims, and how often each of them was made.

A service that spends the same guarantee every minute makes one kind of claim, half a million times a year. What all
spends come to depends on the kinds and on how often each was made, not on their order, so a ledger keeps these counts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dpfrugal.budget.person_moves import Exposure
from dpfrugal.privacy.guarantees import Guarantee


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
class Tally:
    """Each kind of claim with the number of times that it was made, in the order in which the kinds came first.

    ``newest`` is the last claim whose noise is on record.

    >>> from dpfrugal.privacy.guarantees import PureDP
    >>> one = Claim(PureDP(epsilon=1.0))
    >>> Tally.of([one, one]).plus(one).size
    3
    """

    kinds: tuple[tuple[Claim, int], ...] = ()
    newest: Claim | None = None

    @classmethod
    def of(cls, claims: "Iterable[Claim] | Tally") -> "Tally":
        """The tally of single claims; one that is a tally already is itself."""
        if isinstance(claims, Tally):
            return claims
        counts: dict[Claim, int] = {}
        newest = None
        for claim in claims:
            counts[claim] = counts.get(claim, 0) + 1
            newest = claim if claim.exposure is not None else newest
        return cls(tuple(counts.items()), newest)

    def plus(self, claim: Claim, times: int = 1) -> "Tally":
        """The same and one claim more, or one fewer with ``times=-1``."""
        counts = dict(self.kinds)
        counts[claim] = counts.get(claim, 0) + times
        newest = claim if claim.exposure is not None and times > 0 else self.newest
        return Tally(tuple((kind, count) for kind, count in counts.items() if count), newest)

    def without_exposures(self) -> "Tally":
        """The same by the guarantees alone."""
        counts: dict[Claim, int] = {}
        for claim, times in self.kinds:
            plain = claim if claim.exposure is None else replace(claim, exposure=None)
            counts[plain] = counts.get(plain, 0) + times
        return Tally(tuple(counts.items()))

    @property
    def size(self) -> int:
        """How many claims were made."""
        return sum(times for _, times in self.kinds)

    def __iter__(self) -> Iterator[tuple[Claim, int]]:
        return iter(self.kinds)

    def __bool__(self) -> bool:
        return bool(self.kinds)
