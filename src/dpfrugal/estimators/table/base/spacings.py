"""Spacings: ordered sets of points among the codes, and the index of each point.

The multiples of an integer, the multiples of 10^-places rounded to doubles, some of these at equal distances, fractions
and the doubles next to them, the doubles of ordinary size, the multiples of a power of two.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import Codes, codes_of, doubles_of

MOST_INDEX: Final = 2**53 - 1
# Below 2^49 / denominator fractions are at least seven doubles apart, so that three belong to each.
MOST_NUMERATOR: Final = 2**49


class Spacing(Protocol):
    """Points and their indices: the last index whose point is below a code, or at most it; and a point's code."""

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """The last indices whose points are below these codes, and the last whose points are at most these."""

    def code(self, index: int) -> int:
        """The code of a point."""


@dataclass(frozen=True)
class Multiples:
    """The multiples of an integer among integers; with ``most`` only so many on either side of 0."""

    step: int
    most: int = 0

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """Rounded down, and one less for a multiple."""
        upto: Codes = codes // self.step
        before: Codes = upto - (upto * self.step == codes)
        if self.most:
            before, upto = (np.clip(each, -self.most - 1, self.most) for each in (before, upto))
        return before, upto

    def code(self, index: int) -> int:
        """The multiple."""
        return index * self.step


@dataclass(frozen=True)
class Decimals:
    """k / 10^places rounded to a double, for |k| < 2^53; the index −2^53 stands for none.

    Both numbers are doubles, so one division rounds correctly. Where doubles are coarser several k share one.
    """

    places: int

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """Guessed by a multiplication, then corrected by what the division gives."""
        values, scale = doubles_of(codes), 10.0**self.places
        guess = _numerators(values, scale)
        before = guess.copy()
        while (equal := (before >= -MOST_INDEX) & (before / scale == values)).any():
            before -= equal
        return before.astype(np.int64), guess.astype(np.int64)

    def code(self, index: int) -> int:
        """The code of the double nearest to the decimal number."""
        return int(codes_of(np.array([index / 10.0**self.places]))[0])


def _numerators(values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The last k with k / scale ≤ each value."""
    with np.errstate(over="ignore"):
        guess = np.floor(np.minimum(np.maximum(values * scale, -(2.0**53)), float(MOST_INDEX)))
    while (down := (guess >= -MOST_INDEX) & (guess / scale > values)).any():
        guess -= down
    while (up := (guess < MOST_INDEX) & ((guess + 1) / scale <= values)).any():
        guess += up
    return guess


@dataclass(frozen=True)
class Beside:
    """k·step / denominator rounded to a double, and the doubles just below and above it, for |k·step| ≤ 2^49.

    A number that was computed, as 9 · 1.15078, is often the neighbour of the double that is nearest to its decimals.
    The indices of the three are 3k, 3k + 1 and 3k + 2.
    """

    denominator: int
    step: int = 1

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """The last fraction whose three have begun, and how many of them are passed."""
        begun = _numerators(doubles_of(codes + 1), float(self.denominator)).astype(np.int64) // self.step
        most = MOST_NUMERATOR // self.step
        nearest, none = np.clip(begun, -most, most), begun < -most
        passed = codes - codes_of((nearest * self.step).astype(np.float64) / self.denominator)
        upto = 3 * nearest + np.where(none, -1, np.minimum(passed, 1) + 1)
        return upto - (~none & (passed <= 1)), upto

    def code(self, index: int) -> int:
        """The code of one of the three."""
        numerator, which = divmod(index, 3)
        return int(codes_of(np.array([numerator * self.step / self.denominator]))[0]) + which - 1


@dataclass(frozen=True)
class Every:
    """Some decimal numbers at equal distances: those whose index is k·step + first."""

    step: int
    first: int
    of: Decimals

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """Rounded down."""
        before, upto = self.of.around(codes)
        return (before - self.first) // self.step, (upto - self.first) // self.step

    def code(self, index: int) -> int:
        """The code of the decimal number."""
        return self.of.code(index * self.step + self.first)


class _AmongDoubles:
    """What spacings among doubles share: codes of doubles have room below them."""

    def around(self, codes: Codes) -> tuple[Codes, Codes]:
        """The same for the doubles just below."""
        return self._upto(codes - 1), self._upto(codes)

    def _upto(self, codes: Codes) -> Codes:
        raise NotImplementedError


@dataclass(frozen=True)
class Sizes(_AmongDoubles):
    """The doubles of a size from 2^-reach to 2^reach, exclusively: from 0 on those above 0, below −1 the others."""

    reach: int

    def _upto(self, codes: Codes) -> Codes:
        """Counted from the smallest of either sign."""
        first, number = self._first, 2 * self.reach << 52
        above = np.minimum(np.maximum(codes, first - 1), first + number - 1) - first
        below = np.minimum(np.maximum(codes, -first - number), -first) + first - 1
        return np.where(codes > -first, above, below)

    def code(self, index: int) -> int:
        """The double's code."""
        return index + self._first if index >= 0 else index + 1 - self._first

    @property
    def _first(self) -> int:
        """The code of the smallest positive one."""
        return (1023 - self.reach) << 52


@dataclass(frozen=True)
class PowersOfTwo(_AmongDoubles):
    """k·2^exponent for |k| ≤ 2^53, each of which is a double; the index −2^53 − 1 stands for none."""

    exponent: int

    def _upto(self, codes: Codes) -> Codes:
        """Scaling by a power of two is exact, but for what underflows to zero from below."""
        values = doubles_of(codes)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(values, -self.exponent)
        indices = np.floor(np.minimum(np.maximum(scaled, -(2.0**60)), 2.0**53)).astype(np.int64)
        indices -= (values < 0) & (scaled == 0)
        bounded: Codes = np.maximum(indices, -(2**53) - 1)
        return bounded

    def code(self, index: int) -> int:
        """The code of the multiple."""
        return int(codes_of(np.array([math.ldexp(index, self.exponent)]))[0])
