"""What one person can move in a transcript, and the noise that lies on it.

Noise comes in integers, a few at a time: a release, a segment's counts. Whatever is released, a person has a *budget*,
and every *move* of it uses up some: ``copies`` integers, each by at most ``shift``, under noise of one ``scale``. Which
moves are made, and when, may depend on all that was released before. What such a transcript tells at most is
docs/proofs.md, Theorem 14.

Worked number: one median of ``DPFrugal1U`` at ρ = 0.1 has a budget of 1 and one move: one integer, by at most 2, under
Gaussian noise of scale 4.472. That is ε = 1.991 at δ = 1e-6; of ρ = 0.1 no more is known than ε = 2.142.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from dpfrugal.storage.json_values import fields_of, integer_of, list_of, packed, unpacked

MOST_BUDGET: Final = 8  # beyond it what a person could do takes too long to work out
LARGEST_SCALE: Final = 1e4
MOST_COPIES: Final = 1000
# How much less than was promised an exposure may come to: it is rounding.
HAIR: Final = 1 - 1e-9


@dataclass(frozen=True)
class Move:
    """Some integers under independent noise, each moved by at most ``shift``."""

    cost: int  # of the budget
    scale: float  # of the noise: σ of a Gaussian, b of a Laplace distribution
    shift: int
    copies: int


@dataclass(frozen=True)
class Exposure:
    """Every transcript of an estimator: moves of one person that together cost at most the budget.

    >>> Exposure("gaussian", 1, (Move(1, 2.0, 2, 1),)).size
    0.5
    """

    noise: Literal["gaussian", "laplace"]
    budget: int
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        numbers = [number for move in self.moves for number in (move.cost, move.shift, move.copies)]
        if not (
            self.noise in ("gaussian", "laplace")
            and all(type(number) is int and number >= 1 for number in [self.budget, *numbers])
            and self.budget <= MOST_BUDGET
            and any(move.cost == 1 for move in self.moves)
            and all(move.cost <= self.budget and move.copies <= MOST_COPIES for move in self.moves)
            and all(type(move.scale) is float and 0 < move.scale <= LARGEST_SCALE for move in self.moves)
        ):
            raise ValueError("not an exposure")

    @property
    def size(self) -> float:
        """What the moves come to at most: in ε under Laplace noise, in ρ under Gaussian noise."""
        most = [0.0]
        for budget in range(1, self.budget + 1):
            most.append(max(most[budget - move.cost] + self._of(move) for move in self.moves if move.cost <= budget))
        return most[-1]

    def _of(self, move: Move) -> float:
        distance = move.shift / move.scale
        return move.copies * (distance if self.noise == "laplace" else distance * distance / 2)

    def accords(self, guarantee: Guarantee, rho: float | None) -> bool:
        """Whether this comes to no less than what was promised: a record that says more noise is a wrong one."""
        if self.noise == "laplace":
            stated = guarantee.pure_epsilon
        else:
            stated = rho if guarantee.implied_rho is None else guarantee.implied_rho
        return self.noise == guarantee.noise and stated is not None and self.size >= stated * HAIR


def exposed(guarantee: Guarantee, budget: int, moves: Iterable[tuple[int, Sensitivity, int, int]]) -> Exposure | None:
    """The exposure to noise for some sensitivities: (cost, sensitivity, shift, copies) of each move.

    The scale is the one that ``noise.measurement`` takes. None where a ledger goes by the guarantee alone: many items
    per person, very large noise or none to speak of.
    """
    if budget > MOST_BUDGET:
        return None
    made = tuple(Move(cost, guarantee.noise_scale(s), shift, copies) for cost, s, shift, copies in moves)
    if any(not 0 < move.scale <= LARGEST_SCALE or move.copies > MOST_COPIES for move in made):
        return None
    return Exposure(guarantee.noise, budget, made)


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
