"""Spreads: how mass is divided among the indices of points, as exact cumulative integers.

Evenly (``Even``), evenly over the binades of the distance from a centre and evenly within each (``Binades``), or all
on one index (``Single``).
Cumulative masses are exact pairs high·2^bits + low, so that differences are known as integers and, with no
cancellation, in float64 to within a few roundings.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.kernels.bit_layout import EVEN_BITS, UNIT_BITS


@dataclass(frozen=True)
class Places:
    """Cumulative masses, high·2^bits + low with 0 ≤ low < 2^bits."""

    high: NDArray[np.int64]
    low: NDArray[np.uint64]
    bits: int

    def exact(self, index: int) -> int:
        """One of them, as an integer."""
        return (int(self.high[index]) << self.bits) + int(self.low[index])

    def masses(self) -> NDArray[np.float64]:
        """What lies between each and the next, a sum of terms that are not negative."""
        units = np.diff(self.high)
        first, second, unit = self.low[:-1], self.low[1:], 2.0**self.bits
        across = (units - 1) * unit + (np.uint64(2**self.bits) - first).astype(np.float64) + second.astype(np.float64)
        # Within one unit low does not decrease; elsewhere the difference may wrap, and is not taken.
        return np.where(units == 0, (second - first).astype(np.float64), across)


class Spread(Protocol):
    """A measure on indices: the cumulative mass up to an index or below it, and the index at a mass."""

    def upto(self, indices: Codes) -> Places:
        """The cumulative masses up to indices."""

    def below(self, indices: Codes) -> Places:
        """The cumulative masses below indices."""

    def index(self, position: int) -> int:
        """The index whose mass covers a position."""


class Even:
    """Mass 1 for every index."""

    def upto(self, indices: Codes) -> Places:
        """The index plus one, which may be 2^63."""
        low = (indices & np.int64(2**EVEN_BITS - 1)) + 1
        return Places(
            (indices >> EVEN_BITS) + (low >> EVEN_BITS), (low & (2**EVEN_BITS - 1)).view(np.uint64), EVEN_BITS
        )

    def below(self, indices: Codes) -> Places:
        """The index."""
        return Places(indices >> EVEN_BITS, (indices & np.int64(2**EVEN_BITS - 1)).view(np.uint64), EVEN_BITS)

    def index(self, position: int) -> int:
        """The index that has the mass from ``position`` to ``position + 1``."""
        return position


@dataclass(frozen=True)
class Binades:
    """2^63 for the centre and for each binade of the distance from it, on either side; evenly within a binade.

    So an integer of 64 bits has a mass of at least 1. Cumulative masses count from just below the centre.
    """

    centre: int = 0

    def upto(self, indices: Codes) -> Places:
        """Of the centre and the first d indices above it, or minus the first d − 1 below it."""
        above = indices >= self.centre
        return self._places(above, self._distances(indices) - np.where(above, 0, 1).astype(np.uint64), above)

    def below(self, indices: Codes) -> Places:
        """The same without the index itself."""
        above = indices > self.centre
        return self._places(above, self._distances(indices) - above.astype(np.uint64), above)

    def _distances(self, indices: Codes) -> NDArray[np.uint64]:
        """Differences modulo 2^64 are right: no distance reaches that."""
        plain, centre = indices.view(np.uint64), np.uint64(self.centre % 2**64)
        return np.where(indices >= self.centre, plain - centre, centre - plain)

    def _places(self, above: NDArray[np.bool_], number: NDArray[np.uint64], with_centre: NDArray[np.bool_]) -> Places:
        """The mass of the first ``number`` indices on one side, counted up or down."""
        high, low = _first(number)
        down = ~above
        borrowed = down & (low > 0)
        return Places(
            np.where(down, -high - borrowed, high + with_centre),
            np.where(borrowed, np.uint64(2**UNIT_BITS) - low, low),
            UNIT_BITS,
        )

    def index(self, position: int) -> int:
        """The index whose mass covers ``position``."""
        unit = 1 << UNIT_BITS
        if 0 <= position < unit:
            return self.centre
        rest = position - unit if position > 0 else -1 - position
        binade, within = divmod(rest, unit)
        distance = (1 << binade) + (within >> (UNIT_BITS - binade))
        return self.centre + (distance if position > 0 else -distance)


@dataclass(frozen=True)
class Single:
    """Mass 1 for one index, and none elsewhere."""

    centre: int

    def upto(self, indices: Codes) -> Places:
        """1 from the index on."""
        return Places((indices >= self.centre).astype(np.int64), np.zeros(indices.size, dtype=np.uint64), 0)

    def below(self, indices: Codes) -> Places:
        """1 beyond the index."""
        return Places((indices > self.centre).astype(np.int64), np.zeros(indices.size, dtype=np.uint64), 0)

    def index(self, position: int) -> int:
        """There is but one."""
        return self.centre


def _first(number: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The mass of 1, …, number, each 2^(63 − e) in binade e, as a pair."""
    known = np.maximum(number, np.uint64(1))
    binade = np.minimum(np.frexp(known.astype(np.float64))[1] - 1, 63).astype(np.uint64)
    binade -= (np.uint64(1) << binade) > known  # the conversion to float64 may have rounded up to a power of two
    low = (known - (np.uint64(1) << binade) + np.uint64(1)) << (np.uint64(UNIT_BITS) - binade)
    full = low >> np.uint64(UNIT_BITS)
    high = (binade + full).astype(np.int64)
    low &= np.uint64(2**UNIT_BITS - 1)
    return np.where(number == 0, 0, high), np.where(number == 0, np.uint64(0), low)
