"""Exposure: how far one person can change the integers of a transcript, and the noise on them.

An estimator adds noise to a few integers at a time: the estimates of a release, the counts of a segment. Over the whole
transcript a person has a *budget*. A *move* costs part of it and changes ``copies`` integers by at most ``shift`` each,
under noise of one ``scale``. Which moves are made, and when, may depend on all earlier releases. The privacy loss of
such a transcript is bounded in docs/proofs.md, Theorem 14.

Worked number: one median of ``DPFrugal1U`` at ρ = 0.1 has a budget of 1 and one move: one integer, by at most 2, under
Gaussian noise of scale 4.472. That is ε = 1.991 at δ = 1e-6; ρ = 0.1 alone implies ε = 2.142.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from dpfrugal.privacy.noise_distributions import DISTRIBUTIONS, NoiseDistribution
from dpfrugal.storage.json_values import fields_of, integer_of, list_of, packed, unpacked

MOST_BUDGET: Final = 8  # the loss of a larger one would take too long to compute
LARGEST_SCALE: Final = 1e4
MOST_COPIES: Final = 1000
# An exposure may be smaller than the guarantee by this factor, which is rounding.
ROUNDING: Final = 1 - 1e-9


@dataclass(frozen=True)
class Move:
    """A change of ``copies`` integers under independent noise, each by at most ``shift``."""

    cost: int  # of the budget
    scale: float  # of the noise: σ of a Gaussian, b of a Laplace distribution
    shift: int
    copies: int


@dataclass(frozen=True)
class Exposure:
    """What one person can change in any transcript of an estimator: moves whose costs sum to at most the budget.

    >>> Exposure("gaussian", 1, (Move(1, 2.0, 2, 1),)).size
    0.5
    """

    noise: str  # the distribution's name, as it is recorded
    budget: int
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        numbers = [number for move in self.moves for number in (move.cost, move.shift, move.copies)]
        if not (
            self.noise in tuple(DISTRIBUTIONS)  # of a record it may be anything
            and all(type(number) is int and number >= 1 for number in [self.budget, *numbers])
            and self.budget <= MOST_BUDGET
            and any(move.cost == 1 for move in self.moves)
            and all(move.cost <= self.budget and move.copies <= MOST_COPIES for move in self.moves)
            and all(type(move.scale) is float and 0 < move.scale <= LARGEST_SCALE for move in self.moves)
        ):
            raise ValueError("not an exposure")

    @property
    def distribution(self) -> NoiseDistribution:
        """The distribution of the noise."""
        return DISTRIBUTIONS[self.noise]

    @property
    def size(self) -> float:
        """The largest sum over moves within the budget: of ε under Laplace noise, of ρ under Gaussian noise."""
        most = [0.0]
        for budget in range(1, self.budget + 1):
            most.append(max(most[budget - move.cost] + self._of(move) for move in self.moves if move.cost <= budget))
        return most[-1]

    def _of(self, move: Move) -> float:
        return move.copies * self.distribution.size(move.shift / move.scale)

    def accords(self, guarantee: Guarantee, rho: float | None) -> bool:
        """Whether its size is no less than what was promised: a record of more noise than was added is wrong."""
        stated = self.distribution.stated(guarantee, rho)
        return self.distribution is guarantee.noise and stated is not None and self.size >= stated * ROUNDING


def exposed(guarantee: Guarantee, budget: int, moves: Iterable[tuple[int, Sensitivity, int, int]]) -> Exposure | None:
    """The exposure of moves (cost, sensitivity, shift, copies) under the noise of ``guarantee`` for each sensitivity.

    The scale is the one that ``noise.measurement`` takes. None where a ledger composes by the guarantee alone: with
    many items per person, very large noise or almost none.
    """
    if budget > MOST_BUDGET:
        return None
    made = tuple(Move(cost, guarantee.noise_scale(s), shift, copies) for cost, s, shift, copies in moves)
    if any(not 0 < move.scale <= LARGEST_SCALE or move.copies > MOST_COPIES for move in made):
        return None
    return Exposure(guarantee.noise.name, budget, made)


def of_exposure(exposure: Exposure | None) -> Any:
    """An exposure, field by field."""
    return None if exposure is None else packed(exposure)


def exposure_of(record: Any) -> Exposure | None:
    """The exposure that ``of_exposure`` wrote; what could not be one is refused by its own checks."""
    if record is None:
        return None
    parts = fields_of(record, ("noise", "budget", "moves"))
    moves = tuple(unpacked(Move, move) for move in list_of(parts["moves"]))
    return Exposure(parts["noise"], integer_of(parts["budget"]), moves)
