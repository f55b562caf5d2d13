"""The base measure: how much mass each possible answer has before any row is looked at, in exact integers.

An answer is written as a *code*, an int64 that has the order of the answers: of a double its place among all doubles
(−0.0 is 0.0), of an integer the integer itself. A base is a sum of components with integer weights. A component is an
ordered set of points (all codes, the multiples of 10^-j rounded to doubles, the multiples of a power of two) and a
spread over their indices: evenly, or evenly over the binades of the distance from a centre, and evenly within each.

Cumulative masses are exact pairs high·2^bits + low, so the mass of any range of codes is known as an integer and, with
no cancellation, in float64 to within a few roundings. Worked number: of the base of doubles, half is spread over
doubles, the binade from 4 to 8 having 0.25%, and half over the multiples of 1, 0.1, …, 0.0001: 7 has 0.049% of the
whole and 7.25, which is a multiple of 0.01, 0.00020%.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfrugal.privacy import choice

Codes = NDArray[np.int64]
UNIT_BITS: Final = 63  # a binade has mass 2^63, so an integer of 64 bits has at least 1
INFINITY: Final = 0x7FF0000000000000  # the code of inf
MOST_INDEX: Final = 2**53 - 1
EVEN_BITS: Final = 32
# How finely a range between two known answers is divided, in bits.
FINE_BITS: Final = 40


def codes_of(values: NDArray[np.float64]) -> Codes:
    """The places of doubles among all doubles."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & np.int64(2**63 - 1)))


def doubles_of(codes: Codes) -> NDArray[np.float64]:
    """The doubles at these places; what lies beyond ±inf is ±inf."""
    codes = np.clip(np.asarray(codes, dtype=np.int64), -INFINITY, INFINITY)
    return np.where(codes >= 0, codes, -codes | np.int64(-(2**63))).view(np.float64)


@dataclass(frozen=True)
class Places:
    """Cumulative masses, high·2^bits + low with 0 ≤ low < 2^bits."""

    high: NDArray[np.int64]
    low: NDArray[np.uint64]
    bits: int

    def exact(self, index: int) -> int:
        """One of them, as an integer."""
        return (int(self.high[index]) << self.bits) + int(self.low[index])

    def masses(self) -> NDArray[np.float64]:
        """What lies between each and the next, a sum of terms that are not negative."""
        units = np.diff(self.high)
        first, second, unit = self.low[:-1], self.low[1:], 2.0**self.bits
        across = (units - 1) * unit + (np.uint64(2**self.bits) - first).astype(np.float64) + second.astype(np.float64)
        # Within one unit low does not decrease; elsewhere the difference may wrap, and is not taken.
        return np.where(units == 0, (second - first).astype(np.float64), across)


class Spread(Protocol):
    """A measure on indices: the cumulative mass up to an index or below it, and the index at a mass."""

    def upto(self, indices: Codes) -> Places:
        """The cumulative masses up to indices."""

    def below(self, indices: Codes) -> Places:
        """The cumulative masses below indices."""

    def index(self, position: int) -> int:
        """The index whose mass covers a position."""


class Even:
    """Mass 1 for every index."""

    def upto(self, indices: Codes) -> Places:
        """The index plus one, which may be 2^63."""
        low = (indices & np.int64(2**EVEN_BITS - 1)) + 1
        return Places(
            (indices >> EVEN_BITS) + (low >> EVEN_BITS), (low & (2**EVEN_BITS - 1)).view(np.uint64), EVEN_BITS
        )

    def below(self, indices: Codes) -> Places:
        """The index."""
        return Places(indices >> EVEN_BITS, (indices & np.int64(2**EVEN_BITS - 1)).view(np.uint64), EVEN_BITS)

    def index(self, position: int) -> int:
        """The index that has the mass from ``position`` to ``position + 1``."""
        return position


@dataclass(frozen=True)
class Binades:
    """2^63 for the centre and for each binade of the distance from it, on either side; evenly within a binade.

    Cumulative masses count from just below the centre.
    """

    centre: int = 0

    def upto(self, indices: Codes) -> Places:
        """Of the centre and the first d indices above it, or minus the first d − 1 below it."""
        above = indices >= self.centre
        return self._places(above, self._distances(indices) - np.where(above, 0, 1).astype(np.uint64), above)

    def below(self, indices: Codes) -> Places:
        """The same without the index itself."""
        above = indices > self.centre
        return self._places(above, self._distances(indices) - above.astype(np.uint64), above)

    def _distances(self, indices: Codes) -> NDArray[np.uint64]:
        """Differences modulo 2^64 are right: no distance reaches that."""
        plain, centre = indices.view(np.uint64), np.uint64(self.centre % 2**64)
        return np.where(indices >= self.centre, plain - centre, centre - plain)

    def _places(self, above: NDArray[np.bool_], number: NDArray[np.uint64], with_centre: NDArray[np.bool_]) -> Places:
        """The mass of the first ``number`` indices on one side, counted up or down."""
        high, low = _first(number)
        down = ~above
        borrowed = down & (low > 0)
        return Places(
            np.where(down, -high - borrowed, high + with_centre),
            np.where(borrowed, np.uint64(2**UNIT_BITS) - low, low),
            UNIT_BITS,
        )

    def index(self, position: int) -> int:
        """The index whose mass covers ``position``."""
        unit = 1 << UNIT_BITS
        if 0 <= position < unit:
            return self.centre
        rest = position - unit if position > 0 else -1 - position
        binade, within = divmod(rest, unit)
        distance = (1 << binade) + (within >> (UNIT_BITS - binade))
        return self.centre + (distance if position > 0 else -distance)


def _first(number: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The mass of 1, …, number, each 2^(63 − e) in binade e, as a pair."""
    known = np.maximum(number, np.uint64(1))
    binade = np.minimum(np.frexp(known.astype(np.float64))[1] - 1, 63).astype(np.uint64)
    binade -= (np.uint64(1) << binade) > known  # the conversion to float64 may have rounded up to a power of two
    low = (known - (np.uint64(1) << binade) + np.uint64(1)) << (np.uint64(UNIT_BITS) - binade)
    full = low >> np.uint64(UNIT_BITS)
    high = (binade + full).astype(np.int64)
    low &= np.uint64(2**UNIT_BITS - 1)
    return np.where(number == 0, 0, high), np.where(number == 0, np.uint64(0), low)


class Spacing(Protocol):
    """Points and their indices: the last index whose point is at most a code, or below it; and a point's code."""

    def upto(self, codes: Codes) -> Codes:
        """The last indices whose points are at most these codes."""

    def before(self, codes: Codes) -> Codes:
        """The last indices whose points are below these codes."""

    def code(self, index: int) -> int:
        """The code of a point."""


@dataclass(frozen=True)
class Multiples:
    """The multiples of an integer, at least 2, among integers."""

    step: int

    def upto(self, codes: Codes) -> Codes:
        """Rounded down."""
        return codes // self.step

    def before(self, codes: Codes) -> Codes:
        """The same, and one less for a multiple."""
        indices: Codes = codes // self.step
        indices -= indices * self.step == codes
        return indices

    def code(self, index: int) -> int:
        """The multiple."""
        return index * self.step


class _AmongDoubles:
    """What the two spacings among doubles share: codes of doubles have room below and above them."""

    def upto(self, codes: Codes) -> Codes:
        raise NotImplementedError

    def before(self, codes: Codes) -> Codes:
        """The last index whose point is below the double."""
        return self.upto(codes - 1)


@dataclass(frozen=True)
class Decimals(_AmongDoubles):
    """k / 10^places rounded to a double, for |k| < 2^53; the index −2^53 stands for none.

    Both numbers are doubles, so one division rounds correctly. Where doubles are coarser several k share one.
    """

    places: int

    def upto(self, codes: Codes) -> Codes:
        """Guessed by a multiplication, then corrected by what the division gives."""
        values, scale = doubles_of(codes), 10.0**self.places
        with np.errstate(over="ignore"):
            guess = np.floor(np.clip(values * scale, -(2.0**53), float(MOST_INDEX)))
        while True:
            up = (guess < MOST_INDEX) & ((guess + 1) / scale <= values)
            down = (guess >= -MOST_INDEX) & (guess / scale > values)
            if not (up.any() or down.any()):
                return guess.astype(np.int64)
            guess += up.astype(np.float64) - down

    def code(self, index: int) -> int:
        """The code of the double nearest to the decimal number."""
        return int(codes_of(np.array([index / 10.0**self.places]))[0])


@dataclass(frozen=True)
class Sizes(_AmongDoubles):
    """The doubles of a size from 2^-reach to 2^reach, exclusively: from 0 on those above 0, below −1 the others."""

    reach: int

    def upto(self, codes: Codes) -> Codes:
        """Counted from the smallest of either sign."""
        first, number = self._first, 2 * self.reach << 52
        above = np.clip(codes, first - 1, first + number - 1) - first
        below = np.clip(codes, -first - number, -first) + first - 1
        return np.where(codes > -first, above, below)

    def code(self, index: int) -> int:
        """The double's code."""
        return index + self._first if index >= 0 else index + 1 - self._first

    @property
    def _first(self) -> int:
        """The code of the smallest positive one."""
        return (1023 - self.reach) << 52


@dataclass(frozen=True)
class PowersOfTwo(_AmongDoubles):
    """k·2^exponent for |k| ≤ 2^53, each of which is a double; the index −2^53 − 1 stands for none."""

    exponent: int

    def upto(self, codes: Codes) -> Codes:
        """Scaling by a power of two is exact, but for what underflows to zero from below."""
        values = doubles_of(codes)
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(values, -self.exponent)
        indices = np.floor(np.clip(scaled, -(2.0**60), 2.0**53)).astype(np.int64)
        indices -= (values < 0) & (scaled == 0)
        bounded: Codes = np.maximum(indices, -(2**53) - 1)
        return bounded

    def code(self, index: int) -> int:
        """The code of the multiple."""
        return int(codes_of(np.array([math.ldexp(index, self.exponent)]))[0])


@dataclass(frozen=True)
class Component:
    """A weight, a spread over indices, and the points that have them; without a spacing every code is a point."""

    weight: int
    spread: Spread
    spacing: Spacing | None = None

    def upto(self, codes: Codes) -> Places:
        """The cumulative masses up to codes."""
        return self.spread.upto(codes if self.spacing is None else self.spacing.upto(codes))

    def below(self, codes: Codes) -> Places:
        """The cumulative masses below codes."""
        return self.spread.below(codes) if self.spacing is None else self.spread.upto(self.spacing.before(codes))

    def code(self, position: int) -> int:
        """The code of the point whose mass covers a position."""
        index = self.spread.index(position)
        return index if self.spacing is None else self.spacing.code(index)


class Regions:
    """The codes from ``low`` to ``high``, divided at some of them: gap, code, gap, code, …, code, gap."""

    def __init__(self, components: Sequence[Component], low: int, at: Codes, high: int) -> None:
        self._components = components
        self._places = [_interleaved(component, low, at, high) for component in components]

    @cached_property
    def approximate(self) -> NDArray[np.float64]:
        """The masses of all regions, each within 2^-45 of itself."""
        pairs = zip(self._components, self._places, strict=True)
        return sum((float(part.weight) * places.masses() for part, places in pairs), np.zeros(1))

    def exact(self, region: int) -> int:
        """The mass of one region."""
        return sum(part.weight * self._number(places, region) for part, places in self._pairs())

    def draw(self, region: int, bits: choice.Bits | None = None) -> int:
        """A code of a region, each with probability exactly proportional to its mass."""
        position = choice.below(self.exact(region), bits)
        for part, places in self._pairs():
            mass = part.weight * self._number(places, region)
            if position < mass:
                return part.code(places.exact(region) + position // part.weight)
            position -= mass
        raise AssertionError("a position is below the mass")

    def _pairs(self) -> "zip[tuple[Component, Places]]":
        return zip(self._components, self._places, strict=True)

    @staticmethod
    def _number(places: Places, region: int) -> int:
        return places.exact(region + 1) - places.exact(region)


def _interleaved(component: Component, low: int, at: Codes, high: int) -> Places:
    """The cumulative masses at all ends of regions."""
    first, last = component.below(np.array([low])), component.upto(np.array([high]))
    below, upto = component.below(at), component.upto(at)
    size = 2 * at.size + 2
    highs, lows = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.uint64)
    for array, name in ((highs, "high"), (lows, "low")):
        array[0], array[-1] = getattr(first, name)[0], getattr(last, name)[0]
        array[1:-1:2], array[2:-1:2] = getattr(below, name), getattr(upto, name)
    return Places(highs, lows, first.bits)


@dataclass(frozen=True)
class Base:
    """What may be answered: the codes from ``low`` to ``high``, and the components over them.

    ``spacing`` has the points among which answers near earlier ones lie; None stands for all codes.
    """

    low: int
    high: int
    components: tuple[Component, ...]
    spacing: Spacing | None = None
    of_doubles: bool = False

    def within(self, low: int | None, high: int | None) -> "Base":
        """The base of a range whose ends are earlier answers or public hints.

        Half of its mass is this base's own; the other half is near what is known: spread evenly between two ends, or
        evenly over the binades of the distance from the only one.
        """
        first, last = self.low if low is None else low, self.high if high is None else high
        near = self._near(low, high)
        if near is None:
            return replace(self, low=first, high=last)
        nothing = np.zeros(0, dtype=np.int64)
        own, new = (Regions(parts, first, nothing, last).exact(0) for parts in (self.components, [near]))
        if not new:
            return replace(self, low=first, high=last)
        # Each total times the other's weight: both halves are equal, in integers.
        shared = math.gcd(own, new)
        parts = [replace(part, weight=part.weight * (new // shared)) for part in self.components]
        return replace(self, low=first, high=last, components=(*parts, replace(near, weight=own // shared)))

    def _near(self, low: int | None, high: int | None) -> Component | None:
        """A component near one or two earlier answers."""
        ends = [end for end in (low, high) if end is not None and (not self.of_doubles or abs(end) < INFINITY)]
        if not ends or low == high:
            return None
        spacing = self.spacing
        if spacing is None and self.of_doubles:
            exponent = _exponent(doubles_of(np.array(ends)))
            if exponent is None:
                return None
            spacing = PowersOfTwo(exponent)
        if len(ends) == 2:
            return Component(1, Even(), spacing)
        centre = ends[0] if spacing is None else int(spacing.upto(np.array(ends))[0])
        return Component(1, Binades(centre), spacing)


def _exponent(ends: NDArray[np.float64]) -> int | None:
    """A power of two of which all that lies near these ends is at most 2^53 multiples; None around 0 alone."""
    largest = max(abs(float(end)) for end in ends)
    if ends.size == 1 and not largest:
        return None
    finest = max(math.frexp(largest)[1] - 53, -1074)
    if ends.size == 1:
        return finest
    width = math.frexp(float(ends[1] / 2 - ends[0] / 2))[1] + 1
    return max(width - FINE_BITS, finest)


def base_of_doubles() -> Base:
    """All doubles and ±inf: half of the mass on multiples of 1, 0.1, …, 0.0001, the other half on doubles.

    A quarter of the latter is spread over all doubles, and a quarter each over those of ordinary size, from 2^-16 to
    2^16, from 2^-64 to 2^64 and from 2^-256 to 2^256: sizes that are met more often have more mass.
    """
    # In units of 2^63 for a binade: 107 binades of each lattice, 4094 of all doubles, 64, 256 and 1024 of the others.
    lattices = [Component(weight, Binades(), Decimals(places)) for places, weight in enumerate((64, 32, 32, 16, 16))]
    sizes = [Component(weight << 11, Even(), Sizes(reach)) for reach, weight in ((16, 64), (64, 16), (256, 4))]
    return Base(-INFINITY, INFINITY, (Component(1 << 11, Even()), *sizes, *lattices), of_doubles=True)


def base_of_decimals(places: int) -> Base:
    """The multiples of 10^-places only."""
    spacing = Decimals(places)
    ends = spacing.code(-MOST_INDEX), spacing.code(MOST_INDEX)
    return Base(*ends, (Component(1, Binades(), spacing),), spacing, of_doubles=True)


def base_of_integers(low: int = -(2**63), high: int = 2**63 - 1, *, zero: int = 0, steps: Sequence[int] = ()) -> Base:
    """Integers whose zero has the code ``zero``; and, with a quarter of the weight, the multiples of each step."""
    parts = [Component(4, Binades(zero)), *(Component(1, Binades(), Multiples(step)) for step in steps)]
    return Base(low, high, tuple(parts))
