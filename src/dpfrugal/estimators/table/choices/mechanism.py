"""One choice among all answers: likelier the nearer its rank is to the one that is wanted (docs/proofs.md, Theorem 16).

P(y) ∝ base(y) · exp(−slope · distance), where the distance max(#(x < y) − t, t − #(x ≤ y)) is that of the wanted rank t
from the ranks that y covers. Within these it is negative: the deeper the rank lies among the rows that are equal to y,
the likelier y is, so that a number that many rows have is met whatever notation it is written in. The base is public,
and so is the cap, at which distances end on either side; it makes all answers outside a window of 2·cap + 1 order
statistics equally likely per base mass, so nothing but that window is looked at.

An answer that divides the rows for further choices is a ``Cut``: the rows equal to it are divided too, at one of the
``positions`` within it (Theorem 17).

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

from dpfrugal.estimators.table.base.base_measure import Base, Regions
from dpfrugal.estimators.table.choices.positions import Positions
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Total, Weight

POSITIONS: Final = Positions(bits=(26, 26, 26, 26, 27, 27, 28, 29))
# The cap, in units of 1 / slope: what lies beyond has e^-75 of the likelihood per base mass.
CAP: Final = 75


@dataclass(frozen=True)
class Cut:
    """A code, and one of the positions within it: a share of the rows equal to it lies to the left.

    An answer that divides no rows has no position: choices beside it may have the same code.
    """

    code: int
    position: int | None = None


def rank(rows: OrderStatistics, cut: Cut) -> Fraction:
    """How many rows lie to the left of a cut: raw."""
    below, upto = rows.counts(cut.code)
    if cut.position is None:
        raise AssertionError("an answer that divides no rows has no rank")
    return below + Fraction(POSITIONS.share(cut.position) * (upto - below), POSITIONS.whole)


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

    def positions(self, code: int) -> tuple[int, int]:
        """The first and the last position of a code that lie between the cuts."""
        start, end = (None if cut is None or cut.code != code else cut.position for cut in (self.low, self.high))
        return 0 if start is None else start, POSITIONS.last if end is None else end


@dataclass(frozen=True)
class Piece:
    """Positions of one code whose distances are in arithmetic progression, from ``first`` on, up or down.

    Distances are in parts of a row, so many that all are integers.
    """

    first: int
    direction: int
    count: int
    distance: int
    step: int


def choose_cut(rows: OrderStatistics, public: Choice, target: Fraction, bits: Bits | None = None) -> Cut:
    """An answer for the rank ``target``."""
    scores = Scores(rows, public, target)
    chosen = choice.choose(scores.approximate, scores.exact, bits)
    return scores.draw(chosen, bits)


class Scores:
    """The weights of all regions of answers: gap, code, gap, …, gap."""

    def __init__(self, rows: OrderStatistics, public: Choice, target: Fraction) -> None:
        self._public, self._target, self._rows = public, target, rows.rows
        self._cap = public.cap
        self._least = 0 if public.cuts else -public.cap  # a cut's own position says how deep it lies
        self._parts = POSITIONS.whole * target.denominator  # of a row, in which distances of positions are integers
        low, high = (None if cut is None else cut.code for cut in (public.low, public.high))
        reach = self._cap + 1
        self._window = rows.window(math.floor(target) - reach, math.ceil(target) + reach, low, high)
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

    def _clipped(self, region: int) -> tuple[Fraction, Fraction]:
        """The ranks that a region covers, without those of rows beyond the cuts."""
        below, upto = int(self._first[region]), int(self._last[region])
        if region % 2 == 0:
            return Fraction(below), Fraction(upto)
        start, end = (POSITIONS.share(each) for each in self._public.positions(int(self._window.codes[region // 2])))
        first, last = (Fraction(share * (upto - below), POSITIONS.whole) for share in (start, end))
        return below + first, below + last

    def _distance(self, region: int) -> Fraction:
        """The distance of the target from the ranks that a region covers, between the cap and its negative."""
        first, last = self._clipped(region)
        return min(max(first - self._target, self._target - last, Fraction(self._least)), Fraction(self._cap))

    def _divided(self) -> NDArray[np.int64]:
        """The codes whose positions are not all on one side of the target and of the cap, and those at the cuts."""
        window, cap = self._window, self._cap
        floor, ceiling = math.floor(self._target), math.ceil(self._target)
        # All positions up to the target and within the cap, or beyond it; all positions above the target, likewise.
        left = (window.upto <= floor) & ((window.below > floor - cap) | (window.upto <= floor - cap))
        right = (window.below > floor) & ((window.upto < ceiling + cap) | (window.below >= ceiling + cap))
        return np.flatnonzero(~(left | right) | self._at_cuts())

    def _at_cuts(self) -> NDArray[np.bool_]:
        cuts = [cut.code for cut in (self._public.low, self._public.high) if cut is not None]
        return np.isin(self._window.codes, cuts)

    def _pieces(self, index: int) -> list[Piece]:
        """The positions of a code: beyond the cap, up to the target, from there on, beyond the cap."""
        window, cap = self._window, self._cap * self._parts
        below, rows = int(window.below[index]), int(window.upto[index] - window.below[index])
        start, end = self._public.positions(int(window.codes[index]))
        wanted = self._target.numerator * POSITIONS.whole - below * self._parts
        if not rows:
            return [Piece(start, 1, end - start + 1, min(abs(wanted), cap), 0)]
        scale = rows * self._target.denominator  # the parts of a row in one unit of a share
        bounds = [POSITIONS.upto(each, scale) for each in (wanted - cap, wanted, wanted + cap - 1)]
        first, middle, last = (min(max(bound, start), end + 1) for bound in bounds)
        pieces = [Piece(start, 1, first - start, cap, 0), Piece(last, 1, end + 1 - last, cap, 0)]
        for stretch in POSITIONS.stretches:
            low, high = max(stretch.first, first), min(stretch.first + stretch.count, middle)
            distance = wanted - scale * (stretch.share + (high - 1 - stretch.first) * stretch.step)
            pieces.append(Piece(high - 1, -1, high - low, distance, scale * stretch.step))
            low, high = max(stretch.first, middle), min(stretch.first + stretch.count, last)
            distance = scale * (stretch.share + (low - stretch.first) * stretch.step) - wanted
            pieces.append(Piece(low, 1, high - low, distance, scale * stretch.step))
        return [piece for piece in pieces if piece.count > 0]

    def _approximate(self) -> NDArray[np.float64]:
        """The weights in float64: ranks are compared with the target in integers first, so nothing cancels."""
        public, cap, slope = self._public, self._cap, float(self._public.slope)
        floor = math.floor(self._target)
        part = float(self._target - floor)
        distances = np.maximum(np.maximum((self._first - floor) - part, (floor - self._last) + part), self._least)
        if not public.cuts:
            for region in (2 * np.flatnonzero(self._at_cuts()) + 1).tolist():
                distances[region] = float(self._distance(region))
        weights: NDArray[np.float64] = self._regions.approximate * np.exp(-slope * np.minimum(distances, cap))
        if public.cuts:
            whole, divided = weights[1::2], self._divided()
            weights[::2] *= POSITIONS.last + 1
            uncapped = distances[1::2] < cap - 0.5  # an undivided code ends a row before the cap, or begins beyond it
            whole *= _sums(np.where(uncapped, slope * (self._window.upto - self._window.below), 0.0))
            masses = self._regions.approximate[1::2]
            for index in divided.tolist():
                whole[index] = masses[index] * self._approximate_pieces(self._pieces(index)).sum()
        return weights

    def _approximate_pieces(self, pieces: Sequence[Piece]) -> NDArray[np.float64]:
        """The weights of pieces for a mass of 1."""
        slope, parts = self._public.slope, self._parts
        unit = slope.numerator / (slope.denominator * parts)
        exponents, steps = (
            unit * np.array(each) for each in ([float(p.distance) for p in pieces], [float(p.step) for p in pieces])
        )
        return np.exp(-exponents) * _progressions(steps, np.array([float(piece.count) for piece in pieces]))

    def exact(self) -> Sequence[Weight | Total]:
        """The same weights, exactly."""
        return [self._exact(region) for region in range(2 * self._window.codes.size + 1)]

    def _exact(self, region: int) -> Weight | Total:
        mass, cuts = self._regions.exact(region), self._public.cuts
        if cuts and region % 2:
            return Total(tuple(self._weight(mass, piece) for piece in self._pieces(region // 2)))
        return Weight(mass, self._public.slope * self._distance(region), POSITIONS.last + 1 if cuts else 1)

    def _weight(self, mass: int, piece: Piece) -> Weight:
        unit = self._public.slope / self._parts
        return Weight(mass, unit * piece.distance, piece.count, unit * piece.step)

    def draw(self, chosen: int, bits: Bits | None = None) -> Cut:
        """An answer of the region that was chosen."""
        if chosen % 2 == 0:
            code = self._regions.draw(chosen, bits)
            return Cut(code, choice.below(POSITIONS.last + 1, bits) if self._public.cuts else None)
        if not self._public.cuts:
            return Cut(int(self._window.codes[chosen // 2]))
        pieces = self._pieces(chosen // 2)
        weights = [self._weight(1, piece) for piece in pieces]
        at = choice.choose(self._approximate_pieces(pieces), lambda: weights, bits)
        offset = choice.geometric_below(pieces[at].count, weights[at].step, bits)
        return Cut(int(self._window.codes[chosen // 2]), pieces[at].first + pieces[at].direction * offset)


def _sums(steepness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ exp(−steepness · share) over all positions, for a code on one side of the target."""
    different, places = np.unique(steepness, return_inverse=True)
    stretches = POSITIONS.stretches
    shares, steps, counts = (
        np.array([float(getattr(each, name)) for each in stretches]) for name in ("share", "step", "count")
    )
    exponents, steps = (different[:, None] * (each / POSITIONS.whole) for each in (shares, steps))
    sums: NDArray[np.float64] = (np.exp(-exponents) * _progressions(steps, counts)).sum(axis=1)
    return sums[places]


def _progressions(steps: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ exp(−k · step) over 0 ≤ k < count."""
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.expm1(-steps * counts) / np.expm1(-steps)
    return np.where(steps > 0, sums, counts)
