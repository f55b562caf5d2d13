"""The base measure: how much mass each possible answer has before any row is looked at, in exact integers.

A base is a sum of components with integer weights. A component is an ordered set of points (``spacings``; without one
all codes) and a spread over their indices (``spreads``). The mass of any range of codes is known as an integer and in
float64.

Worked number: of the base of doubles three quarters lie on numbers that people write: 7 has 0.033% of the whole, 6.99
has 0.030%, 0 has 1.4%; a sixth on numbers that are computed: 9 knots in miles, 10.357019999999999, has 0.00015%; and a
twelfth is spread over doubles, the binade from 4 to 8 having 0.085%. So seven of ten medians of 10,000 prices in cents
are in cents, where rows lie too far apart for ties. With half on numbers that people write it would be two of five; and
more than three quarters draw answers too far to round numbers, where rows lie densely around one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import INFINITY, Codes, doubles_of
from dpfrugal.estimators.table.base.spacings import (
    MOST_INDEX,
    Beside,
    Decimals,
    Every,
    Multiples,
    PowersOfTwo,
    Sizes,
    Spacing,
)
from dpfrugal.estimators.table.base.spreads import Binades, Even, Places, Single, Spread
from dpfrugal.kernels.bit_layout import UNIT_BITS
from dpfrugal.privacy import choice

# How finely a range between two known answers is divided, in bits.
FINE_BITS: Final = 40
# Whole numbers of one unit in another: knots in mph and in m/s, miles in km, pounds in kg. Others are short decimals,
# as feet in metres or °C in °F, or are among the numbers with six decimals.
UNITS: Final = tuple(Beside(10**6, step) for step in (1150780, 514444, 1609344, 453592))
# What 0 has in the base of doubles, as no number is met more often: about half of what all doubles up to 0.001 have.
ZERO_WEIGHT: Final = 512 << UNIT_BITS


@dataclass(frozen=True)
class Component:
    """A weight, a spread over indices, and the points that have them; without a spacing every code is a point."""

    weight: int
    spread: Spread
    spacing: Spacing | None = None

    def around(self, codes: Codes) -> tuple[Places, Places]:
        """The cumulative masses below codes, and up to them."""
        if self.spacing is None:
            return self.spread.below(codes), self.spread.upto(codes)
        before, upto = self.spacing.around(codes)
        return self.spread.upto(before), self.spread.upto(upto)

    def code(self, position: int) -> int:
        """The code of the point whose mass covers a position."""
        index = self.spread.index(position)
        return index if self.spacing is None else self.spacing.code(index)


class Regions:
    """The codes from ``low`` to ``high``, divided at some of them: gap, code, gap, code, …, code, gap."""

    def __init__(self, components: Sequence[Component], low: int, at: Codes, high: int) -> None:
        self._components = components
        self._places = _places(components, np.concatenate([[low], at, [high]]))

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
        numbers = [self._number(places, region) for places in self._places]
        masses = [part.weight * number for part, number in zip(self._components, numbers, strict=True)]
        weights = [choice.Weight(mass, Fraction(0)) for mass in masses]
        chosen = choice.choose(np.array(masses, dtype=np.float64), lambda: weights, bits)
        first = self._places[chosen].exact(region)
        return self._components[chosen].code(first + choice.below(numbers[chosen], bits))

    def _pairs(self) -> "zip[tuple[Component, Places]]":
        return zip(self._components, self._places, strict=True)

    @staticmethod
    def _number(places: Places, region: int) -> int:
        return places.exact(region + 1) - places.exact(region)


def _places(components: Sequence[Component], codes: Codes) -> list[Places]:
    """The cumulative masses of each component at all ends of regions: from below the first code to up to the last.

    Components with one spread are asked together, as many short arrays take longer than a long one.
    """
    found: list[Places | None] = [None] * len(components)
    together: dict[Spread, list[int]] = {}
    for at, part in enumerate(components):
        if part.spacing is None:
            below, upto = part.around(codes)
            found[at] = Places(_interleaved(below.high, upto.high), _interleaved(below.low, upto.low), below.bits)
        else:
            together.setdefault(part.spread, []).append(at)
    for spread, group in together.items():
        spacings = [spacing for at in group if (spacing := components[at].spacing) is not None]
        joined = spread.upto(np.concatenate([_interleaved(*spacing.around(codes)) for spacing in spacings]))
        highs, lows = np.split(joined.high, len(group)), np.split(joined.low, len(group))
        for at, high, low in zip(group, highs, lows, strict=True):
            found[at] = Places(high, low, joined.bits)
    return [places for places in found if places is not None]


def _interleaved(below: NDArray[Any], upto: NDArray[Any]) -> NDArray[Any]:
    """What belongs to the ends of regions: below the first code, below and up to each, up to the last."""
    pairs = np.stack([below, upto], axis=1).ravel()
    return np.concatenate([pairs[:1], pairs[2:-2], pairs[-1:]])


@dataclass(frozen=True)
class Lattice:
    """Components of a base, by their places in it: numbers that all rows of a table may be, as money is in cents.

    ``weight`` says how likely that is before any row is looked at.
    """

    parts: tuple[int, ...]
    weight: int


@dataclass(frozen=True)
class Base:
    """What may be answered: the codes from ``low`` to ``high``, and the components over them.

    ``spacing`` has the points among which answers near earlier ones lie; None stands for all codes. Of ``lattices``,
    from the coarsest to one that has all answers, a pilot chooses one.
    """

    low: int
    high: int
    components: tuple[Component, ...]
    spacing: Spacing | None = None
    of_doubles: bool = False
    lattices: tuple[Lattice, ...] = ()

    def within(self, low: int | None, high: int | None) -> "Base":
        """The base of a range whose ends are earlier answers or public hints.

        Half of its mass is this base's own. An eighth is on these ends themselves, as a value that many rows have may
        hold several quantiles. The rest is spread evenly between two ends, or evenly over the binades of the distance
        from the only one.
        """
        first, last = self.low if low is None else low, self.high if high is None else high
        within = replace(self, low=first, high=last)
        ends = [end for end in (low, high) if end is not None and (not self.of_doubles or abs(end) < INFINITY)]
        near = None if low == high else self._near(ends)
        if near is None or not _mass([near], first, last):
            return within
        known = [Component(1, Single(_index(self.spacing, end)), self.spacing) for end in ends]
        return within._mixed([(4, self.components), (3, [near]), (1, known)])

    def towards(self, middle: int, lattice: int | None) -> "Base":
        """The base of a table of which a pilot has chosen the middle and a lattice, by its place in ``lattices``.

        Half of its mass is on the lattice. Two parts of 1024 are spread evenly over the binades of the distance from
        the middle, one of them on the lattice only: rows far from 0 that lie near each other are thus as easy to find
        as others, and numbers just beside the middle are not too likely. The rest is this base's own.
        """
        parts = () if lattice is None else tuple(self.components[at] for at in self.lattices[lattice].parts)
        around = [] if self.of_doubles and abs(middle) >= INFINITY else [self._near([middle])]
        if len(parts) == 1 and (spacing := parts[0].spacing) is not None:
            around.append(Component(1, Binades(_index(spacing, middle)), spacing))
        groups = [(510, self.components), (512, parts), *((1, [part]) for part in around if part is not None)]
        return self._mixed(groups)

    def _mixed(self, groups: Sequence[tuple[int, Sequence[Component]]]) -> "Base":
        """The base in which groups of components have such shares of the mass; the first group are its own."""
        masses = [_mass(parts, self.low, self.high) for _, parts in groups]
        if not any(masses[1:]):
            return self
        # Each group's mass times its factor is its share of one number: in integers.
        whole = math.lcm(*(mass for mass in masses if mass))
        factors = [share * (whole // mass) if mass else 0 for (share, _), mass in zip(groups, masses, strict=True)]
        mixed: dict[int, Component] = {}  # a component of several groups is one
        for (_, parts), factor in zip(groups, factors, strict=True):
            for part in parts if factor else ():
                before = mixed[id(part)].weight if id(part) in mixed else 0
                mixed[id(part)] = replace(part, weight=before + part.weight * factor)
        common = math.gcd(*factors)
        components = tuple(replace(part, weight=part.weight // common) for part in mixed.values())
        return replace(self, components=components, lattices=self.lattices if masses[0] else ())

    def _near(self, ends: Sequence[int]) -> Component | None:
        """A component near one or two earlier answers."""
        if not ends:
            return None
        spacing = self.spacing
        if spacing is None and self.of_doubles:
            exponent = _exponent(doubles_of(np.array(ends)))
            if exponent is None:
                return None
            spacing = PowersOfTwo(exponent)
        return Component(1, Even() if len(ends) == 2 else Binades(_index(spacing, ends[0])), spacing)


def _index(spacing: Spacing | None, code: int) -> int:
    """The index of the last point up to a code."""
    return code if spacing is None else int(spacing.around(np.array([code]))[1][0])


def _mass(components: Sequence[Component], low: int, high: int) -> int:
    """The mass of a range."""
    return Regions(components, low, np.zeros(0, dtype=np.int64), high).exact(0)


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
    """All doubles and ±inf: most of the mass on numbers that people write, a twelfth on all doubles.

    People write multiples of 1, 0.1, 0.01 and 0.001, and prices just below a whole number, as 12.99; 0 has some more.
    Numbers with five and six decimals, fractions of 2520 = 8·9·5·7 and whole numbers of one unit in another are rather
    computed than written, so they share their mass with the doubles next to them. Of the rest most is spread over
    doubles of ordinary size, from 2^-16 to 2^16, and less over those from 2^-64 to 2^64, from 2^-256 to 2^256, and over
    all: sizes that are met more often have more mass, and what lies next to 0 has not too much.
    """
    # In units of 2^63: 107 binades of a lattice, 64, 256 and 1024 of sizes, 4094 of all doubles.
    spacings: dict[Spacing, int] = {
        Decimals(0): 96,
        Every(100, -1, Decimals(2)): 96,
        Decimals(1): 128,
        Decimals(2): 224,
        Decimals(3): 32,
        Beside(2520): 32,
        **dict.fromkeys(UNITS, 2),
        Beside(10**5): 64,
        Beside(10**6): 32,
    }
    numbers = [Component(weight, Binades(), spacing) for spacing, weight in spacings.items()]
    doubles = [Component(weight << 9, Even(), Sizes(reach)) for reach, weight in ((16, 256), (64, 16), (256, 2))]
    doubles.append(Component(1 << 9, Even()))
    zero = Component(ZERO_WEIGHT, Single(0))
    lattices = [Lattice((at,), part.weight) for at, part in enumerate(numbers)]
    # Half of all tables are of numbers that lie on no lattice.
    every = Lattice(tuple(range(len(numbers), len(numbers) + len(doubles))), sum(each.weight for each in numbers))
    components = (*numbers, *doubles, zero)
    return Base(-INFINITY, INFINITY, components, of_doubles=True, lattices=(*lattices, every))


def base_of_decimals(places: int) -> Base:
    """The multiples of 10^-places only."""
    spacing = Decimals(places)
    ends = spacing.code(-MOST_INDEX), spacing.code(MOST_INDEX)
    return Base(*ends, (Component(1, Binades(), spacing),), spacing, of_doubles=True)


def base_of_integers(low: int = -(2**63), high: int = 2**63 - 1, *, zero: int = 0) -> Base:
    """Integers whose zero has the code ``zero``."""
    return Base(low, high, (Component(4, Binades(zero)),))


def base_of_times(low: int, high: int, steps: Sequence[int], reach: int) -> Base:
    """Integers, and with 64 times the weight the multiples of each step, not farther from 0 than ``reach``."""
    parts = [Component(64, Binades(), Multiples(step, reach // step)) for step in sorted(steps, reverse=True)]
    lattices = tuple(Lattice((at,), 1) for at in range(len(parts) + 1))
    return Base(low, high, (*parts, Component(1, Binades())), lattices=lattices)
