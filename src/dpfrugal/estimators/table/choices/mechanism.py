"""One choice among all answers: likelier the nearer its rank is to the one that is wanted (docs/proofs.md, Theorem 16).

P(y) ∝ base(y) · exp(−slope · distance), where the distance max(#(x < y) − t, t − #(x ≤ y)) is that of the wanted rank t
from the ranks that y covers. Within these it is negative: the deeper the rank lies among the rows that are equal to y,
the likelier y is, so that a number that many rows have is met whatever notation it is written in. The base is public,
and so is the cap, at which ranks that are off end to count on either side; it makes all answers outside a window of
2·cap + 1 order statistics on either side equally likely per base mass, so nothing but that window is looked at.

Beyond a p99 there are few rows, and below it many, so a row above counts 1 + lean and one below 1 − lean, which costs
what two ones cost: an answer from beyond all rows, which is the danger of small tables, is less likely by
e^(−slope·lean·rows).

Worked number: with slope 1/2 and no lean an answer whose rank is off by k rows is e^(−k/2) times as likely per base
mass, so the rank is off by 2.8 rows (root mean square) where the base is even around the quantile; at q = 0.99 by 3.1,
and all that lies above 100 rows is e^−60 times as likely instead of e^−50.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base, Regions
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Weight

# The cap, in units of 1 / slope: what lies beyond has e^-75 of the likelihood per base mass.
CAP: Final = 75
# By how much a row above the rank counts more at q = 1, and less at q = 0.
MOST_LEAN: Final = Fraction(1, 5)


@dataclass(frozen=True)
class Choice:
    """What is public about a choice: the base, the slope, and by how much a row above the rank counts more.

    ``far`` is the cap, in units of 1 / slope.
    """

    base: Base
    slope: Fraction
    lean: Fraction = Fraction(0)
    far: int | None = None

    @property
    def cap(self) -> int:
        """In rows."""
        return math.ceil((CAP if self.far is None else self.far) / self.slope)

    @property
    def above(self) -> Fraction:
        """The slope of a rank that is too high."""
        return self.slope * (1 + self.lean)

    @property
    def below(self) -> Fraction:
        """The slope of a rank that is too low."""
        return self.slope * (1 - self.lean)


def lean_of(quantile: Fraction) -> Fraction:
    """Towards the side with more rows."""
    return MOST_LEAN * (2 * quantile - 1)


def choose_code(rows: OrderStatistics, public: Choice, target: Fraction, bits: Bits | None = None) -> int:
    """The code of an answer for the rank ``target``."""
    scores = Scores(rows, public, target)
    chosen = choice.choose(scores.approximate, scores.exact, bits)
    return scores.draw(chosen, bits)


class Scores:
    """The weights of all regions of answers: gap, code, gap, …, gap."""

    def __init__(self, rows: OrderStatistics, public: Choice, target: Fraction) -> None:
        self._public, self._target, self._rows = public, target, rows.rows
        reach = public.cap + 1
        self._window = rows.window(math.floor(target) - reach, math.ceil(target) + reach, None, None)
        self._regions = Regions(public.base.components, public.base.low, self._window.codes, public.base.high)
        self._first, self._last = self._ends()
        self.approximate = self._approximate()

    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last rank that each region covers."""
        window, size = self._window, 2 * self._window.codes.size + 1
        first, last = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        first[1::2], last[1::2] = window.below, window.upto
        first[0], first[2::2] = 0, window.upto
        last[:-1:2], last[-1] = window.below, self._rows
        return first, last

    def _approximate(self) -> NDArray[np.float64]:
        """The weights in float64: ranks are compared with the target in integers first, so nothing cancels."""
        public, floor = self._public, math.floor(self._target)
        cap, part = public.cap, float(self._target - floor)
        above = float(public.above) * np.clip((self._first - floor) - part, -cap, cap)
        below = float(public.below) * np.clip((floor - self._last) + part, -cap, cap)
        weights: NDArray[np.float64] = self._regions.approximate * np.exp(-np.maximum(above, below))
        return weights

    def exact(self) -> Sequence[Weight]:
        """The same weights, exactly."""
        public, cap, found = self._public, Fraction(self._public.cap), []
        for region, (first, last) in enumerate(zip(self._first.tolist(), self._last.tolist(), strict=True)):
            above, below = (min(max(each, -cap), cap) for each in (first - self._target, self._target - last))
            found.append(Weight(self._regions.exact(region), max(public.above * above, public.below * below)))
        return found

    def draw(self, chosen: int, bits: Bits | None = None) -> int:
        """The code of an answer in the region that was chosen."""
        return self._regions.draw(chosen, bits) if chosen % 2 == 0 else int(self._window.codes[chosen // 2])
