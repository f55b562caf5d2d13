"""Positions within a code: what share of the rows equal to it lies to the left of each, a public increasing function.

The share grows from 0 to 1 in linear stretches. From either end inwards each stretch is three times as wide as all
before it, with no fewer positions than the one before. So wherever in a heap of equal rows a rank is wanted, near its
end too, many positions lie around it. The last position belongs to the last stretch.

Worked number: of 90,000 equal rows the outermost stretches hold 2.7 rows each, with a fortieth of all positions; with
positions spread evenly, they would have one of 33,000.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final

GROWTH_BITS: Final = 2


@dataclass(frozen=True)
class Stretch:
    """Positions from ``first`` on whose shares grow by ``step``, from ``share`` on."""

    first: int
    count: int
    share: int
    step: int


@dataclass(frozen=True)
class Positions:
    """The positions 0, …, ``last``. The stretches of either half have 2^bits of them each, from the end inwards."""

    bits: tuple[int, ...]

    @cached_property
    def last(self) -> int:
        """The last position: all equal rows lie to its left."""
        return 2 * sum(1 << each for each in self.bits)

    @cached_property
    def whole(self) -> int:
        """All equal rows: shares are counted in parts of this."""
        return 2 << GROWTH_BITS * (len(self.bits) - 1) + max(self.bits)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """All of them in order."""
        number = len(self.bits)
        ends = [0, *(1 << GROWTH_BITS * stage + max(self.bits) for stage in range(number))]
        ends += [self.whole - end for end in reversed(ends[:-1])]
        counts = [1 << each for each in (*self.bits, *reversed(self.bits))]
        steps = [(high - low) // count for (low, high), count in zip(pairwise(ends), counts, strict=True)]
        firsts = [0, *accumulate(counts)]
        counts[-1] += 1
        return tuple(map(Stretch, firsts, counts, ends, steps))

    @cached_property
    def _shares(self) -> list[int]:
        return [stretch.share for stretch in self.stretches]

    def share(self, position: int) -> int:
        """What lies to the left of a position."""
        stretch = self.stretches[bisect_right(self.stretches, position, key=lambda each: each.first) - 1]
        return stretch.share + (position - stretch.first) * stretch.step

    def upto(self, numerator: int, denominator: int) -> int:
        """How many positions have a share of at most ``numerator / denominator``."""
        share = numerator // denominator
        if share < 0:
            return 0
        stretch = self.stretches[bisect_right(self._shares, share) - 1]
        return stretch.first + min((share - stretch.share) // stretch.step + 1, stretch.count)
