"""The exact choice: an index with probability proportional to mass · exp(−exponent), for integers and rationals.

``choose`` draws the probabilities of real arithmetic, with no rounding (docs/proofs.md, Theorem 15). A point of [0, 1)
comes bit by bit from the operating system and is compared with the cumulative weights: in float64 where the point is
farther from every boundary than rounding can reach, else with decimal digits, and ever more of them, until the
comparison is certain. ``slope`` says how steep the exponents may be under a guarantee (Theorem 16).

Worked number: replacing a row changes the distance of an answer from its rank by at most 1 in either direction, a range
of 2, so ``slope(PureDP(epsilon=1), Ranges(2, 4))`` is 1/2: each row of distance costs a factor of e^(1/2).
"""

import math
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.privacy.guarantee_interface import Guarantee
from dpfrugal.privacy.zcdp_conversions import rho_for

Bits = Callable[[int], int]

FIRST_BITS: Final = 64
FIRST_DIGITS: Final = 50
# What a caller's float weights may be off, relatively; and what the filter allows for that and for its own sums.
FLOAT_ERROR: Final = 2.0**-40
SUM_ERROR: Final = 2.0**-50
SMALLEST_TOTAL: Final = 2.0**-600  # below it, weights that have underflowed might matter
LARGEST_TOTAL: Final = 2.0**1000
# 2^-64 of a slope is lost where its square root is rounded down.
ROOT_BITS: Final = 64


@dataclass(frozen=True)
class Ranges:
    """How far a neighbour can change all exponents of slope 1: the sum of the ranges over all choices, and of squares.

    The range of a choice is the largest minus the smallest change of its exponents.
    """

    l1: Fraction
    l2_squared: Fraction

    def scaled(self, factor: Fraction) -> "Ranges":
        """The ranges of exponents that are all ``factor`` times as steep."""
        return Ranges(self.l1 * factor, self.l2_squared * factor**2)


def slope(guarantee: Guarantee, ranges: Ranges) -> Fraction:
    """The largest slope at which choices with these ranges satisfy the guarantee together (Theorem 16)."""
    if guarantee.epsilon_delta is None:
        return _concentrated_slope(guarantee, guarantee.implied_rho, ranges)
    epsilon, delta = guarantee.epsilon_delta
    pure = Fraction(epsilon) / ranges.l1
    return max(pure, _concentrated_slope(guarantee, rho_for(epsilon, delta), ranges)) if delta else pure


def _concentrated_slope(guarantee: Guarantee, rho: float | None, ranges: Ranges) -> Fraction:
    """A choice of range r is r²/8-zCDP; rounded down."""
    if rho is None:
        raise ParameterError(f"guarantee must state an ε or a ρ for a choice; {guarantee} states neither.")
    squared = 8 * Fraction(rho) / ranges.l2_squared
    # Scaled so that at least ROOT_BITS bits of the root are whole.
    shift = max(0, ROOT_BITS + (squared.denominator.bit_length() - squared.numerator.bit_length()) // 2 + 1)
    return Fraction(math.isqrt(squared.numerator * 4**shift // squared.denominator), 2**shift)


@dataclass(frozen=True)
class Weight:
    """mass · exp(−exponent)."""

    mass: int
    exponent: Fraction

    def to_decimal(self, digits: int) -> Decimal:
        """The weight, within 10^-digits of itself."""
        with localcontext(_context(digits + 12 + len(str(math.ceil(self.exponent))))):
            return Decimal(self.mass) * (-_decimal(self.exponent)).exp()


@dataclass(frozen=True)
class Computed:
    """A positive weight: what computes it, within 10^-digits of itself."""

    to_decimal: Callable[[int], Decimal]
    mass: int = 1


def _context(digits: int) -> Context:
    """So wide that no positive weight is rounded to zero."""
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _decimal(fraction: Fraction) -> Decimal:
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def words(groups: int, each: int) -> NDArray[np.uint64]:
    """Words of 64 bits from the operating system, so many for each of some groups."""
    return np.frombuffer(os.urandom(8 * groups * each), dtype=np.uint64).reshape(groups, each)


class Tape:
    """Bits that are taken from given words, whole words at a time and of them the upper bits; then new ones."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    def __call__(self, count: int) -> int:
        """So many bits."""
        number, length = 0, -(-count // 64)
        for _ in range(length):
            number = number << 64 | next(self._words, secrets.randbits(64))
        return number >> (64 * length - count)


class Point:
    """A uniform point of [0, 1), of which as many bits are drawn as somebody has asked for."""

    def __init__(self, bits: Bits) -> None:
        self._bits = bits
        self.length, self.numerator = 0, 0

    def known_to(self, length: int) -> int:
        """The first ``length`` bits, as an integer."""
        if length > self.length:
            more = length - self.length
            self.numerator = self.numerator << more | self._bits(more)
            self.length = length
        return self.numerator >> (self.length - length)


def choose(
    approximate: NDArray[np.float64],
    exactly: Callable[[], Sequence[Weight | Computed]],
    bits: Bits | None = None,
    margin: float = 0.0,
) -> int:
    """An index with probability exactly proportional to the weight that ``exactly`` gives it.

    ``approximate`` has the same weights, each within 2^-40 of itself or 2^-700, or their sums within ``margin`` / 2 of
    the total; it saves time and decides nothing. ``exactly`` is called where that is not enough, once in millions of
    draws.
    """
    point = Point(bits or secrets.randbits)
    index = by_floats(approximate, point, margin)
    return by_digits(exactly(), point) if index is None else index


def by_floats(weights: NDArray[np.float64], point: Point, margin: float = 0.0) -> int | None:
    """The index at the point, or None where rounding might reach a boundary beside it."""
    cumulative = np.cumsum(weights)
    total = float(cumulative[-1])
    if not SMALLEST_TOTAL < total < LARGEST_TOTAL:
        return None
    margin = total * max(margin, 4 * FLOAT_ERROR + weights.size * SUM_ERROR)
    place = point.known_to(FIRST_BITS) / 2.0**FIRST_BITS * total
    index = int(np.searchsorted(cumulative, place, "right"))
    if index >= weights.size or (index and place - cumulative[index - 1] <= margin):
        return None
    # The last boundary is 1, above every point.
    return index if index == weights.size - 1 or cumulative[index] - place > margin else None


def by_digits(weights: Sequence[Weight | Computed], point: Point, digits: int = FIRST_DIGITS) -> int:
    """The index at the point: the specification of the choice, in integers."""
    last = max(index for index, weight in enumerate(weights) if weight.mass)
    while True:
        low, high = _bounds(weights, digits)
        length = max(FIRST_BITS, 4 * digits)
        numerator = point.known_to(length)
        # Boundary i lies between low[i] / high[-1] and high[i] / low[-1], the last one is 1; the point lies between
        # numerator and numerator + 1, in units of 2^-length.
        for index in range(last + 1):
            if index == last or (numerator + 1) * high[-1] <= low[index] << length:
                if index == 0 or numerator * low[-1] >= high[index - 1] << length:
                    return index
                break
            if numerator * low[-1] < high[index] << length:  # neither below this boundary for certain, nor above it
                break
        digits *= 2


def _bounds(weights: Sequence[Weight | Computed], digits: int) -> tuple[list[int], list[int]]:
    """Lower and upper bounds of the cumulative weights, in units of 10^-digits of the largest."""
    values = [weight.to_decimal(digits) for weight in weights]
    unit = digits - max(value.adjusted() for value in values if value)
    with localcontext(_context(2 * digits + 50)):
        # A scaled weight is below 10^(digits + 1), so 10^-digits of it is less than 10, and rounding less than 1.
        scaled = [int(value.scaleb(unit)) if value else None for value in values]
    low = accumulate(0 if value is None else max(0, value - 11) for value in scaled)
    high = accumulate(0 if value is None else value + 12 for value in scaled)
    return list(low), list(high)


def below(count: int, bits: Bits | None = None) -> int:
    """A uniform integer from 0 to count − 1."""
    draw, length = bits or secrets.randbits, (count - 1).bit_length()
    while length:
        if (number := draw(length)) < count:
            return number
    return 0
