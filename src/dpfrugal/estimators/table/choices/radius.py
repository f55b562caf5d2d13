"""The interval around a released value: one choice of its radius, from a public list (docs/proofs.md, Theorem 18).

An interval [v − w, v + w] has c(w) = min(q·n − #(x < v − w), #(x ≤ v + w) − q·n) rows to spare: so many lie between the
wanted rank and its nearer end. c grows with w, and the radius is wanted at which it reaches the margin m. The radii
0 = w₀ < w₁ < … < ∞ are public; wₖ is chosen with probability ∝ base · exp(−slope · d), where d = max(c(wₖ₋₁) − m,
m − c(wₖ)) is the distance of m from what c takes between wₖ₋₁ and wₖ, and minus its depth where m lies between both. A
value that many rows have lies at some distance from v, and the radius that reaches just beyond it is one of the list to
within 4%, or exactly, and four times as likely, if it is 1, 2 or 5 times a power of ten. The deeper m lies among its
rows the likelier that radius is: the interval holds the value, whatever lattice the rows are on.

The rows are counted from q·n, not from the rank of v: where v is far off, the radius is as large. Where a table has too
few rows to spare, no radius but ∞ reaches the margin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.codes import Codes, codes_of, doubles_of
from dpfrugal.estimators.table.base.spreads import Binades
from dpfrugal.estimators.table.choices.mechanism import CAP
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Window
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Weight

PER_OCTAVE: Final = 16
FINEST: Final = 53  # octaves below the value: its own unit in the last place
BEYOND: Final = 64  # octaves above the value, with one radius each
UNIT: Final = 2**30
# The mass of the radius 0, far below that of an octave: where many rows are equal to the value their depth chooses it,
# and elsewhere it misses the quantile.
ITSELF: Final = UNIT >> 12
ROUND: Final = 4  # how many times the mass of its neighbours a round radius has: many rows lie that far from each other
# Of the smallest and the largest double: the first and the last k of a radius 2^(k/16).
FIRST_STEP: Final = (-1073 - FINEST) * PER_OCTAVE
LAST_STEP: Final = (1024 + BEYOND) * PER_OCTAVE


@dataclass(frozen=True)
class Radii:
    """Intervals around a value in ascending order: the codes of their ends, and their masses; the last is unbounded."""

    low: Codes
    high: Codes
    masses: NDArray[np.int64]

    @property
    def unbounded(self) -> int:
        """The index of the interval that holds every answer."""
        return self.low.size - 1


@dataclass(frozen=True)
class Interval:
    """The codes of both ends; unbounded ones say that the table has too few rows."""

    low: int
    high: int
    bounded: bool = field(default=True)


@dataclass(frozen=True)
class RadiusTables:
    """The radii 2^(k/16) for all k that any list has, round ones exact, and the masses of a list: public constants.

    A list around a value of the octave m has k = 16·m + each of ``offsets``, with its mass times the radius's factor; k
    is at the place k − ``FIRST_STEP`` of the tables of radii.
    """

    offsets: NDArray[np.int64]
    masses: NDArray[np.float64]  # whole numbers
    radii: NDArray[np.float64]
    factors: NDArray[np.float64]  # of the masses of radii
    whole: NDArray[np.uint64]  # radii between integers


@cache
def radius_tables() -> RadiusTables:
    """A radius is a power of two times one of 16 doubles, or the nearest round number."""
    fine = np.arange(-FINEST * PER_OCTAVE, 2 * PER_OCTAVE)
    offsets = np.concatenate([fine, np.arange(2, BEYOND + 1) * PER_OCTAVE])
    # An octave has more mass than the one before it: whatever the scale of the rows is, all smaller radii together have
    # 2.4 times its mass. One that is too small by chance misses the quantile; one too large does not.
    growth = np.exp2(np.minimum(offsets / PER_OCTAVE, 2) / 2)
    masses = UNIT * growth * np.where(offsets < 2 * PER_OCTAVE, 1, PER_OCTAVE)
    steps = np.arange(FIRST_STEP, LAST_STEP + 1)
    steps = np.clip(steps, -1074 * PER_OCTAVE, 1023 * PER_OCTAVE)
    radii = np.ldexp(np.exp2(np.arange(PER_OCTAVE) / PER_OCTAVE)[steps % PER_OCTAVE], steps // PER_OCTAVE)
    factors = np.ones(radii.size)
    round_radii = np.array([float(f"{digit}e{power}") for power in range(-307, 308) for digit in (1, 2, 5)])
    nearest = np.rint(np.log2(round_radii) * PER_OCTAVE).astype(np.int64) - FIRST_STEP
    radii[nearest], factors[nearest] = round_radii, ROUND
    whole = np.where(radii < 2.0**64, radii, 0.0).astype(np.uint64)
    whole[radii >= 2.0**64] = 2**64 - 1
    return RadiusTables(offsets, np.floor(masses), radii, factors, whole)


def places_of(base: Base, values: Codes) -> NDArray[np.int64]:
    """The places in the tables from which the offsets of lists around values count; −1 for ±inf, without radii."""
    numbers = np.abs(doubles_of(values)) if base.of_doubles else _sizes(values, _zero(base)).astype(np.float64)
    finite = np.isfinite(numbers)
    octaves = np.frexp(np.where(finite, numbers, 0.0))[1].astype(np.int64)
    return np.where(finite, octaves * PER_OCTAVE - FIRST_STEP, -1)


def _zero(base: Base) -> int:
    """The code of the integer 0, around which a base of integers is spread."""
    spread = base.components[0].spread
    return spread.centre if isinstance(spread, Binades) else 0


def _sizes(values: Codes, zero: int) -> NDArray[np.uint64]:
    """The distances of integers from 0, which may have 64 bits."""
    words, origin = values.view(np.uint64), np.array(zero, dtype=np.int64).view(np.uint64)
    return np.where(values >= zero, words - origin, origin - words)


def radii_around(base: Base, value: int) -> Radii:
    """The public list for a value of the base: 16 radii an octave up to four times the value, then one, then ∞."""
    tables, values = radius_tables(), np.array([value], dtype=np.int64)
    place = places_of(base, values)
    at = place + tables.offsets if place[0] >= 0 else np.zeros(0, dtype=np.int64)
    if base.of_doubles:
        number, radii = doubles_of(values), tables.radii[at]
        with np.errstate(over="ignore"):
            low, high = np.maximum(codes_of(number - radii), base.low), np.minimum(codes_of(number + radii), base.high)
    else:
        whole, middle = tables.whole[at], values.view(np.uint64)
        low = np.where(whole < np.uint64(value - base.low), (middle - whole).view(np.int64), base.low)
        high = np.where(whole < np.uint64(base.high - value), (middle + whole).view(np.int64), base.high)
    low = np.concatenate([[value], low, [base.low]])
    high = np.concatenate([[value], high, [base.high]])
    listed = (tables.masses[: at.size] * tables.factors[at]).astype(np.int64)
    masses = np.concatenate([[ITSELF], listed, [0]])
    # A radius that is the same as the one before it, or the whole range already, adds nothing.
    new = np.append(True, (low[1:] < low[:-1]) | (high[1:] > high[:-1]))
    new[:-1] &= (low[:-1] > base.low) | (high[:-1] < base.high)
    new[-1] = True
    masses = masses[new]
    # Half of the mass is on ∞: a table with too few rows must not be given a radius by chance.
    masses[-1] = max(masses.sum(), 1)
    return Radii(low[new], high[new], masses)


class Spares:
    """How many rows more than the margin each interval of a list has to spare, and the weights of all of them."""

    def __init__(
        self, rows: OrderStatistics, radii: Radii, quantile: Fraction, margin: Fraction, slope: Fraction
    ) -> None:
        self._slope, self._masses, self.cap = slope, radii.masses, math.ceil(CAP / slope)
        rank, reach = quantile * rows.rows, math.ceil(margin) + self.cap + 1
        # The interval that is wanted has so many rows below it, and so many up to its end.
        self._first, self._last = rank - margin, rank + margin
        window = rows.window(math.floor(rank) - reach, math.ceil(rank) + reach, None, None)
        # Beyond the window counts are those at its ends: distances there are the cap all the same.
        self._below = _counted(window, radii.low[:-1], "left")
        self._upto = _counted(window, radii.high[:-1], "right")

    @property
    def approximate(self) -> NDArray[np.float64]:
        """The weights in float64: counts are subtracted as integers first, so nothing cancels."""
        (first, first_part), (last, last_part) = parts_of(self._first), parts_of(self._last)
        excess = np.minimum((first - self._below) + first_part, (self._upto - last) - last_part)
        over, under = np.append(-np.inf, excess), np.append(-excess, -np.inf)
        distances = np.clip(np.maximum(over, under), -self.cap, self.cap)
        weights: NDArray[np.float64] = self._masses * np.exp(-float(self._slope) * distances)
        return weights

    def exact(self) -> Sequence[Weight]:
        """The same weights, exactly."""
        pairs = zip(self._below.tolist(), self._upto.tolist(), strict=True)
        excess = [min(self._first - below, upto - self._last) for below, upto in pairs]
        cap = Fraction(self.cap)
        over, under = [-cap, *excess], [*(-each for each in excess), -cap]
        distances = [min(max(first, second, -cap), cap) for first, second in zip(over, under, strict=True)]
        return [
            Weight(int(mass), self._slope * distance)
            for mass, distance in zip(self._masses.tolist(), distances, strict=True)
        ]


def parts_of(number: Fraction) -> tuple[int, float]:
    """A number rounded down, and the rest of it."""
    floor = math.floor(number)
    return floor, float(number - floor)


def _counted(window: Window, codes: Codes, side: str) -> Codes:
    """How many rows are below codes ("left"), or up to them ("right")."""
    if not window.codes.size:
        return np.zeros(codes.size, dtype=np.int64)
    counts = np.append(window.below[:1], window.upto)
    return counts[np.searchsorted(window.codes, codes, "left" if side == "left" else "right")]


def choose_interval(
    rows: OrderStatistics,
    base: Base,
    value: int,
    quantile: Fraction,
    margin: Fraction,
    slope: Fraction,
    bits: Bits | None = None,
) -> Interval:
    """An interval around a value that was released, with about ``margin`` rows to spare on either side of q·n."""
    radii = radii_around(base, value)
    spares = Spares(rows, radii, quantile, margin, slope)
    chosen = choice.choose(spares.approximate, spares.exact, bits)
    return Interval(int(radii.low[chosen]), int(radii.high[chosen]), chosen != radii.unbounded)
