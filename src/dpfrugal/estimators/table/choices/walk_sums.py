"""The sums of ``chain`` in floats, for each answer, and how far they may be off: readable, or compiled.

Both have the same states in the same order. A sum of positive terms that are each within a relative error stays within
it, and every addition and multiplication adds one rounding; what is lost where floats underflow is bounded besides.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.choices.chain import Chain, beginning, following
from dpfrugal.kernels.compiler import loading

ROUNDING: Final = 2.0**-52
MASS_ERROR: Final = 2.0**-45  # of a float mass (``Regions.approximate``)
SMALLEST: Final = 2.0**-1000  # what is lost where floats underflow


@dataclass(frozen=True, eq=False)
class Level:
    """The states after an answer: their places in half rows, and weights in units of 2^scale, the largest 1/2 to 1.

    ``error`` is relative to each weight, ``lost`` is the most that underflow can have taken from one.
    """

    places: NDArray[np.float64]
    weights: NDArray[np.float64]
    regions: Codes
    sources: Codes
    source_ends: Codes
    scale: int = 0
    error: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True)
class HalfRows:
    """Wanted ranks in half rows, a row of them for each size: whole, in which order their fractions are, fractions."""

    floors: Codes
    orders: Codes
    parts: NDArray[np.float64]


def half_rows(quantiles: Sequence[Fraction], sizes: Sequence[int]) -> HalfRows:
    """2·q·n for all quantiles and sizes; fractions are in order from 1 on, 0 for none."""
    floors, orders, parts = [], [], []
    for size in sizes:
        doubled = [2 * q * size for q in quantiles]
        floors.append([math.floor(each) for each in doubled])
        fractions = [each - math.floor(each) for each in doubled]
        different = sorted({Fraction(0), *fractions})
        orders.append([different.index(each) for each in fractions])
        parts.append([float(each) for each in fractions])
    shape = len(sizes), len(quantiles)
    whole, order = (np.array(each, dtype=np.int64).reshape(shape) for each in (floors, orders))
    return HalfRows(whole, order, np.array(parts, dtype=np.float64).reshape(shape))


class Room:
    """Arrays for so many states."""

    def __init__(self, states: int) -> None:
        self.states = states
        whole = np.empty((7, states + 1), dtype=np.int64)
        self.keys, self.regions, self.counts, self.sources, self.source_ends, self.at_keys, self.at_starts = whole
        self.places, self.weights, self.at_places, self.at_weights, self.sums = np.empty((5, states + 1))


def readable_levels(chain: Chain, half: int, masses: Sequence[float], slope: Fraction, longest: float) -> list[Level]:
    """The states by ``following``: ``half`` of the chain's parts are half a row, ``longest`` is slope · any walk."""
    steep, state = float(slope / (2 * half)), beginning(1.0)
    of_regions = dict(enumerate(masses))
    levels = [_first_level()]
    for answer in range(len(chain.targets)):
        states = following(chain, answer, state, of_regions, lambda distance: math.exp(-steep * distance))
        places = np.array([each.at / half for each in states])
        rest = np.array([each[2:] for each in states], dtype=np.int64).reshape(-1, 4).T
        weights = np.array([each.weight for each in states], dtype=np.float64)
        shift = math.frexp(float(weights.max(initial=0.0)))[1]
        weights = np.ldexp(weights, -shift)
        levels.append(_next_level(levels[-1], places, weights, rest[0], rest[2], rest[3], shift, longest))
        state = [each._replace(weight=weight) for each, weight in zip(states, weights.tolist(), strict=True)]
    return levels


def compiled_levels(
    first: Codes, last: Codes, masses: NDArray[np.float64], targets: HalfRows, cap: int, slope: Fraction, longest: float
) -> list[Level]:
    """The same by compiled code; regions cover the ranks ``first`` to ``last`` in half rows."""
    with loading("sum_walks"):
        from dpfrugal.kernels.choices.sum_walks import sum_walks

    many, room = targets.floors.shape[1], Room(4 * targets.floors.shape[1] * (first.size + 2))
    offsets, scales = np.empty((2, many + 2), dtype=np.int64)
    with np.errstate(all="ignore"):  # for the kernel as it is written, where the compiler is off
        while not sum_walks(
            first, last, masses, first.size, targets.floors[0], targets.orders[0], targets.parts[0],
            2 * cap, float(slope / 2),
            room.keys, room.places, room.weights, room.regions, room.counts, room.sources, room.source_ends,
            room.at_keys, room.at_places, room.at_weights, room.at_starts, room.sums, offsets, scales,
        ):  # fmt: skip
            room = Room(2 * room.states)
    levels = [_first_level()]
    for answer in range(many):
        here, before = slice(offsets[answer + 1], offsets[answer + 2]), offsets[answer]
        sources, ends = room.sources[here] - before, room.source_ends[here] - before
        found = room.places[here], room.weights[here], room.regions[here], sources, ends
        levels.append(_next_level(levels[-1], *found, int(scales[answer + 1]), longest))
    return levels


def _first_level() -> Level:
    """Before all answers."""
    nothing = np.zeros(1, dtype=np.int64)
    return Level(np.zeros(1), np.ones(1), nothing - 1, nothing, nothing)


def _next_level(
    last: Level,
    places: NDArray[np.float64],
    weights: NDArray[np.float64],
    regions: Codes,
    sources: Codes,
    source_ends: Codes,
    shift: int,
    longest: float,
) -> Level:
    """What the states of an answer may be off, after weights were divided by 2^shift."""
    error = last.error + MASS_ERROR + ROUNDING * (8 * last.weights.size + 64 + 4 * longest)
    with np.errstate(over="ignore"):
        lost = float(np.ldexp(last.weights.size * last.lost + SMALLEST, -shift))
    return Level(places, weights, regions, sources, source_ends, last.scale + shift, error, lost)
