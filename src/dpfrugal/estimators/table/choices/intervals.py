"""Confidence intervals: how many rows an interval must hold on either side of its quantile's rank.

An interval is drawn around a released value (``radius``) so that about ``margin`` rows lie between the rank q·n and
either end. The margin is the larger of two: a normal deviate z times the standard deviation √(q(1−q)·n) of a binomial
number, which covers the sampling error of a table drawn from a population, less 3b / 8 rows, as the value lies off
to one side and leaves more rows on the other; and 5.5 times b = 1 / slope rows, which covers the error of the choice
itself. For an interval of the table's own quantile it is the latter.

Where n is private the margin moves with it, by at most ``growth`` for one row: that is part of the range of the choice
(docs/proofs.md, Theorem 18). The root is an integer square root, so the margin is an exact rational.

Worked number: the median of 10,000 rows at ε = 1. The radius is chosen at ε/2, so b = 4 rows, and the margin is
1.96·50 − 1.5 = 96.5 rows, and 98 that of the exact interval of a sample; of 400 rows it would be 22, and the exact one
20.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Literal

IntervalOf = Literal["population", "table"]
BITS: Final = 16  # a margin is a multiple of 2^-16 rows
CERTAIN: Final = 2.5  # added to the logarithm of 1 / (2·tail) for the error of the choice: 2.5 + 3 at 95%
LOPSIDED: Final = 0.375  # of 1 / slope: by so many rows the margin of sampling is less


@dataclass(frozen=True)
class IntervalRule:
    """What an interval holds, and how likely: the quantile of the population, or that of the table itself."""

    confidence: float = 0.95
    of: IntervalOf = "population"

    @property
    def tail(self) -> float:
        """How likely the quantile lies beyond either end."""
        return (1 - self.confidence) / 2

    def margin(self, quantile: Fraction, slope: Fraction) -> "Margin":
        """The margin of a quantile whose radius is chosen with this slope."""
        noise = (CERTAIN + math.log(1 / (2 * self.tail))) / float(slope)
        deviate = NormalDist().inv_cdf(1 - self.tail) if self.of == "population" else 0.0
        per_row = deviate**2 * float(quantile * (1 - quantile))
        less = math.floor(LOPSIDED / float(slope) * 2**BITS)
        return Margin(math.ceil(per_row * 4**BITS), math.ceil(noise * 2**BITS), less)


@dataclass(frozen=True)
class Margin:
    """The larger of √(per_row·n) − ``less`` rows and of ``least`` rows, in units of 4^-16 and 2^-16."""

    per_row: int
    least: int
    less: int = 0

    def rows(self, number: int) -> Fraction:
        """The margin for a table of so many rows."""
        return Fraction(max(math.isqrt(self.per_row * number) - self.less, self.least), 2**BITS)

    @property
    def growth(self) -> Fraction:
        """By how much it differs at most between a table and one with a row more.

        √(x + A) − √x is at most √A, and at most A / (2√x), with x at least least² − A where the root matters; and
        rounding down adds at most one unit.
        """
        if not self.per_row:
            return Fraction(0)
        steep = Fraction(math.isqrt(self.per_row) + 1)
        if (x := self.least**2 - self.per_row) > 0:
            steep = min(steep, Fraction(self.per_row, 2 * math.isqrt(x)))
        return (steep + 1) / 2**BITS
