"""Confidence intervals: at which ranks their ends are chosen.

The ends of an interval are two more choices on all rows, at the ranks q·n − m and q·n + m. The margin
m = √(z²·q(1−q)·n + (a·b)²) + 1 covers the sampling error of a table of n rows drawn from a population (a normal deviate
z times the standard deviation of a binomial number), and the error of the choice itself (b = 1 / slope rows, which it
exceeds by a factor a with probability e^−a). For an interval of the table's own quantile the first term is left out.

Where n is private the margin moves with it, by at most ``growth`` for one row: that is part of the range of the choice
(docs/proofs.md, Theorem 18). The root is an integer square root, so the rank is an exact rational.

Worked number: the median of 10,000 rows at ε = 1. Each end is chosen at ε/4, so b = 8 rows, and the ends are
√(1.96²·2500 + (3·8)²) + 1 = 102 rows from rank 5,000; the exact interval of a sample has its ends 98 rows from it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Literal

IntervalOf = Literal["population", "table"]
BITS: Final = 16  # a margin is a multiple of 2^-16 rows
SPARE: Final = 1  # a row for the difference between a binomial number and a normal one


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
        """The margin of a quantile whose ends are chosen with this slope."""
        noise = math.log(1 / (2 * self.tail)) / float(slope)
        deviate = NormalDist().inv_cdf(1 - self.tail) if self.of == "population" else 0.0
        per_row = deviate**2 * float(quantile * (1 - quantile))
        return Margin(math.ceil(per_row * 4**BITS), math.ceil(noise**2 * 4**BITS))


@dataclass(frozen=True)
class Margin:
    """√(per_row·n + constant) + 1 rows, both numbers in units of 4^-16."""

    per_row: int
    constant: int

    def rows(self, number: int) -> Fraction:
        """The margin for a table of so many rows."""
        return SPARE + Fraction(math.isqrt(self.per_row * number + self.constant), 2**BITS)

    @property
    def growth(self) -> Fraction:
        """By how much it differs at most between a table and one with a row more.

        √(x + A) − √x ≤ A / (2√x), with x at least the constant; and rounding down adds at most one unit.
        """
        if not self.per_row:
            return Fraction(0)
        return (Fraction(self.per_row, 2 * max(math.isqrt(self.constant), 1)) + 1) / 2**BITS
