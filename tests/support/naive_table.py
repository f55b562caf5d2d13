"""The table's mechanism by its definition: one answer, or several together, at a time, in a world of few answers."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TypeVar

import numpy as np

from dpfrugal.estimators.table.base.base_measure import Base, Component, Regions
from dpfrugal.estimators.table.base.spreads import Binades, Even
from dpfrugal.estimators.table.choices import pilot
from dpfrugal.estimators.table.choices.joint_choice import Joint, JointChoice
from dpfrugal.estimators.table.choices.mechanism import Choice, Scores
from dpfrugal.estimators.table.choices.pilot import Pilot
from dpfrugal.estimators.table.choices.plan import Asked, Plan, plan_of
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.guarantees import Guarantee

DIGITS = 60
Answer = TypeVar("Answer", bound=Hashable)
Codes = tuple[int, ...]
SMALL_WORLD = Base(0, 6, (Component(3, Even()), Component(1, Binades(2))))


def planned(
    quantiles: tuple[Fraction, ...], guarantee: Guarantee, neighbours: Neighbours = "replace", rows_per_person: int = 1
) -> Plan:
    """The plan of values only."""
    return plan_of(Asked(quantiles, guarantee, neighbours, rows_per_person=rows_per_person))


def statistics(rows: Sequence[int]) -> OrderStatistics:
    return SortedRows(np.array(rows, dtype=np.int64))


def mass(base: Base, code: int) -> int:
    return Regions(base.components, base.low, np.array([code]), base.high).exact(1)


def exponential(exponent: Fraction) -> Decimal:
    return (Decimal(-exponent.numerator) / Decimal(exponent.denominator)).exp()


def normalised(weights: Mapping[Answer, Decimal]) -> dict[Answer, Decimal]:
    with localcontext(prec=DIGITS):
        total = sum(weights.values())
        return {answer: weight / total for answer, weight in weights.items() if weight}


def naive(rows: Sequence[int], public: Choice, target: Fraction) -> dict[int, Decimal]:
    """P(y) ∝ base(y)·exp(−slope·distance), within the cap; a row above counts 1 + lean, one below less."""
    weights = {}
    with localcontext(prec=DIGITS):
        for code in range(public.base.low, public.base.high + 1):
            below, upto = sum(row < code for row in rows), sum(row <= code for row in rows)
            cap = Fraction(public.cap)
            high, low = (min(max(each, -cap), cap) for each in (below - target, target - upto))
            distance = max((1 + public.lean) * high, (1 - public.lean) * low)
            weights[code] = mass(public.base, code) * exponential(public.slope * distance)
    return normalised(weights)


def drawn(rows: OrderStatistics, public: Choice, target: Fraction) -> dict[int, Decimal]:
    """What the mechanism draws: the weights it chooses by, divided as it draws within what was chosen."""
    scores, base = Scores(rows, public, target), public.base
    weights: dict[int, Decimal] = {}
    with localcontext(prec=DIGITS):
        for region, weight in enumerate(scores.exact()):
            for code in codes_in(scores._window.codes.tolist(), base, region):
                weights[code] = mass(base, code) * exponential(weight.exponent)
    return normalised(weights)


def codes_in(at: Sequence[int], base: Base, region: int) -> range:
    """The codes of a region: gap, code, gap, …, code, gap."""
    ends = [base.low - 1, *(end for code in at for end in (code - 1, code)), base.high]
    return range(ends[region] + 1, ends[region + 1] + 1)


def ranks(rows: Sequence[int], code: int) -> tuple[Fraction, Fraction]:
    """The ranks that an answer of several may have."""
    below, equal = sum(row < code for row in rows), rows.count(code)
    if not equal:
        return Fraction(below), Fraction(below)
    return below + Fraction(1, 2), below + equal - Fraction(1, 2)


def naive_votes(rows: Sequence[int], base: Base, rank: Fraction, reach: int) -> list[Fraction]:
    """For each lattice the rows of ranks within ``reach`` that lie on it, less 1/32 of all for each coarser one."""
    middle, rows = math.floor(rank), sorted(rows)
    window = [row for at, row in enumerate(rows) if abs(at - middle) <= reach]
    found = []
    for finer, lattice in enumerate(base.lattices):
        some = replace(base, components=tuple(base.components[at] for at in lattice.parts))
        found.append(sum(mass(some, row) > 0 for row in window) - Fraction(finer * len(window), 32))
    return found


def naive_pilot(rows: Sequence[int], base: Base, quantile: Fraction, slope: Fraction) -> dict[Pilot, Decimal]:
    """Every pilot's probability: that of its number times that of its lattice."""
    rank, reach = quantile * len(rows), math.ceil(Fraction(pilot.CAP) / slope)
    numbers = naive(rows, Choice(base, slope, far=pilot.CAP), rank)
    votes = naive_votes(rows, base, rank, reach)
    with localcontext(prec=DIGITS):
        pairs = zip(base.lattices, votes, strict=True)
        weights = {at: lattice.weight * exponential(-slope * vote) for at, (lattice, vote) in enumerate(pairs)}
        lattices = normalised(weights)
        return {Pilot(code, at): p * r for code, p in numbers.items() for at, r in lattices.items()}


def naive_distance(rows: Sequence[int], quantiles: Sequence[Fraction], answers: Sequence[int]) -> Fraction:
    """The least Σ |dⱼ₊₁ − dⱼ| over ranks that do not decrease: one with its ends among those of all answers, or 0."""
    targets = [q * len(rows) for q in quantiles]
    allowed = [ranks(rows, code) for code in answers]
    ends = {end - target for pair, target in zip(allowed, targets, strict=True) for end in pair} | {Fraction(0)}
    best: dict[Fraction, Fraction] = {Fraction(0): Fraction(0)}  # of each place of the last answer
    last = Fraction(0)
    for (low, high), target in zip(allowed, targets, strict=True):
        places = [place for place in ends if low <= place + target <= high]
        best = {
            place: min(far + abs(place - before) for before, far in best.items() if before + last <= place + target)
            for place in places
            if any(before + last <= place + target for before in best)
        }
        last = target
    return min(far + abs(place) for place, far in best.items())


def ascending(base: Base, number: int) -> Iterator[Codes]:
    return itertools.combinations_with_replacement(range(base.low, base.high + 1), number)


def base_weight(base: Base, answers: Codes) -> Fraction:
    """That of answers drawn one by one and sorted, but for a constant."""
    runs = math.prod(math.factorial(run) for run in Counter(answers).values())
    return Fraction(math.prod(mass(base, code) for code in answers), runs)


def naive_jointly(rows: Sequence[int], public: JointChoice) -> dict[Codes, Decimal]:
    """P(y₁, …, yₘ) ∝ base(y₁, …, yₘ)·exp(−slope·min(distance, 2·cap))."""
    weights = {}
    with localcontext(prec=DIGITS):
        for answers in ascending(public.base, len(public.quantiles)):
            weight = base_weight(public.base, answers)
            distance = min(naive_distance(rows, public.quantiles, answers), Fraction(2 * public.cap))
            weights[answers] = Decimal(weight.numerator) / weight.denominator * exponential(public.slope * distance)
    return normalised(weights)


def drawn_jointly(rows: OrderStatistics, public: JointChoice) -> dict[Codes, Decimal]:
    """What the mechanism draws: regions by the weights that it chooses by, answers in them, and what it draws again."""
    joint, base, number = Joint(rows, public), public.base, len(public.quantiles)
    walks: dict[tuple[int, ...], Decimal] = defaultdict(Decimal)
    weights: dict[Codes, Decimal] = {}

    def follow(answer: int, following: int | None, among: range, chance: Decimal, walk: tuple[int, ...]) -> None:
        slices = slice(None) if following is None else slice(among.start, among.stop)
        exact = [each.to_decimal(DIGITS) for each in joint._exactly(answer, following, slices)]
        total = sum(exact)
        for state, weight in enumerate(exact, among.start):
            if state == among.stop:
                walks[()] += chance * weight / total
            elif answer == 0:
                walks[walk] += chance * weight / total
            else:
                level = joint.levels[answer]
                before = range(level.sources[state], level.source_ends[state])
                follow(answer - 1, state, before, chance * weight / total, (int(level.regions[state]), *walk))

    with localcontext(prec=DIGITS):
        follow(number, None, range(joint.levels[number].weights.size), Decimal(1), ())
        places = joint.codes.tolist()
        found = {answers: _decimal(base_weight(base, answers)) for answers in ascending(base, number)}
        whole = sum(found.values())
        of_code = {code: region for region in range(2 * len(places) + 1) for code in codes_in(places, base, region)}
        of_regions: dict[tuple[int, ...], Decimal] = defaultdict(Decimal)
        for answers, weight in found.items():
            of_regions[tuple(of_code[code] for code in answers)] += weight
        for answers, weight in found.items():
            regions = tuple(of_code[code] for code in answers)
            weights[answers] = Decimal(0)
            if not joint._counts(answers):
                weights[answers] += walks[()] * weight / whole
            if regions in walks and joint.chain.distance(regions) <= joint.reach:
                weights[answers] += walks[regions] * weight / of_regions[regions]
    return normalised(weights)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def renyi(p: Mapping[Answer, Decimal], q: Mapping[Answer, Decimal], order: float) -> float:
    terms = (order * float(p[at].ln()) + (1 - order) * float(q[at].ln()) for at in p)
    return math.log(math.fsum(math.exp(term) for term in terms)) / (order - 1)
