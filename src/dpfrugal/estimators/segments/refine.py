"""Refine: an edge at the estimate c, in every fourth segment a window around it; F(c) gives a one-step correction.

A one-step estimate from a consistent start is asymptotically as good as the sample quantile, and so is the mean of
many (van der Vaart, Asymptotic Statistics, 1998, Section 5.7). A segment with one edge releases one number, whose
noise has a quarter of a histogram's variance; those with the window's ends measure the density.

Worked number: at q = 0.5 and ε = 1 the estimate after n items is off by about √(0.25/n) in rank, 0.0005 at a million,
as the exact sample median is.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

from dpfrugal.estimators.segments.cdf_rise import MeasuredRise, coarseness
from dpfrugal.estimators.segments.edge_placement import after, decimal_near, multiple_of, power_of_ten_up_to, roundest
from dpfrugal.estimators.segments.evidence import Agreement, Evidence, Target
from dpfrugal.estimators.segments.locate import HUGE, LOST, SHORTEST, interpolate
from dpfrugal.estimators.segments.noisy_cdf import NoisyCdf

WINDOW = 5.0  # half of the window, in standard errors of the estimate
WIDEST = 0.6  # half of the window, in tails
KEPT = 0.75  # of the pooled density, per measurement
RUNGS = 3  # edges on each side of the window's middle, a standard error apart
PROVEN = 3.5  # standard errors
DOUBT = 1.0  # standard errors of the density by which a side must be emptier than the window


def settled_length(target: Target, total: float, noise_variance: float) -> float:
    """Items wanted in the next segment: a small part of all, as they wait unseen, or so many that noise matters little.

    A segment has a cost of its own, which counts while segments are short; and again beyond two million items,
    where the sampling error is small whatever waits.
    """
    part = total / 4 if total < 2e5 else total / 6 if total < 2e6 else total / 3
    return max(SHORTEST, min(max(8 * noise_variance / target.variance, part), 0.4 * total))


@dataclass
class Refine:
    """An estimate, the window around it, and the density there."""

    target: Target
    estimate: float
    window: tuple[float, float]
    evidence: Evidence = field(default_factory=Evidence)
    density: float = 0.0
    pooled_items: float = 0.0  # items seen in windows, and windows' widths times the items of their segments
    pooled_width: float = 0.0
    pooled_below: tuple[float, float] = (0.0, 0.0)  # both again, for the part of the window below its centre
    uncertainty: float = 0.0  # of the density, as a part of it
    emptiness: float = 0.0  # width times items of the widest window that could not be told from an empty one
    valley: bool = False  # the window is wider than the evidence asks for, because a narrower one looks empty
    visible: float = 0.0  # the least share of half a window that stands out from noise
    settled: bool = False  # the window is as narrow as it should be
    rounds: int = 0
    atoms: tuple[float, float, float] = (0.0, 0.0, 0.0)  # items at round numbers, items per unit there, noise
    grain: float = 0.0  # the spacing of numbers, if only its multiples occur
    lost: bool = False  # the quantile is not in the window
    tied: bool = False  # one number holds much of the window
    coarseness: float = 0.0  # how far the estimate may be off because items lie in heaps, as far as was seen
    proven: tuple[float, float] = (-math.inf, math.inf)  # numbers below and above the quantile, as single segments show
    rise: MeasuredRise = field(default_factory=MeasuredRise)  # of the CDF in the window that was measured last
    misses: tuple[float, float] = (0.0, 0.0)  # weight, and weight times what F lacks at c, of the last measurements
    refuted: float = 0.0  # the widest grain of which a multiple was seen to hold nothing
    multiples: tuple[float, float] = (0.0, 0.0)  # the least and the largest of the present grain's that hold their part

    @property
    def _counted(self) -> Literal["centre", "window", "number"]:
        """What the present segment counts: below the estimate, around it, or the window's roundest number too."""
        if self.settled and self.rounds % 4:
            return "centre"
        looking = self.rounds == 0 or (self.settled and (self.grain > 0 or self.rounds % 8 == 4))
        return "number" if looking and self._likely is not None else "window"

    @property
    def _likely(self) -> float | None:
        """A number that may hold many items: the roundest, or where only multiples of one are thought to occur, one."""
        low, high = self.window
        number = roundest(low, high)
        if self.grain and number is not None:
            nearest = multiple_of(self.grain, self.estimate)
            if self.multiples == (nearest, nearest):  # one number that holds many items is no lattice yet
                nearest = multiple_of(self.grain, nearest + math.copysign(self.grain, self.estimate - nearest))
            return nearest if low < nearest < high else number
        return number

    def edges(self) -> list[float]:
        """The edges wanted for the next segment."""
        if self._counted == "centre":
            return [self.centre]
        if self._counted == "number" and (number := self._likely) is not None:
            return [*self.window, number, after(number), self.centre, *self._rungs]
        return [*self.window, self.centre, *self._rungs]

    @property
    def _rungs(self) -> list[float]:
        """Evenly spaced edges in the window, about a standard error apart, that show whether items lie in heaps."""
        low, high = self.window
        if self.grain:
            return []
        return [low + (high - low) * (0.5 + k / (2 * WINDOW)) for k in range(-RUNGS, RUNGS + 1)]

    @property
    def centre(self) -> float:
        """Where to count: at the estimate, or half way between the two numbers next to it if few may occur."""
        return (math.floor(self.estimate / self.grain) + 0.5) * self.grain if self.grain else self.estimate

    def length(self, total: float, noise_variance: float, bin_variance: float) -> float:
        """Items wanted in the next segment."""
        return settled_length(self.target, total, noise_variance)

    def absorb(self, cdf: NoisyCdf, agreement: Agreement) -> None:
        """Take in the noisy CDF of one segment."""
        counted, (low, high) = self._counted, self.window
        number = self._likely if counted == "number" else None
        centre, rungs = self.centre, self._rungs
        self.rounds += 1
        i = cdf.index(centre)
        error, gap = cdf.error_at(i, self.target.q), self.target.q - float(cdf.share[i])
        residual = 0.0
        self._prove(cdf)
        if self.density:
            expected = self.density * (self.estimate - centre)
            weight = 1 / error**2
            self.misses = KEPT * self.misses[0] + weight, KEPT * self.misses[1] + weight * (gap - expected)
            misfit = self.density * self._coarsest / 2  # of a straight line, where only some numbers occur
            residual = (gap - expected) / math.hypot(error, self.evidence.error, misfit)
        if counted == "centre":
            if abs(residual) > LOST:
                self.settled = False
                return
        elif not self._measure(cdf, centre):
            if self.lost and self.atoms[1]:  # before any look at round numbers, ties may be the reason
                agreement.contradicted()
            return
        agreement.note(residual)
        self.evidence.add(centre, gap, 1 / error**2)
        self.estimate = min(max(self.evidence.quantile(self.density, self.target.bend), low), high)
        if counted != "centre":
            self.visible = (15 + 3 * cdf.bin_noise * cdf.items) / cdf.items
            self.rise = MeasuredRise.of(cdf, sorted({low, *rungs, centre, high}))
            self.coarseness = coarseness(cdf, rungs) if rungs else self.coarseness
        share = min(max(WINDOW * self.evidence.error, self.visible), WIDEST * self.target.tail)
        half = max(share / self.density, abs(self.estimate) * 2.0**-48, 1e-300)
        if counted != "centre":
            least = self.emptiness / cdf.items
            self.valley, half = least > half, max(half, least)
            if not self.settled and high - low > 5 * half:
                self._start_again(cdf, centre)
            else:
                self.settled = True
        if number is not None:
            grain = self.grain
            self._look_for_ties(cdf, number)
            if self.tied or self.grain > grain:
                agreement.explained()
        self._move_window(half, may_grow=counted != "centre")

    def _prove(self, cdf: NoisyCdf) -> None:
        """Narrow what is proven by one segment."""
        low, high = cdf.bracket(self.target.q, PROVEN)
        low, high = max(low, self.proven[0]), min(high, self.proven[1])
        self.proven = (low, high) if low < high else self.window

    def _measure(self, cdf: NoisyCdf, centre: float) -> bool:
        """Measure the density of the window; False if the window must be changed first."""
        low, high = self.window
        i, j, q = cdf.index(low), cdf.index(high), self.target.q
        first, last = float(cdf.share[i]), float(cdf.share[j])
        if q < first - LOST * cdf.error_at(i, q) or q > last + LOST * cdf.error_at(j, q):
            self.lost = True
            return False
        seen, noise = cdf.items * (last - first), 2 * cdf.bin_noise * cdf.items
        expected = self.density * cdf.items * (high - low)
        if abs(seen - expected) > 4 * math.hypot(math.sqrt(max(expected, seen, 1.0)), noise):
            self._forget_density()
        below, width = cdf.items * (cdf.share_at(centre) - first), cdf.items * (centre - low)
        self.pooled_below = KEPT * self.pooled_below[0] + below, KEPT * self.pooled_below[1] + width
        self.pooled_items = KEPT * self.pooled_items + seen
        self.pooled_width = KEPT * self.pooled_width + cdf.items * (high - low)
        unsure = math.hypot(math.sqrt(max(self.pooled_items, 1.0)), noise)
        if self.pooled_items < 3 * unsure:
            # So narrow a window cannot be told from an empty one.
            self.window = max(2 * low - centre, -HUGE), min(2 * high - centre, HUGE)
            self.emptiness = 0.75 * (high - low) * cdf.items
            self._forget_density()
            self.settled = False
            return False
        self.density = self.pooled_items / self.pooled_width
        self.uncertainty = unsure / self.pooled_items
        return True

    def _forget_density(self) -> None:
        self.pooled_items = self.pooled_width = 0.0
        self.pooled_below = 0.0, 0.0

    def _start_again(self, cdf: NoisyCdf, centre: float) -> None:
        """Interpolate and discard earlier evidence: the window was so wide that its density was a rough guide."""
        low, high = self.window
        at, share = (low, centre, high), [cdf.share_at(edge) for edge in (low, centre, high)]
        k = 0 if self.target.q < share[1] else 1
        found = interpolate(self.target, (at[k], at[k + 1]), (share[k], share[k + 1]), cdf.bin_noise)
        error, mass = cdf.error_at(cdf.index(centre), self.target.q), share[k + 1] - share[k]
        self.evidence.forget()
        self.evidence.add(found, 0.0, 1 / (error**2 + (0.1 * mass) ** 2))
        self._forget_density()
        self.estimate = found

    def _look_for_ties(self, cdf: NoisyCdf, number: float) -> None:
        """Whether only multiples of a power of ten occur: a number then holds what the density has in between."""
        i, grain = cdf.index(number), self.grain
        seen = (
            cdf.items * float(cdf.share[i + 1] - cdf.share[i]),
            cdf.items * self.density,
            (cdf.bin_noise * cdf.items) ** 2,
        )
        at, per_unit, noise = (KEPT * old + new for old, new in zip(self.atoms, seen, strict=True))
        self.atoms = at, per_unit, noise
        if at > 5 * math.sqrt(max(at, 0.0) + noise):
            grain = decimal_near(at / per_unit) or 0.0
            grain = 0.0 if grain <= self.refuted else grain
            self.tied = not grain and seen[0] > 0.3 * self.density * cdf.items * (self.window[1] - self.window[0])
        elif per_unit * grain > 10 * math.sqrt(per_unit * grain + noise):
            grain = 0.0  # it would have been seen
        wanted = seen[1] * grain
        if wanted - seen[0] > max(wanted / 2, 2 * math.sqrt(wanted + seen[2])):
            self.refuted = max(self.refuted, grain)
            self.atoms, grain = seen, 0.0  # this multiple holds nothing: others that did were no lattice
        if grain:
            known = self.multiples if grain == self.grain else (number, number)
            self.multiples = min(number, known[0]), max(number, known[1])
        if grain != self.grain:  # what was measured between numbers says less than it seemed to
            error = math.hypot(self.evidence.error, 0.3 * grain * self.density)
            self.evidence.forget()
            self.evidence.add(self.estimate, 0.0, 1 / error**2)
            self.grain = grain

    def _move_window(self, half: float, *, may_grow: bool) -> None:
        low, high = self.window
        half = max(half, 2 * self.grain)
        if not may_grow:
            half = min(half, (high - low) / 2)
        centre = self.centre
        least = (high - low) / 5  # a tail's density misleads: no side may grow at once into the bulk
        self.window = (
            max(centre - min(half, max(1.5 * (centre - low), least)), -HUGE),
            min(centre + min(half, max(1.5 * (high - centre), least)), HUGE),
        )

    @property
    def number(self) -> float:
        """The estimate, as a number that may occur."""
        return multiple_of(self.grain, self.estimate) if self.grain else self.estimate

    @property
    def atom(self) -> bool:
        """Whether one number, and no other that may occur, holds the quantile."""
        reach = 3 * self.evidence.error / self.density if self.density else math.inf
        return self.grain > 0 and abs(self.estimate - self.number) + reach < self.grain / 2

    def interval(self, certainty: float) -> tuple[float, float]:
        """Bounds at ``certainty`` standard errors."""
        if not self.density:
            return self.window
        tails = self.density * (self.window[1] - self.window[0]) / 2 / self.target.tail  # a tail's density varies
        unsure = 1.0 + (certainty * min(self.uncertainty, 0.3)) ** 2 / 3 + 0.4 * min(tails, 1.0) ** 2
        reach = certainty * unsure * self.evidence.error
        below, above = self._side_densities()
        low, high = self.estimate - reach / below, self.estimate + reach / above
        if not self.grain:
            low, high = self._risen(low, high, reach)
        if self.valley or (self.emptiness and not self.settled):
            low, high = min(low, self.window[0]), max(high, self.window[1])
        if self.grain:
            unseen = self.grain / 2 if self.multiples[0] == self.multiples[1] else 0.0
            return multiple_of(self.grain, low) - unseen, multiple_of(self.grain, high) + unseen
        low = min(low, max(low - self.coarseness, self.proven[0]))
        high = max(high, min(high + self.coarseness, self.proven[1]))
        unit = power_of_ten_up_to(self._coarsest)
        if not unit:
            return low, high
        beyond = unit / 2 if high - low < 2 * unit else 0.0  # if only multiples of it occur, one must be among them
        return min(low, multiple_of(unit, low - beyond)), max(high, multiple_of(unit, high + beyond))

    def _risen(self, low: float, high: float, reach: float) -> tuple[float, float]:
        """The ends, moved out to where the CDF was seen to have moved by ``reach``; at most to what is proven.

        Where items lie in heaps the CDF is a stair, and neither a density nor the mean of steps says where it rises.
        """
        lack = 0.0 if not self.misses[0] else self.misses[1] / self.misses[0]
        doubt = 0.0 if not self.misses[0] else 1 / math.sqrt(self.misses[0])
        down, up = self.rise.ends(self.estimate, reach + max(0.0, -lack - doubt), reach + max(0.0, lack - doubt))
        least = self.proven[0] if self.proven[0] < self.estimate else self.window[0]
        most = self.proven[1] if self.proven[1] > self.estimate else self.window[1]
        return min(low, max(down, least)), max(high, min(up, most))

    @property
    def _coarsest(self) -> float:
        """The widest spacing of numbers that is not unlikely by what was seen at round ones."""
        at, per_unit, noise = self.atoms
        if not per_unit:
            return self.window[1] - self.window[0]
        return max(0.0, 2 * at + math.sqrt(max(at, 0.0) + noise)) / per_unit

    def _side_densities(self) -> tuple[float, float]:
        """The density for each end of an interval: that of its side, if the window is clearly emptier there."""
        items, width = self.pooled_below
        if not width or not self.pooled_width > width:
            return self.density, self.density
        sides = items / width, (self.pooled_items - items) / (self.pooled_width - width)
        slack = DOUBT * self.uncertainty * self.density
        below, above = (min(max(side + slack, self.density / 20), self.density) for side in sides)
        return below, above
