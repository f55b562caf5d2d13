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


def radii_around(base: Base, value: int) -> Radii:
    """The public list for a value: 32 radii in each octave up to four times the value, then one an octave, then ∞."""
    number = float(doubles_of(np.array([value]))[0]) if base.of_doubles else float(value)
    octaves = _octaves(math.frexp(number)[1]) if math.isfinite(number) else np.zeros(0)
    radii = np.exp2(np.clip(octaves, -1074.0, 1023.0))
    if base.of_doubles:
        with np.errstate(over="ignore"):
            low, high = codes_of(number - radii), codes_of(number + radii)
    else:
        whole = [int(radius) for radius in np.minimum(radii, 2.0**64).tolist()]
        low, high = (_clipped([value + sign * radius for radius in whole], base) for sign in (-1, 1))
    low = np.concatenate([[value], np.clip(low, base.low, base.high), [base.low]])
    high = np.concatenate([[value], np.clip(high, base.low, base.high), [base.high]])
    masses = np.concatenate([[UNIT // 4], _masses(octaves, math.frexp(number)[1]), [0]])
    # A radius that is the same as the one before it, or the whole range already, adds nothing.
    new = np.append(True, (low[1:] < low[:-1]) | (high[1:] > high[:-1]))
    new[:-1] &= (low[:-1] > base.low) | (high[:-1] < base.high)
    new[-1] = True
    masses = masses[new]
    # Half of the mass is on ∞: a table with too few rows must not be given a radius by chance.
    masses[-1] = max(masses.sum(), 1)
    return Radii(low[new], high[new], masses)


def _octaves(middle: int) -> NDArray[np.float64]:
    """The logarithms of the radii around a value of the octave ``middle``."""
    fine = np.arange((middle - FINEST) * PER_OCTAVE, (middle + 2) * PER_OCTAVE) / PER_OCTAVE
    return np.concatenate([fine, np.arange(middle + 2.0, middle + BEYOND + 1)])


def _masses(octaves: NDArray[np.float64], middle: int) -> Codes:
    """Most for a sixteenth of the value, some for 1, and the less the more octaves a radius is away from both."""
    near = 1 / (1 + np.abs(octaves - (middle - LIKELY))) ** 2 + 1 / (16 * (1 + np.abs(octaves)) ** 2)
    return np.maximum(near * UNIT, 1).astype(np.int64)


def _clipped(numbers: Sequence[int], base: Base) -> Codes:
    return np.array([min(max(number, base.low), base.high) for number in numbers], dtype=np.int64)


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
