"""Positions within a code: what share of the rows equal to it lies to the left of each, a public increasing function.

The share grows from 0 to 1 in linear stretches. From either end inwards each stretch is four times as wide as all
before it, and all have equally many positions: so wherever in a heap of equal rows a rank is wanted, near its end too,
about as many positions lie around it as around any other rank. The last position belongs to the last stretch.

Worked number: of 90,000 equal rows the two outermost stretches hold 0.17 rows each and the next ones 0.5; with
positions spread evenly, the last 0.17 rows would have 1 position of 500,000.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

GROWTH_BITS: Final = 2


@dataclass(frozen=True)
class Stretch:
    """Positions from ``first`` on whose shares grow by ``step``, from ``share`` on, in units of the whole's inverse."""

    first: int
    count: int
    share: int
    step: int


@dataclass(frozen=True)
class Positions:
    """The positions 0, …, ``last``: so many stretches on either side, each of 2^``bits`` positions."""

    stages: int
    bits: int

    @cached_property
    def last(self) -> int:
        """The last position: all equal rows lie to its left."""
        return 2 * self.stages << self.bits

    @cached_property
    def whole(self) -> int:
        """All equal rows, in units of a share: the finest step is 1."""
        return 2 << GROWTH_BITS * (self.stages - 1) + self.bits

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """All of them in order."""
        ends = [0, *(1 << GROWTH_BITS * stage + self.bits for stage in range(self.stages))]
        ends += [self.whole - end for end in reversed(ends[:-1])]
        number = 2 * self.stages
        return tuple(
            Stretch(index << self.bits, (1 << self.bits) + (index == number - 1), low, (high - low) >> self.bits)
            for index, (low, high) in enumerate(pairwise(ends))
        )

    def share(self, position: int) -> int:
        """What lies to the left of a position."""
        stretch = self.stretches[min(position >> self.bits, 2 * self.stages - 1)]
        return stretch.share + (position - stretch.first) * stretch.step

    def upto(self, numerator: int, denominator: int) -> int:
        """How many positions have a share of at most ``numerator / denominator``."""
        if numerator < 0:
            return 0
        if numerator >= self.whole * denominator:
            return self.last + 1
        stretch = next(each for each in reversed(self.stretches) if each.share * denominator <= numerator)
        return stretch.first + (numerator - stretch.share * denominator) // (stretch.step * denominator) + 1
