"""Spacings: ordered sets of points among the codes, and the index of each point.

The multiples of an integer, the multiples of 10^-places rounded to doubles, some of these at equal distances, the
doubles of ordinary size, the multiples of a power of two.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from dpfrugal.estimators.table.codes import Codes, codes_of, doubles_of

MOST_INDEX: Final = 2**53 - 1


class Spacing(Protocol):
    """Points and their indices: the last index whose point is at most a code, or below it; and a point's code."""

    def upto(self, codes: Codes) -> Codes:
        """The last indices whose points are at most these codes."""

    def before(self, codes: Codes) -> Codes:
        """The last indices whose points are below these codes."""

    def code(self, index: int) -> int:
        """The code of a point."""


@dataclass(frozen=True)
class Multiples:
    """The multiples of an integer, at least 2, among integers."""

    step: int

    def upto(self, codes: Codes) -> Codes:
        """Rounded down."""
        return codes // self.step

    def before(self, codes: Codes) -> Codes:
        """The same, and one less for a multiple."""
        indices: Codes = codes // self.step
        indices -= indices * self.step == codes
        return indices

    def code(self, index: int) -> int:
        """The multiple."""
        return index * self.step


class _AmongDoubles:
    """What the two spacings among doubles share: codes of doubles have room below and above them."""

    def upto(self, codes: Codes) -> Codes:
        raise NotImplementedError

    def before(self, codes: Codes) -> Codes:
        """The last index whose point is below the double."""
        return self.upto(codes - 1)


@dataclass(frozen=True)
class Decimals(_AmongDoubles):
    """k / 10^places rounded to a double, for |k| < 2^53; the index −2^53 stands for none.

    Both numbers are doubles, so one division rounds correctly. Where doubles are coarser several k share one.
    """

    places: int

    def upto(self, codes: Codes) -> Codes:
        """Guessed by a multiplication, then corrected by what the division gives."""
        values, scale = doubles_of(codes), 10.0**self.places
        with np.errstate(over="ignore"):
            guess = np.floor(np.clip(values * scale, -(2.0**53), float(MOST_INDEX)))
        while True:
            up = (guess < MOST_INDEX) & ((guess + 1) / scale <= values)
            down = (guess >= -MOST_INDEX) & (guess / scale > values)
            if not (up.any() or down.any()):
                return guess.astype(np.int64)
            guess += up.astype(np.float64) - down

    def code(self, index: int) -> int:
        """The code of the double nearest to the decimal number."""
        return int(codes_of(np.array([index / 10.0**self.places]))[0])


@dataclass(frozen=True)
class Every:
    """Some decimal numbers at equal distances: those whose index is k·step + first."""

    step: int
    first: int
    of: Decimals

    def upto(self, codes: Codes) -> Codes:
        """Rounded down."""
        indices: Codes = (self.of.upto(codes) - self.first) // self.step
        return indices

    def before(self, codes: Codes) -> Codes:
        """Likewise."""
        indices: Codes = (self.of.before(codes) - self.first) // self.step
        return indices

    def code(self, index: int) -> int:
        """The code of the decimal number."""
        return self.of.code(index * self.step + self.first)


@dataclass(frozen=True)
class Sizes(_AmongDoubles):
    """The doubles of a size from 2^-reach to 2^reach, exclusively: from 0 on those above 0, below −1 the others."""

    reach: int

    def upto(self, codes: Codes) -> Codes:
        """Counted from the smallest of either sign."""
        first, number = self._first, 2 * self.reach << 52
        above = np.clip(codes, first - 1, first + number - 1) - first
        below = np.clip(codes, -first - number, -first) + first - 1
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

    def upto(self, codes: Codes) -> Codes:
        """Scaling by a power of two is exact, but for what underflows to zero from below."""
        values = doubles_of(codes)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(values, -self.exponent)
        indices = np.floor(np.clip(scaled, -(2.0**60), 2.0**53)).astype(np.int64)
        indices -= (values < 0) & (scaled == 0)
        bounded: Codes = np.maximum(indices, -(2**53) - 1)
        return bounded

    def code(self, index: int) -> int:
        """The code of the multiple."""
        return int(codes_of(np.array([math.ldexp(index, self.exponent)]))[0])
