"""One choice among all answers: likelier the nearer its rank is to the one that is wanted (docs/proofs.md, Theorem 16).

P(y) ∝ base(y) · exp(−slope · min(distance, cap)), where the distance is that of the wanted rank t from the ranks that y
covers, #(x < y) to #(x ≤ y). The base and the cap are public; the cap makes all answers outside a window of 2·cap + 1
order statistics equally likely per base mass, so nothing but that window is looked at.

An answer that divides the rows for further choices is a ``Cut``: the rows equal to it are divided too. They count as
spread evenly over the positions 0, …, 2^32 within it, and the answer is one position (Theorem 17).

Worked number: with slope 1/2 an answer whose rank is off by k rows is e^(−k/2) times as likely per base mass, so the
rank is off by 2.8 rows (root mean square) where the base is even around the quantile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base_measure import Base, Regions
from dpfrugal.estimators.table.order_statistics import OrderStatistics
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Weight

POSITIONS: Final = 2**32
# The cap, in units of 1 / slope: what lies beyond has e^-75 of the likelihood per base mass.
CAP: Final = 75


@dataclass(frozen=True)
class Cut:
    """A code, and a position from 0 to 2^32 within it: that share of the rows equal to it lies to the left."""

    code: int
    position: int


def rank(rows: OrderStatistics, cut: Cut) -> Fraction:
    """How many rows lie to the left of a cut: raw."""
    below, upto = rows.counts(cut.code)
    return below + Fraction(cut.position, POSITIONS) * (upto - below)


@dataclass(frozen=True)
class Choice:
    """What is public about a choice: the base, the cuts that it lies between, the slope, and whether it cuts too."""

    base: Base
    slope: Fraction
    low: Cut | None = None
    high: Cut | None = None
    cuts: bool = False

    @property
    def cap(self) -> int:
        """In rows."""
        return math.ceil(CAP / self.slope)


@dataclass(frozen=True)
class Piece:
    """Positions of one code that have exponents in arithmetic progression, from ``first`` on, up or down."""

    region: int
    first: int
    direction: int
    count: int
    distance: Fraction
    step: Fraction


def choose_cut(rows: OrderStatistics, public: Choice, target: Fraction, bits: Bits | None = None) -> Cut:
    """An answer for the rank ``target``."""
    scores = Scores(rows, public, target)
    chosen = choice.choose(scores.approximate, scores.exact, bits)
    return scores.draw(chosen, bits)


class Scores:
    """The weights of all regions of answers: gap, code, gap, …, gap; then the pieces of codes that need several."""

    def __init__(self, rows: OrderStatistics, public: Choice, target: Fraction) -> None:
        self._public, self._target, self._rows = public, target, rows.rows
        low, high = (None if cut is None else cut.code for cut in (public.low, public.high))
        reach = public.cap + 1
        self._window = rows.window(math.floor(target) - reach, math.ceil(target) + reach, low, high)
        self._regions = Regions(public.base.components, public.base.low, self._window.codes, public.base.high)
        self._first, self._last = self._ends()
        self._special = self._several_pieces() if public.cuts else np.zeros(0, dtype=np.int64)
        self._pieces = [piece for index in self._special.tolist() for piece in self._pieces_of(index)]
        self.approximate = self._approximate()

    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first and the last rank that each region covers."""
        window, size = self._window, 2 * self._window.codes.size + 1
        first, last = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        first[1::2], last[1::2] = window.below, window.upto
        first[0], first[2::2] = 0, window.upto
        last[:-1:2], last[-1] = window.below, self._rows
        return first, last

    def _clipped(self, region: int) -> tuple[Fraction, Fraction]:
        """The ranks that a region covers, without those of rows beyond the cuts."""
        below, upto = int(self._first[region]), int(self._last[region])
        if region % 2 == 0:
            return Fraction(below), Fraction(upto)
        rows = upto - below
        start, end = self._positions(region // 2)
        return below + Fraction(start * rows, POSITIONS), below + Fraction(end * rows, POSITIONS)

    def _positions(self, index: int) -> tuple[int, int]:
        """The positions of a code that lie between the cuts."""
        code, public = int(self._window.codes[index]), self._public
        start = public.low.position if public.low is not None and code == public.low.code else 0
        end = public.high.position if public.high is not None and code == public.high.code else POSITIONS
        return start, end

    def _distance(self, region: int) -> Fraction:
        """The distance of the target from the ranks that a region covers, at most the cap."""
        first, last = self._clipped(region)
        return min(max(first - self._target, self._target - last, Fraction(0)), Fraction(self._public.cap))

    def _several_pieces(self) -> NDArray[np.int64]:
        """The codes whose positions are not all on one side of the target and of the cap, and those at the cuts."""
        window, cap = self._window, self._public.cap
        floor, ceiling = math.floor(self._target), math.ceil(self._target)
        # All positions up to the target and within the cap, or beyond it; all positions above the target, likewise.
        left = (window.upto <= floor) & ((window.below > floor - cap) | (window.upto <= floor - cap))
        right = (window.below > floor) & ((window.upto < ceiling + cap) | (window.below >= ceiling + cap))
        cuts = [cut.code for cut in (self._public.low, self._public.high) if cut is not None]
        return np.flatnonzero(~(left | right) | np.isin(window.codes, cuts))

    def _pieces_of(self, index: int) -> list[Piece]:
        """The positions of a code: beyond the cap, up to the target, from there on, beyond the cap."""
        window, target, cap = self._window, self._target, self._public.cap
        below, rows = int(window.below[index]), int(window.upto[index] - window.below[index])
        start, end = self._positions(index)
        region = 2 * index + 1
        if not rows:
            distance = min(abs(below - target), Fraction(cap))
            return [Piece(region, start, 1, end - start + 1, distance, Fraction(0))]
        step = Fraction(rows, POSITIONS)
        at = (target - below) / step  # the target's own position
        bounds = [start, math.floor(at - cap / step) + 1, math.floor(at) + 1, math.ceil(at + cap / step), end + 1]
        bounds = [min(max(bound, start), end + 1) for bound in bounds]
        pieces = [
            Piece(region, bounds[0], 1, bounds[1] - bounds[0], Fraction(cap), Fraction(0)),
            Piece(region, bounds[2] - 1, -1, bounds[2] - bounds[1], target - below - (bounds[2] - 1) * step, step),
            Piece(region, bounds[2], 1, bounds[3] - bounds[2], below + bounds[2] * step - target, step),
            Piece(region, bounds[3], 1, bounds[4] - bounds[3], Fraction(cap), Fraction(0)),
        ]
        return [piece for piece in pieces if piece.count]

    def _approximate(self) -> NDArray[np.float64]:
        """The weights in float64: ranks are compared with the target in integers first, so nothing cancels."""
        public, cap, slope = self._public, self._public.cap, float(self._public.slope)
        masses = self._regions.approximate
        floor = math.floor(self._target)
        part = float(self._target - floor)
        distances = np.maximum(np.maximum((self._first - floor) - part, (floor - self._last) + part), 0.0)
        if not public.cuts:
            for region in self._regions_at_cuts():
                distances[region] = float(self._distance(region))
        weights: NDArray[np.float64] = masses * np.exp(-slope * np.minimum(distances, cap))
        if not public.cuts:
            return weights
        weights *= POSITIONS + 1
        window = self._window
        steps = slope * (window.upto - window.below) / POSITIONS
        uncapped = distances[1::2] < cap - 0.5  # a code of one piece ends a row before the cap, or begins beyond it
        with np.errstate(invalid="ignore", divide="ignore"):
            sums = np.expm1(-steps * (POSITIONS + 1)) / np.expm1(-steps) / (POSITIONS + 1)
        weights[1::2] *= np.where(uncapped & (steps > 0), sums, 1.0)
        weights[2 * self._special + 1] = 0.0
        return np.concatenate([weights, [self._approximate_piece(piece) for piece in self._pieces]])

    def _regions_at_cuts(self) -> list[int]:
        cuts = [cut.code for cut in (self._public.low, self._public.high) if cut is not None]
        return [2 * int(index) + 1 for index in np.flatnonzero(np.isin(self._window.codes, cuts))]

    def _approximate_piece(self, piece: Piece) -> float:
        step = float(self._public.slope * piece.step)
        number = math.expm1(-step * piece.count) / math.expm1(-step) if step else float(piece.count)
        mass = float(self._regions.approximate[piece.region])
        return mass * math.exp(-float(self._public.slope * piece.distance)) * number

    def exact(self) -> Sequence[Weight]:
        """The same weights, exactly."""
        special = {2 * int(index) + 1 for index in self._special}
        whole = [self._whole(region, region in special) for region in range(2 * self._window.codes.size + 1)]
        return whole + [self._weight(piece) for piece in self._pieces]

    def _whole(self, region: int, special: bool) -> Weight:
        """The weight of a region that is one piece."""
        slope, cuts = self._public.slope, self._public.cuts
        if special:
            return Weight(0, Fraction(0))
        if cuts and region % 2:
            (piece,) = self._pieces_of(region // 2)
            return self._weight(piece)
        count = POSITIONS + 1 if cuts else 1
        return Weight(self._regions.exact(region), slope * self._distance(region), count)

    def _weight(self, piece: Piece) -> Weight:
        slope, mass = self._public.slope, self._regions.exact(piece.region)
        return Weight(mass, slope * piece.distance, piece.count, slope * piece.step)

    def draw(self, chosen: int, bits: Bits | None = None) -> Cut:
        """An answer of what was chosen."""
        regions = 2 * self._window.codes.size + 1
        if chosen < regions and (chosen % 2 == 0 or not self._public.cuts):
            code = self._regions.draw(chosen, bits)
            return Cut(code, choice.below(POSITIONS + 1, bits) if self._public.cuts else 0)
        piece = self._pieces[chosen - regions] if chosen >= regions else self._pieces_of(chosen // 2)[0]
        offset = choice.geometric_below(piece.count, self._public.slope * piece.step, bits)
        return Cut(int(self._window.codes[piece.region // 2]), piece.first + piece.direction * offset)
