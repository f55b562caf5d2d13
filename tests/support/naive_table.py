"""The table's mechanism by its definition: one answer at a time, in a world of few answers."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from dpfrugal.estimators.table.base.base_measure import Base, Component, Regions
from dpfrugal.estimators.table.base.spreads import Binades, Even
from dpfrugal.estimators.table.choices import mechanism
from dpfrugal.estimators.table.choices.answers import choice_of, target_of
from dpfrugal.estimators.table.choices.mechanism import Choice, Cut, Scores
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.privacy.choice import Total

DIGITS = 60
Distribution = dict[Cut, Decimal]
SMALL_WORLD = Base(0, 6, (Component(3, Even()), Component(1, Binades(2))))


def statistics(rows: Sequence[int]) -> OrderStatistics:
    return SortedRows(np.array(rows, dtype=np.int64))


def mass(base: Base, code: int) -> int:
    return Regions(base.components, base.low, np.array([code]), base.high).exact(1)


def exponential(exponent: Fraction) -> Decimal:
    return (Decimal(-exponent.numerator) / Decimal(exponent.denominator)).exp()


def normalised(weights: Distribution) -> Distribution:
    with localcontext(prec=DIGITS):
        total = sum(weights.values())
        return {cut: weight / total for cut, weight in weights.items() if weight}


def share(position: int) -> Fraction:
    """Of the equal rows to the left of a position: from the middle outwards 3/8 of them, 3/32, … in one stretch."""
    bits = mechanism.POSITIONS.bits
    half = sum(2**each for each in bits)
    if position > half:
        return 1 - share(2 * half - position)
    left, end = half - position, Fraction(1, 2)
    for stage in reversed(range(len(bits))):
        start = end / 4 if stage else Fraction(0)
        if left <= 2 ** bits[stage]:
            return end - (end - start) * Fraction(left, 2 ** bits[stage])
        left, end = left - 2 ** bits[stage], start
    raise AssertionError("the stretches have all positions")


def naive(rows: Sequence[int], public: Choice, target: Fraction) -> Distribution:
    """P(y) ∝ base(y)·exp(−slope·distance), within the cap on either side; the same for every position of every y."""
    weights: Distribution = {}
    with localcontext(prec=DIGITS):
        for code in range(public.base.low, public.base.high + 1):
            below, equal = sum(row < code for row in rows), rows.count(code)
            first, last = 0, mechanism.POSITIONS.last
            if public.low and public.low.code == code and public.low.position is not None:
                first = public.low.position
            if public.high and public.high.code == code and public.high.position is not None:
                last = public.high.position
            ranks = [below + share(at) * equal for at in range(first, last + 1)]
            distances = {Cut(code, first + at): abs(rank - target) for at, rank in enumerate(ranks)}
            if not public.cuts:
                distances = {Cut(code): max(ranks[0] - target, target - ranks[-1], Fraction(-public.cap))}
            for cut, distance in distances.items():
                exponent = public.slope * min(distance, Fraction(public.cap))
                weights[cut] = mass(public.base, code) * exponential(exponent)
    return normalised(weights)


def drawn(rows: OrderStatistics, public: Choice, target: Fraction) -> Distribution:
    """What the mechanism draws: the weights it chooses by, divided as it draws within what was chosen."""
    scores, base = Scores(rows, public, target), public.base
    codes = scores._window.codes.tolist()
    ends = [base.low - 1, *(end for code in codes for end in (code - 1, code)), base.high]
    positions = range(mechanism.POSITIONS.last + 1) if public.cuts else (None,)
    weights: Distribution = {}
    with localcontext(prec=DIGITS):
        for region, weight in enumerate(scores.exact()):
            if isinstance(weight, Total):
                for piece, part in zip(scores._pieces(region // 2), weight.parts, strict=True):
                    for at in range(part.count):
                        cut = Cut(codes[region // 2], piece.first + piece.direction * at)
                        assert cut not in weights
                        weights[cut] = part.mass * exponential(part.exponent + at * part.step)
            else:
                each = exponential(weight.exponent)
                for code in range(ends[region] + 1, ends[region + 1] + 1):
                    weights |= {Cut(code, at): mass(base, code) * each for at in positions}
    return normalised(weights)


def transcripts(rows: OrderStatistics, plan: Plan, base: Base) -> dict[tuple[Cut, ...], Decimal]:
    """The joint distribution of all answers of a plan, in the order of its steps."""

    def grown(found: dict[int, Cut], probability: Decimal) -> Iterator[tuple[tuple[Cut, ...], Decimal]]:
        if len(found) == len(plan.steps):
            yield tuple(found.values()), probability
            return
        step = plan.steps[len(found)]
        public = choice_of(plan, step, base, found)
        for cut, chance in drawn_once(public, target_of(step, rows, public)).items():
            yield from grown(found | {step.quantile: cut}, probability * chance)

    known: dict[tuple[Choice, Fraction], Distribution] = {}

    def drawn_once(public: Choice, target: Fraction) -> Distribution:
        key = (public, target)
        if key not in known:
            known[key] = drawn(rows, public, target)
        return known[key]

    with localcontext(prec=DIGITS):
        return dict(grown({}, Decimal(1)))


def renyi(p: dict[tuple[Cut, ...], Decimal], q: dict[tuple[Cut, ...], Decimal], order: float) -> float:
    terms = (order * float(p[at].ln()) + (1 - order) * float(q[at].ln()) for at in p)
    return math.log(math.fsum(math.exp(term) for term in terms)) / (order - 1)
