"""Privacy loss distributions of exposures, composed with those of bare (ε, δ) guarantees.

An ``Exposure`` has a loss distribution that dominates every transcript of it (docs/proofs.md, Theorem 14). Losses lie
on lattices. To bring two distributions to one lattice, a loss between two of its points is split between them so that
the probabilities under both neighbours stay: the old pair is a post-processing of the new one, so δ never shrinks, and
it grows only with the square of the spacing ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar, Manurangsi,
arXiv:2207.04380v1). The spacing grows as losses are composed (Ghazi, Kamath, Kumar, Manurangsi, arXiv:2207.04381v1).
All terms are positive, so a small δ keeps its digits; truncated tails count as infinite losses.

Worked number: ten medians of ``DPFrugal1U`` at ρ = 0.1 are ε = 7.285 at δ = 1e-6; by the sum of their ρ, 7.766. A
thousand equal spends take 20 ms. Rounding costs less than 1e-4 of ε, or 1e-3 with more than 32 kinds of spend.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.budget.loss_distributions import LARGEST_EPSILON, Losses
from dpfrugal.budget.person_moves import Exposure, Move
from dpfrugal.privacy.noise_distributions import NoiseDistribution

MOST_POINTS: Final = 1 << 12
FEW_POINTS: Final = 1 << 10  # where there are many different spends
MANY: Final = 32
MOST_KINDS: Final = 512
MOST_SPENDS: Final = 10**8
# The truncated upper tails together, as a fraction of δ, about; and the probability of the lowest losses, which are
# raised to the first loss that is kept.
CUT: Final = 1e-6
LOWEST: Final = 1e-12
TINY: Final = 1e-36  # the truncated tail of one spend, whatever δ is
# The probabilities of each spend are multiplied by this: it covers the rounding errors of all arithmetic on them.
SAFETY: Final = 1 + 1e-9
MARGIN: Final = 1e-11

Kind = Exposure | tuple[float, float]  # a spend with known noise, or a bare (ε, δ)


def losses_of_spends(kinds: Iterable[Kind] | Mapping[Kind, int], delta: float) -> Losses | None:
    """The losses of all spends composed, truncated for ``delta``; None where that would take too long.

    A mapping says how often each kind was spent; a thousand times as often takes ten compositions more.
    """
    counts = Counter(kinds)
    groups = tuple(counts.items())  # in the order of spending, so that caches hold earlier compositions
    if not groups or counts.total() > MOST_SPENDS or len(groups) > MOST_KINDS or any(map(_excessive, counts)):
        return None
    least = 10.0 ** math.floor(
        math.log10(max(CUT * delta / counts.total(), 1e-300))
    )  # powers of ten, so that caches serve again
    return _losses_of_kinds(groups, least, MOST_POINTS if len(groups) <= MANY else FEW_POINTS)


def _excessive(kind: Kind) -> bool:
    if isinstance(kind, Exposure):
        return kind.size > kind.distribution.largest_composed
    return kind[0] > LARGEST_EPSILON


@lru_cache(maxsize=512)
def _losses_of_kinds(groups: tuple[tuple[Kind, int], ...], least: float, points: int) -> Losses:
    if len(groups) == 1:
        return _repeated(*groups[0], least, points)
    half = 1 << ((len(groups) - 1).bit_length() - 1)
    return together(
        _losses_of_kinds(groups[:half], least, points), _losses_of_kinds(groups[half:], least, points), least, points
    )


@lru_cache(maxsize=256)
def _repeated(kind: Kind, times: int, least: float, points: int) -> Losses:
    """The losses of one kind of spend, so many times.

    A power of two is twice its half. Another number is composed of the powers of two that it has, the largest first: of
    the next number most is known then, and a ledger that grows spend by spend needs about one composition for each.
    """
    if times == 1:
        return of_exposure(kind) if isinstance(kind, Exposure) else of_pair(*kind)
    last = times & -times
    if last == times:
        half = _repeated(kind, times // 2, least, points)
        return together(half, half, least, points)
    return together(_repeated(kind, times - last, least, points), _repeated(kind, last, least, points), least, points)


def of_pair(epsilon: float, delta: float) -> Losses:
    """Randomised response, whose loss is infinite with probability δ."""
    likely = 1 / (1 + math.exp(-epsilon))
    chances = np.array([math.exp(-epsilon) * likely, likely]) * ((1 - delta) * SAFETY)
    return Losses(2 * epsilon, -0.5, chances, delta * SAFETY)


@lru_cache(maxsize=256)
def of_exposure(exposure: Exposure) -> Losses:
    """Losses whose δ at each ε is at least that of every sequence of moves within the budget.

    The worst case with a budget of u is that of some move followed by the worst case of the budget that remains; which
    move it is may differ from ε to ε.
    """
    told = [_moved(exposure.distribution, move, move.copies) for move in exposure.moves]
    if exposure.budget > 1 or len(told) > 1:
        widths = [one.chances.size * one.unit for one in told]
        reach = max(width * exposure.budget / move.cost for width, move in zip(widths, exposure.moves, strict=True))
        unit = _divided(max(one.unit for one in told), reach / MOST_POINTS)
        told = [on_lattice(one, unit) for one in told]
        most = [Losses(unit, 0.0, np.ones(1), 0.0)]
        for budget in range(1, exposure.budget + 1):
            ways = zip(told, exposure.moves, strict=True)
            most.append(worst([_added(one, most[budget - move.cost]) for one, move in ways if move.cost <= budget]))
        told = most[-1:]
    return Losses(told[0].unit, told[0].first, told[0].chances * SAFETY, told[0].infinite * SAFETY)


def _moved(noise: NoiseDistribution, move: Move, copies: int) -> Losses:
    if copies == 1:
        return _fitted(Losses(*noise.losses(move.scale, move.shift)), MOST_POINTS)
    half = _moved(noise, move, copies // 2)
    even = together(
        half, half, TINY, MOST_POINTS, 0.0
    )  # no loss is raised: ``worst`` needs all of the other distribution
    return together(even, _moved(noise, move, 1), TINY, MOST_POINTS, 0.0) if copies % 2 else even


def together(one: Losses, other: Losses, least: float, points: int, lowest: float = LOWEST) -> Losses:
    """The sum of two independent losses, on a lattice of about so many points; tails below ``least`` are truncated."""
    if one.unit != other.unit:
        coarser = max(one, other, key=lambda losses: losses.unit)
        width = one.chances.size * one.unit + other.chances.size * other.unit
        unit = _divided(coarser.unit, width / points)
        one, other = on_lattice(one, unit), on_lattice(other, unit)
    return _fitted(_trimmed(_added(one, other), least, lowest), points)


def _divided(unit: float, wanted: float) -> float:
    """``unit`` divided by a whole number to about the spacing wanted: losses on its lattice stay exact."""
    return unit / max(1, math.ceil(unit / wanted)) if unit > wanted else wanted


def _added(one: Losses, other: Losses) -> Losses:
    chances = np.convolve(one.chances, other.chances)
    return Losses(one.unit, one.first + other.first, chances, one.infinite + other.infinite)


def _trimmed(losses: Losses, least: float, lowest: float) -> Losses:
    """Without the largest losses, which count as infinite, and the smallest, which are raised to the first one kept."""
    chances = losses.chances
    last = chances.size - int(np.searchsorted(np.cumsum(chances[::-1]), least, side="right"))
    begin = int(np.searchsorted(np.cumsum(chances), lowest, side="right"))
    if begin >= last:
        return losses
    kept = chances[begin:last].copy()
    kept[0] += chances[:begin].sum()
    infinite = losses.infinite + float(chances[last:].sum())
    return Losses(losses.unit, losses.first + begin, kept, infinite)


def _fitted(losses: Losses, points: int) -> Losses:
    times = -(-losses.chances.size // points)
    return losses if times == 1 else on_lattice(losses, losses.unit * times)


def on_lattice(losses: Losses, unit: float) -> Losses:
    """The same on the multiples of ``unit``: a loss in between is split so that both probabilities stay.

    They are p under P and p·e^-loss under Q: p = low + high and p·e^-loss = low·e^-below + high·e^-above.
    """
    places = (np.arange(losses.chances.size) + losses.first) * (losses.unit / unit)
    below = np.floor(places)
    high = losses.chances * np.minimum(np.expm1((below - places) * unit) / math.expm1(-unit), 1.0)
    first = int(below[0])
    at = (below - first).astype(np.int64)
    size = int(at[-1]) + 2
    chances = np.zeros(size)
    chances += np.bincount(at, losses.chances - high, size)
    chances += np.bincount(at + 1, high, size)
    return Losses(unit, float(first), chances, losses.infinite)


def worst(several: list[Losses]) -> Losses:
    """Losses whose δ at every point of their common lattice is the largest of all.

    As a function of e^ε each δ is convex, decreasing and linear between points; so is the interpolated maximum. The
    probability of a loss is the change of slope there: that of the largest δ, and more where another becomes largest.
    """
    if len(several) == 1:
        return several[0]
    unit, first = several[0].unit, min(one.first for one in several)
    size = int(max(one.first + one.chances.size for one in several) - first)
    chances = np.zeros((len(several), size))
    for row, one in zip(chances, several, strict=True):
        begin = int(one.first - first)
        row[begin : begin + one.chances.size] = one.chances
    infinite = np.array([one.infinite for one in several])
    excess = _excess(chances, (np.arange(size, dtype=np.float64) + first) * unit, unit, infinite)
    largest = np.argmax(excess * (1 - 1e-12 * np.arange(len(several)))[:, np.newaxis], axis=0)
    bends = chances[largest, np.arange(size)]
    place = np.flatnonzero(np.diff(largest))
    old, new = largest[place], largest[place + 1]
    bends[place] += _gain(excess[new, place + 1], excess[old, place + 1]) / math.expm1(unit)
    bends[place + 1] += _gain(excess[old, place], excess[new, place]) / -math.expm1(-unit)
    return Losses(unit, first, bends, float(infinite.max()))


def _gain(larger: NDArray[np.float64], smaller: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(larger - smaller, 0.0) + MARGIN * larger


def _excess(
    chances: NDArray[np.float64], losses: NDArray[np.float64], unit: float, infinite: NDArray[np.float64]
) -> NDArray[np.float64]:
    """δ(ε) - max(0, 1 - e^ε) at every loss of the lattice, from positive terms only.

    For ε ≥ 0, δ(ε) = P[infinite] + Σ p·(1 - e^(ε - loss)) over larger losses; for ε < 0, δ(ε) - (1 - e^ε) is
    Σ p·(e^(ε - loss) - 1) over smaller ones, as both distributions have a total probability of 1.
    """
    theirs, scale = chances * np.exp(-losses), np.exp(losses)  # p·e^-loss: the probabilities under the other neighbour
    above = np.concatenate([np.cumsum(theirs[:, :0:-1], axis=1)[:, ::-1], np.zeros((len(chances), 1))], axis=1)
    larger = np.cumsum((scale * above)[:, ::-1], axis=1)[:, ::-1] * math.expm1(unit) + infinite[:, np.newaxis]
    smaller = np.cumsum(scale * np.cumsum(theirs, axis=1), axis=1) * math.expm1(unit)
    smaller = np.concatenate([np.zeros((len(chances), 1)), smaller[:, :-1]], axis=1)
    return np.where(losses >= 0, larger, smaller)
