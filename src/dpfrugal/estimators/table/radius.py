"""The interval around a released value: one choice of its radius, from a public list (docs/proofs.md, Theorem 18).

An interval [v − w, v + w] has c(w) = min(q·n − #(x < v − w), #(x ≤ v + w) − q·n) rows to spare: so many lie between the
wanted rank and its nearer end. c grows with w, and the radius is wanted at which it reaches the margin m. The radii
0 = w₀ < w₁ < … < ∞ are public; wₖ is chosen with probability ∝ base · exp(−slope · min(d, cap)), where d is the
distance of m from what c takes between wₖ₋₁ and wₖ. A value that many rows have lies at some distance from v, and the
radius that reaches just beyond it is one of the list to within 2%: the interval holds it, whatever lattice the rows are
on.

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

from dpfrugal.estimators.table.base_measure import Base
from dpfrugal.estimators.table.codes import Codes, codes_of, doubles_of
from dpfrugal.estimators.table.mechanism import CAP
from dpfrugal.estimators.table.order_statistics import OrderStatistics, Window
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Weight

PER_OCTAVE: Final = 32
FINEST: Final = 53  # octaves below the value: its own unit in the last place
BEYOND: Final = 64  # octaves above the value, with one radius each
LIKELY: Final = 4  # a radius of a sixteenth of the value is the likeliest
UNIT: Final = 2**30
ITSELF: Final = UNIT // 4  # the mass of the radius 0
# Of the smallest and the largest double: the first and the last k of a radius 2^(k/32).
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
    """The radii 2^(k/32) for all k that any list has, and what the masses of lists are made of: public constants.

    A list around a value of the octave m has k = 32·m + each of ``offsets``; row k of a table is its place
    k − ``FIRST_STEP``. The mass of a radius is that ``near`` the value, by offset, and some for ``ordinary`` radii, by k.
    """

    offsets: NDArray[np.int64]
    near: NDArray[np.float64]
    radii: NDArray[np.float64]
    whole: NDArray[np.uint64]  # radii between integers
    ordinary: NDArray[np.float64]


@cache
def radius_tables() -> RadiusTables:
    """A radius is a power of two times one of 32 doubles, so it is the same double wherever it is computed."""
    fine = np.arange(-FINEST * PER_OCTAVE, 2 * PER_OCTAVE)
    offsets = np.concatenate([fine, np.arange(2, BEYOND + 1) * PER_OCTAVE])
    near = UNIT / (1 + np.abs(offsets / PER_OCTAVE + LIKELY)) ** 2
    steps = np.arange(FIRST_STEP, LAST_STEP + 1)
    ordinary = UNIT / (16 * (1 + np.abs(steps / PER_OCTAVE)) ** 2)
    steps = np.clip(steps, -1074 * PER_OCTAVE, 1023 * PER_OCTAVE)
    radii = np.ldexp(np.exp2(np.arange(PER_OCTAVE) / PER_OCTAVE)[steps % PER_OCTAVE], steps // PER_OCTAVE)
    whole = np.where(radii < 2.0**64, radii, 0.0).astype(np.uint64)
    whole[radii >= 2.0**64] = 2**64 - 1
    return RadiusTables(offsets, near, radii, whole, ordinary)


def numbers_of(base: Base, values: Codes) -> NDArray[np.float64]:
    """The numbers that codes stand for, in float64: their octaves are those of the radii around them."""
    return doubles_of(values) if base.of_doubles else values.astype(np.float64)


def places_of(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The places in the tables from which the offsets of lists around finite numbers count."""
    return np.frexp(numbers)[1] * np.int64(PER_OCTAVE) - FIRST_STEP


def radii_around(base: Base, value: int) -> Radii:
    """The public list for a value of the base: 32 radii an octave up to four times the value, then one, then ∞."""
    tables, number = radius_tables(), numbers_of(base, np.array([value]))
    at = places_of(number) + tables.offsets if np.isfinite(number[0]) else np.zeros(0, dtype=np.int64)
    if base.of_doubles:
        with np.errstate(over="ignore"):
            low, high = codes_of(number - tables.radii[at]), codes_of(number + tables.radii[at])
        low, high = np.maximum(low, base.low), np.minimum(high, base.high)
    else:
        # The differences of integers have 64 bits, too.
        whole, middle = tables.whole[at], np.array(value).view(np.uint64)
        low = np.where(whole < np.uint64(value - base.low), (middle - whole).view(np.int64), base.low)
        high = np.where(whole < np.uint64(base.high - value), (middle + whole).view(np.int64), base.high)
    low = np.concatenate([[value], low, [base.low]])
    high = np.concatenate([[value], high, [base.high]])
    near = np.maximum(tables.near[: at.size] + tables.ordinary[at], 1.0).astype(np.int64)
    masses = np.concatenate([[ITSELF], near, [0]])
    # A radius that is the same as the one before it, or the whole range already, adds nothing.
    new = np.append(True, (low[1:] < low[:-1]) | (high[1:] > high[:-1]))
    new[:-1] &= (low[:-1] > base.low) | (high[:-1] < base.high)
    new[-1] = True
    masses = masses[new]
    # Half of the mass is on ∞: a table with too few rows must not be given a radius by chance.
    masses[-1] = max(masses.sum(), 1)
    return Radii(low[new], high[new], masses)


class Spares:
    """How many rows each interval of a list has to spare, and the weights of all of them."""

    def __init__(
        self, rows: OrderStatistics, radii: Radii, quantile: Fraction, margin: Fraction, slope: Fraction
    ) -> None:
        self._rank, self._margin, self._slope = quantile * rows.rows, margin, slope
        self._masses, self.cap = radii.masses, math.ceil(CAP / slope)
        reach = math.ceil(margin) + self.cap + 1
        window = rows.window(math.floor(self._rank) - reach, math.ceil(self._rank) + reach, None, None)
        # Beyond the window counts are those at its ends: distances there are the cap all the same.
        self._below = _counted(window, radii.low[:-1], "left")
        self._upto = _counted(window, radii.high[:-1], "right")

    @property
    def approximate(self) -> NDArray[np.float64]:
        """The weights in float64: counts are compared with the rank in integers first, so nothing cancels."""
        floor = math.floor(self._rank)
        part, margin = float(self._rank - floor), float(self._margin)
        spare = np.minimum(floor - self._below + part, self._upto - floor - part) - margin
        over, under = np.append(-np.inf, spare), np.append(-spare, -np.inf)
        distances = np.minimum(np.maximum(np.maximum(over, under), 0.0), self.cap)
        weights: NDArray[np.float64] = self._masses * np.exp(-float(self._slope) * distances)
        return weights

    def exact(self) -> Sequence[Weight]:
        """The same weights, exactly."""
        pairs = zip(self._below.tolist(), self._upto.tolist(), strict=True)
        spare = [min(self._rank - below, upto - self._rank) - self._margin for below, upto in pairs]
        cap = Fraction(self.cap)
        over, under = [Fraction(0), *spare], [*(-each for each in spare), Fraction(0)]
        distances = [min(max(first, second, Fraction(0)), cap) for first, second in zip(over, under, strict=True)]
        return [
            Weight(int(mass), self._slope * distance)
            for mass, distance in zip(self._masses.tolist(), distances, strict=True)
        ]


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
