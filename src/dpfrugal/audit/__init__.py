"""The audit: tries to break the guarantee of an estimator from outside, on worst-case neighbouring streams.

It searches neighbouring streams whose outputs lie far apart (``neighbour_search``), learns on some runs which event
tells them apart best (``events``), and counts that event in fresh runs of both streams. Clopper-Pearson bounds
(``confidence_bounds``) of its two probabilities give a lower bound for the estimator's true ε or ρ (``least_size``).
One event is tested, once, on runs that had no part in its choice. So an estimator that keeps its promise fails with a
probability of at most one minus the confidence, whatever was searched and learnt. A PASS proves nothing; a FAIL proves
that the promise is broken.

Worked number: DP-Frugal-1U at ε = 1 with 20,000 runs of each stream shows ε ≥ 0.9; with noise at 0.7 of its scale, ε
≥ 1.3.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpfrugal.audit import confidence_bounds
from dpfrugal.audit.events import Event, Transcripts, best_event
from dpfrugal.audit.neighbour_search import Case, Pair, Periods, pairs, seen
from dpfrugal.parameters import integer, probability
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee

KEPT = (24, 3, 1)  # how many pairs to learn from in each of three looks
LOOKS = (100, 500, 2_000)  # runs of each stream in a look
EXPECTED_RUNS = 20_000  # events are chosen for this number of runs if none is given
FEWEST_RUNS, MOST_RUNS = 1_000, 1_000_000
Told = Callable[[str, float], None]

__all__ = ["Audit", "Case", "audit", "highest_bound"]


@dataclass(frozen=True)
class Audit:
    """What an audit found: with this confidence, the estimator has at least the ε or ρ of ``bound``.

    >>> import dpfrugal as dpf
    >>> from dpfrugal.audit import audit
    >>> from dpfrugal.audit.cases import walk_cases
    >>> found = audit(walk_cases(), dpf.PureDP(epsilon=1.0), runs=1_000, looks=(20, 20, 50))
    >>> found.passed, 0 <= found.bound < found.highest
    (True, True)
    """

    guarantee: Guarantee
    bound: float
    confidence: float
    pair: Pair
    event: Event
    runs: int
    hits: tuple[int, int]
    scores: tuple[NDArray[np.float64], NDArray[np.float64]]

    @property
    def passed(self) -> bool:
        """Whether the bound is within the promise."""
        return self.bound <= self.guarantee.size

    @property
    def highest(self) -> float:
        """The largest bound that this many runs can show."""
        return highest_bound(self.runs, self.confidence, self.guarantee)

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        symbol = self.guarantee.symbol
        return (
            f"{verdict}: {symbol} ≥ {self.bound:.3f} with confidence {self.confidence:.6%}, promised {self.guarantee}"
        )


def highest_bound(runs: int, sure: float, guarantee: Guarantee) -> float:
    """The bound if the event happens in all runs of one stream and in none of the other: no audit can show more.

    >>> from dpfrugal import PureDP
    >>> round(highest_bound(1000, 1 - 1e-6, PureDP(epsilon=10.0)), 2)
    4.23
    """
    doubt = (1 - sure) / 2
    p, q = confidence_bounds.at_least(runs, runs, doubt), confidence_bounds.at_most(0, runs, doubt)
    return float(guarantee.least_size(np.array(p), np.array(q)))


def audit(
    cases: Sequence[Case],
    guarantee: Guarantee,
    *,
    runs: int | None = None,
    seconds: float = 20.0,
    sure: float = 1 - 1e-6,
    looks: Sequence[int] = LOOKS,
    told: Told = lambda stage, share: None,
) -> Audit:
    """Try to break ``guarantee`` on any of the cases; a correct estimator fails with probability at most 1 - ``sure``.

    The event is counted in ``runs`` runs of each stream, or in as many as take about ``seconds`` together; that number
    is fixed before the first of them. ``looks`` are the numbers of runs to learn from: for the most distant pairs, for
    the best three and for the best. ``told`` is called with the stage and the share of it that is done.

    >>> import dpfrugal as dpf
    >>> from dpfrugal.audit.cases import walk_cases
    >>> str(audit(walk_cases(), dpf.PureDP(epsilon=1.0), runs=1_000, looks=(20, 20, 50)))[:8]
    'PASS: ε '
    """
    checked_guarantee(guarantee)
    sure = probability("sure", sure)
    if runs is not None:
        runs = integer("runs", runs, FEWEST_RUNS, MOST_RUNS, shown_high=f"{MOST_RUNS:,}")
    found: list[Pair] = []
    for k, case in enumerate(cases):
        told("searching neighbours", k / len(cases))
        found += pairs(case)
    distinct = {(pair.case.name, pair.first, pair.second): pair for pair in found}
    candidates = sorted(distinct.values(), key=lambda pair: -pair.distance)
    pair, event, cost = _learnt(candidates, guarantee, looks, runs or EXPECTED_RUNS, told)
    if runs is None:
        runs = int(min(max(seconds / (2 * cost), FEWEST_RUNS), MOST_RUNS))
    scores = []
    for side, stream in enumerate((pair.first, pair.second)):
        counted = transcripts(pair.case, guarantee, stream, runs, partial(_tell_half, told, side))
        scores.append(event.score.of(counted))
    hits = int((scores[0] >= event.threshold).sum()), int((scores[1] >= event.threshold).sum())
    doubt = (1 - sure) / 2  # for each of the two bounds
    p, q = confidence_bounds.at_least(hits[0], runs, doubt), confidence_bounds.at_most(hits[1], runs, doubt)
    bound = float(guarantee.least_size(np.array(p), np.array(q)))
    return Audit(guarantee, bound, sure, pair, event, runs, hits, (scores[0], scores[1]))


def _tell_half(told: Told, side: int, share: float) -> None:
    told("counting", (side + share) / 2)


def _learnt(
    candidates: list[Pair], guarantee: Guarantee, looks: Sequence[int], goal: int, told: Told
) -> tuple[Pair, Event, float]:
    """The most promising pair and event, and the seconds that a run takes; each look has fewer pairs and more runs."""
    ways: list[tuple[Pair, Event]] = []
    cost = 0.0
    for k, (look, kept) in enumerate(zip(looks, KEPT, strict=True)):
        chosen = candidates[:kept]
        ways, began = [], time.perf_counter()
        for i, pair in enumerate(chosen):
            told("learning", (k + i / len(chosen)) / len(looks))
            ways += _events(pair, guarantee, look, goal)
        cost = (time.perf_counter() - began) / (2 * look * len(chosen))
        ways.sort(key=lambda way: -way[1].expected)
        candidates = list(dict.fromkeys(min(pair, pair.swapped(), key=repr) for pair, _ in ways))
    return (*ways[0], cost)


def _events(pair: Pair, guarantee: Guarantee, runs: int, goal: int) -> list[tuple[Pair, Event]]:
    one, other = (transcripts(pair.case, guarantee, stream, runs) for stream in (pair.first, pair.second))
    return [
        (pair, best_event(one, other, guarantee, goal, chosen=pair.case.chosen)),
        (pair.swapped(), best_event(other, one, guarantee, goal, chosen=pair.case.chosen)),
    ]


def transcripts(
    case: Case, guarantee: Guarantee, periods: Periods, runs: int, told: Callable[[float], None] = lambda share: None
) -> Transcripts:
    """The outputs of that many runs, each with a new estimator: an array of runs × releases × numbers."""
    rows = []
    for k in range(runs):
        rows.append(seen(case, guarantee, periods))
        if k % 256 == 0:
            told(k / runs)
    return np.array(rows)
