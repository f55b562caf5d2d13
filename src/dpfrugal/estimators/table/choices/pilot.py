"""A pilot: where a table lies and on which numbers, before several answers are chosen (docs/proofs.md, Theorem 22).

Rows may lie far from 0 and near each other, as times of one day in seconds, or on a lattice, as speeds in whole knots
that were turned into miles. Each of several answers, or of many groups', would have to find that out by itself. So two
cheap choices find it out for all of them: a number from the middle of the whole table, a hundred rows off or so, and
the lattice that most rows around its rank lie on. The base of all other choices then has half of its mass on this
lattice, and a little around this number. A pilot that is wrong costs the others a factor of two in mass, which is what
two rows are worth.

A lattice is e^slope times as likely for every row of the window that lies on it, and loses a thirty-second of the
window to each coarser one: whole numbers are tenths, too.

Worked number: at ε = 1 the pilot has 4% of the guarantee, so its slope is 1/100, its number is 140 rows off (root mean
square), and its window has 4,500 rows on either side. Where all of these are cents, the lattice of cents has 3/32 less
than all, that of all numbers 12/32, and is e^(90·9/32) = 10^11 times less likely, but for their public weights.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.choices.mechanism import Choice, choose_code
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, Reach
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Weight

# The cap of its number's rank, in units of 1 / slope: less than that of an answer, as a pilot may be wrong.
CAP: Final = 45
# How many more of the window's rows a lattice must have than the next coarser one.
FINER: Final = Fraction(1, 32)


@dataclass(frozen=True)
class Pilot:
    """The code of a number in the middle, and a lattice by its place in the base; None where there is no choice."""

    middle: int
    lattice: int | None


def directed(rows: OrderStatistics, plan: Plan, base: Base, bits: Bits | None = None) -> Base:
    """The base of a plan's choices, towards its pilot among all rows of the table; the base itself without a pilot."""
    if not plan.pilot_slope:
        return base
    pilot = choose_pilot(rows, base, plan.asked.pilot_quantile, plan.pilot_slope, bits)
    return base.towards(pilot.middle, pilot.lattice)


def choose_pilot(
    rows: OrderStatistics, base: Base, quantile: Fraction, slope: Fraction, bits: Bits | None = None
) -> Pilot:
    """Choose a number at a quantile, then a lattice: two choices of this slope."""
    rank = quantile * rows.rows
    middle = choose_code(rows, Choice(base, slope, far=CAP), rank, bits)
    if not base.lattices:
        return Pilot(middle, None)
    votes = Votes(rows, base, rank, slope)
    return Pilot(middle, choice.choose(votes.approximate, votes.exact, bits))


class Votes:
    """How many rows of the window around a rank lie on each lattice, and the weights of all lattices."""

    def __init__(self, rows: OrderStatistics, base: Base, rank: Fraction, slope: Fraction) -> None:
        self._base, self._slope = base, slope
        middle, reach = math.floor(rank), math.ceil(CAP / slope)
        first, last = max(middle - reach, 0), min(middle + reach, rows.rows - 1)
        window = rows.window(first, last, None, None)
        # Of equal rows at the ends of the window those count that are within it.
        self._numbers = np.minimum(window.upto, last + 1) - np.maximum(window.below, first)
        self._on = [int(self._numbers[on].sum()) for on in self._points(window.codes)]

    def _points(self, codes: Codes) -> list[NDArray[np.bool_]]:
        """Which of some codes are points of each lattice."""
        found = []
        for lattice in self._base.lattices:
            on = np.zeros(codes.size, dtype=np.bool_)
            for at in lattice.parts:
                before, upto = self._base.components[at].around(codes)
                on |= (before.high != upto.high) | (before.low != upto.low)
            found.append(on)
        return found

    def exact(self) -> Sequence[Weight]:
        """The weights of all lattices; only their ratios matter."""
        rows = int(self._numbers.sum())
        votes = [on - FINER * finer * rows for finer, on in enumerate(self._on)]
        most = max(votes)
        pairs = zip(self._base.lattices, votes, strict=True)
        return [Weight(lattice.weight, self._slope * (most - each)) for lattice, each in pairs]

    @property
    def approximate(self) -> NDArray[np.float64]:
        """The same in float64."""
        return np.array([each.mass * math.exp(-float(each.exponent)) for each in self.exact()])


def reach_of_pilot(plan: Plan) -> int:
    """How many rows on either side of its rank the pilot of a plan looks at."""
    return math.ceil(CAP / plan.pilot_slope) + 1


def ranks_of_pilot(plan: Plan) -> Reach | None:
    """The same as ranks of all rows, for tables of any size: public."""
    return Reach(float(plan.asked.pilot_quantile), float(reach_of_pilot(plan)), 0.0) if plan.pilot_slope else None
