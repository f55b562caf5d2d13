"""Several answers chosen together: likelier the shorter the walk through their ranks is (docs/proofs.md, Theorem 17).

The answers y₁ ≤ … ≤ yₘ want the ranks tⱼ = qⱼ·n. An answer that no row is equal to has the rank #(x < y); one that
k rows are equal to may have any from #(x < y) + 1/2 to #(x ≤ y) − 1/2. With dⱼ the rank of yⱼ minus tⱼ, and
d₀ = dₘ₊₁ = 0, the distance of the answers is the least possible Σ |dⱼ₊₁ − dⱼ|, and

    P(y₁, …, yₘ) ∝ base(y₁, …, yₘ) · exp(−slope · min(distance, 2·cap)).

The base of several answers is that of m answers drawn one by one and sorted. For one quantile the distance is 2·|d|.
What one row can do to the distance does not grow with m, and no answer waits for another: the rows around all ranks
tⱼ are known before anything is drawn.

Worked number: replacing a row changes the distance by at most 2 in either direction, so with ε = 1 the slope is 1/4.
Nine deciles are then 5 to 8 rows off (root mean square), where the base is even around them; one quantile is 2.8.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from typing import Final

import numpy as np

from dpfrugal.estimators.table.base.base_measure import Base, Regions
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.choices.chain import Chain, State, beginning, following
from dpfrugal.estimators.table.choices.walk_sums import Level, compiled_levels, half_rows, readable_levels
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.kernels.compiler import worth_loading
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits

# 2·cap·slope: what lies beyond has e^-75 of the likelihood per base mass, and e^-45 more for every further answer,
# each of which has a small mass of its own near its rank.
CAP: Final = 30
CAP_OF_EACH: Final = 45
LARGEST: Final = 1000.0  # as a power of two
WORTH: Final = 36  # squares of numbers of answers from which on sums are compiled, once or in many choices
REGARDLESS_ERROR: Final = 2.0**-38  # of a weight that is computed from logarithms


def cap_of(slope: Fraction, quantiles: int) -> int:
    """How many rows an answer may be off before all answers count as equally far."""
    return math.ceil((CAP + CAP_OF_EACH * quantiles) / (2 * slope))


@dataclass(frozen=True)
class JointChoice:
    """What is public about a choice of several answers: quantiles in ascending order, and the slope of distances."""

    base: Base
    quantiles: tuple[Fraction, ...]
    slope: Fraction

    @property
    def cap(self) -> int:
        """In rows."""
        return cap_of(self.slope, len(self.quantiles))


def choose_jointly(rows: OrderStatistics, public: JointChoice, bits: Bits | None = None) -> tuple[int, ...]:
    """The codes of all answers, ascending."""
    joint = Joint(rows, public)
    while (codes := joint.draw(bits)) is None:
        pass
    return codes


class Joint:
    """The regions of answers around all wanted ranks, and how likely answers in them are."""

    def __init__(self, rows: OrderStatistics, public: JointChoice) -> None:
        self._public, self._rows = public, rows.rows
        targets = [q * rows.rows for q in public.quantiles]
        self._parts = math.lcm(2, *(target.denominator for target in targets))  # of a row
        self._unit = public.slope / self._parts
        self.codes, below, upto = self._window(rows, targets)
        first, last = np.empty((2, 2 * self.codes.size + 1), dtype=np.int64)
        # In half rows: a gap has one rank, the rows equal to a code have those between the first's and the last's.
        first[0], first[2::2] = 0, 2 * upto
        last[:-1:2], last[-1] = 2 * below, 2 * rows.rows
        first[1::2], last[1::2] = 2 * below + (upto > below), 2 * upto - (upto > below)
        self._regions = Regions(public.base.components, public.base.low, self.codes, public.base.high)
        self._whole = Regions(public.base.components, public.base.low, self.codes[:0], public.base.high)
        self._half_rows, half = (first, last), self._parts // 2
        ranks = [half * each for each in first.tolist()], [half * each for each in last.tolist()]
        places = [target.numerator * (self._parts // target.denominator) for target in targets]
        self.chain = Chain(*ranks, places, [self._near(place, *ranks) for place in places])
        self.reach = 2 * public.cap * self._parts  # no walk is longer, for what it counts
        self._digits: dict[int, list[list[State]]] = {}

    def _window(self, rows: OrderStatistics, targets: Sequence[Fraction]) -> list[Codes]:
        """The different codes of rows near any target, and the numbers of rows below and up to each."""
        reach, parts = self._public.cap + 1, []
        for target in targets:
            window = rows.window(math.floor(target) - reach, math.ceil(target) + reach, None, None)
            parts.append((window.codes, window.below, window.upto))
        codes, below, upto = (np.concatenate(each) for each in zip(*parts, strict=True))
        codes, at = np.unique(codes, return_index=True)
        return [codes, below[at], upto[at]]

    def _near(self, target: int, first: Sequence[int], last: Sequence[int]) -> list[int]:
        """The regions within the cap of a target: an answer beyond makes the distance too large by itself."""
        reach = self._public.cap * self._parts
        near = range(bisect_left(last, target - reach), bisect_right(first, target + reach))
        return [region for region in near if self._regions.approximate[region]]

    @cached_property
    def levels(self) -> list[Level]:
        """The states after no answer, after one, and so on, in floats."""
        slope, masses = self._public.slope, np.ldexp(self._regions.approximate, -self._mass_scale)
        longest, many = float(self._unit * self.reach), len(self._public.quantiles)
        if worth_loading(many**2, WORTH):
            targets = half_rows(self._public.quantiles, [self._rows])
            return compiled_levels(*self._half_rows, masses, targets, self._public.cap, slope, longest)
        return readable_levels(self.chain, self._parts // 2, masses.tolist(), slope, longest)

    @cached_property
    def _mass_scale(self) -> int:
        """The power of two in whose units all masses of regions that count are at most 1."""
        counting = {region for regions in self.chain.allowed for region in regions}
        return math.frexp(max((float(self._regions.approximate[region]) for region in counting), default=1.0))[1]

    def _exact_levels(self, digits: int) -> list[list[State]]:
        """The same states in decimals, with weights within 10^-digits of themselves."""
        if digits not in self._digits:
            states = sum(level.weights.size for level in self.levels)
            spare = 12 + len(str(states)) + len(str(math.ceil(self._unit * self.reach)))
            with localcontext(prec=digits + spare, Emin=MIN_EMIN, Emax=MAX_EMAX):
                unit = Decimal(self._unit.numerator) / Decimal(self._unit.denominator)
                counting = {region for regions in self.chain.allowed for region in regions}
                masses = {region: Decimal(self._regions.exact(region)) for region in counting}
                levels = [beginning(Decimal(1))]
                for answer in range(len(self._public.quantiles)):
                    decay = lambda distance: (-unit * distance).exp()  # noqa: E731
                    levels.append(following(self.chain, answer, levels[-1], masses, decay))
            self._digits[digits] = levels
        return self._digits[digits]

    def draw(self, bits: Bits | None = None) -> tuple[int, ...] | None:
        """The codes of all answers, or None where one has to draw again."""
        regions = self.walk(bits)
        if regions is None:
            codes = sorted(self._whole.draw(0, bits) for _ in self._public.quantiles)
            return None if self._counts(codes) else tuple(codes)
        if self.chain.distance(regions) > self.reach:
            return None
        found: list[int] = []
        for region, same in groupby(regions):
            if region % 2:
                found += [int(self.codes[region // 2]) for _ in same]
            else:
                found += sorted(self._regions.draw(region, bits) for _ in same)
        return tuple(found)

    def _counts(self, codes: Sequence[int]) -> bool:
        """Whether the distance of any answers is within the cap, so that the walks have them."""
        places = np.searchsorted(self.codes, codes, "left"), np.searchsorted(self.codes, codes, "right")
        regions = (places[0] + places[1]).tolist()
        near = all(region in allowed for region, allowed in zip(regions, self.chain.allowed, strict=True))
        return near and self.chain.distance(regions) <= self.reach

    def walk(self, bits: Bits | None = None) -> list[int] | None:
        """The regions of all answers, chosen from the last one to the first; None for answers regardless of rows."""
        answer = len(self._public.quantiles)
        chosen = self._choose(answer, None, slice(None), bits)
        if chosen == self.levels[answer].weights.size:
            return None
        regions = []
        while answer:
            level = self.levels[answer]
            regions.append(int(level.regions[chosen]))
            first, last = int(level.sources[chosen]), int(level.source_ends[chosen])
            answer -= 1
            chosen = first + (self._choose(answer, chosen, slice(first, last), bits) if last > first + 1 else 0)
        return regions[::-1]

    def _regardless(self) -> float:
        """The weight of all answers at the largest distance that counts, in units of the last level."""
        number = len(self._public.quantiles)
        whole = math.log2(self._whole.exact(0)) - self._mass_scale
        exponent = number * whole - math.lgamma(number + 1) / math.log(2) - self.levels[-1].scale
        exponent -= float(self._unit * self.reach) / math.log(2)
        return 2.0**exponent if exponent < LARGEST else math.inf

    def _choose(self, answer: int, following: int | None, among: slice, bits: Bits | None) -> int:
        """One of the states of an answer before a state of the following one; or before the end of the walk.

        One more than the last state then stands for all answers regardless of rows.
        """
        level = self.levels[answer]
        place = 0.0 if following is None else self.levels[answer + 1].places[following]
        weights = level.weights[among] * np.exp(-float(self._public.slope / 2) * np.abs(level.places[among] - place))
        if following is None:
            weights = np.append(weights, self._regardless())
        total = float(weights.sum())
        error = level.error + REGARDLESS_ERROR + weights.size * level.lost / total if total else math.inf
        margin = 4 * error + weights.size * choice.SUM_ERROR
        return choice.choose(weights, lambda: self._exactly(answer, following, among), bits, margin)

    def _exactly(self, answer: int, following: int | None, among: slice) -> list[choice.Computed]:
        """The same weights, as exactly as anybody asks."""
        first, number = among.start or 0, self.levels[answer].weights[among].size
        found = [choice.Computed(partial(self._weight, answer, following, first + each)) for each in range(number)]
        return [*found, choice.Computed(self._exactly_regardless)] if following is None else found

    def _weight(self, answer: int, following: int | None, state: int, digits: int) -> Decimal:
        """The weight of one state, within 10^-digits of itself."""
        levels = self._exact_levels(digits + 2)
        at = 0 if following is None else levels[answer + 1][following].at
        distance = choice.Weight(1, self._unit * abs(levels[answer][state].at - at)).to_decimal(digits + 2)
        with localcontext(prec=digits + 12, Emin=MIN_EMIN, Emax=MAX_EMAX):
            weight: Decimal = levels[answer][state].weight * distance
            return weight

    def _exactly_regardless(self, digits: int) -> Decimal:
        """The weight of all answers regardless of rows, within 10^-digits of itself."""
        many = len(self._public.quantiles)
        whole = choice.Weight(self._whole.exact(0) ** many, self._unit * self.reach).to_decimal(digits + 2)
        with localcontext(prec=digits + 12, Emin=MIN_EMIN, Emax=MAX_EMAX):
            return whole / Decimal(math.factorial(many))
