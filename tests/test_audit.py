"""A black-box audit of PrivateQuantile: a lower bound for ε from many runs on a searched pair of neighbours.

An attacker sees the public transcript (edges and noisy counts). On some runs of every pair of neighbours it learns
which pair, and which set of transcripts, tells the two streams apart best; fresh runs of that pair give counts for that
set, and Clopper-Pearson bounds give ε ≥ ln(P/Q), wrong once in a million times. The right mechanism must stay below its
promise; the broken ones must exceed it. ε is 3, because that is where few runs say most: at ε = 1 a doubled loss shows
in events so much alike under both streams that ten times the runs would be needed.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal import locate_refine, noise
from dpfrugal.guarantees import Guarantee, Sensitivity

PROMISED = 3.0
GUARANTEE = dpf.PureDP(epsilon=PROMISED)
LEARNING, TESTING = 300, 2_500  # runs of each stream
UNSURE = 1e-6
Stream = tuple[float, ...]
Samples = NDArray[np.float64]
# Neighbours: an item moved within a magnitude, across many, over the sign, and early or late in the stream.
PAIRS: list[tuple[Stream, Stream]] = [
    ((3.0, 3.0, 900.0, 900.0), (3.0, 3.0, 900.0, 3.0)),
    ((3.0, 3.0, 3.0, 3.0), (3.0, 3.0, -3.0, 3.0)),
    ((1e-6, 5.0, 5.0, 5.0), (1e12, 5.0, 5.0, 5.0)),
]
Make = Callable[[], locate_refine.LocateRefine]


def transcript(make: Make, periods: Sequence[Sequence[float]], patch: pytest.MonkeyPatch) -> list[float]:
    """The noisy counts of all segments and where the next edges lie, as anyone may see them."""
    seen: list[float] = []

    def listening(values: Sequence[int], guarantee: Guarantee, sensitivity: Sensitivity) -> list[int]:
        noisy: list[int] = original(values, guarantee, sensitivity)
        seen.extend(noisy)
        return noisy

    original: Any = vars(locate_refine)["add_noise"]
    with patch.context() as local:
        local.setattr(locate_refine, "add_noise", listening)
        machine = make()
        for period in periods:
            bins = np.searchsorted(machine.edges, period, side="right").tolist()
            machine.absorb([bins.count(i) for i in range(machine.edges.size + 1)])
            seen.append(float(machine.edges[machine.edges.size // 2]))
    return seen


def score(first: NDArray[np.float64], second: NDArray[np.float64]) -> Callable[[Samples], Samples]:
    """A statistic that tells two samples of transcripts apart: how far each number lies on the first one's side."""
    one, other = np.median(first, axis=0), np.median(second, axis=0)
    reach = np.where(np.abs(first - one).max(axis=0) == 0, 1.0, np.inf)  # what never varies counts for one step only
    return lambda seen: np.clip(np.abs(seen - other) - np.abs(seen - one), -reach, reach).sum(axis=1)


def bound(hits: int, runs: int, *, upper: bool) -> float:
    """Clopper-Pearson at ``UNSURE``, by bisection of the binomial tail."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if upper:
            tail = float(mpmath.betainc(hits + 1, runs - hits, 0, middle, regularized=True)) if hits < runs else 0.0
            low, high = (middle, high) if tail < 1 - UNSURE else (low, middle)
        else:
            tail = float(mpmath.betainc(hits, runs - hits + 1, 0, middle, regularized=True)) if hits else 1.0
            low, high = (middle, high) if tail < UNSURE else (low, middle)
    return high if upper else low


def lower_bound_of_epsilon(make: Make, patch: pytest.MonkeyPatch) -> float:
    """The bound for the pair, the direction and the threshold that looked best while learning."""

    def runs(stream: Stream, count: int) -> Samples:
        rows = [transcript(make, (stream[:2], stream[2:]), patch) for _ in range(count)]
        assert len({len(row) for row in rows}) == 1
        return np.array(rows)

    best: tuple[float, Any] = (-math.inf, None)
    for first, second in [pair for one, other in PAIRS for pair in ((one, other), (other, one))]:
        learnt = runs(first, LEARNING), runs(second, LEARNING)
        statistic = score(*learnt)
        scores = statistic(learnt[0]), statistic(learnt[1])
        for t in np.unique(np.concatenate(scores)):
            hits = [int((score >= t).sum()) for score in scores]
            # Pessimistic about both counts, as the bound will be.
            promise = math.log(max(hits[0] - 3 * math.sqrt(hits[0]), 0.1) / (hits[1] + 1 + 2 * math.sqrt(hits[1])))
            best = max(best, (promise, (first, second, statistic, t)), key=lambda found: found[0])
    first, second, statistic, t = best[1]
    hits = [int((statistic(runs(stream, TESTING)) >= t).sum()) for stream in (first, second)]
    p, q = bound(hits[0], TESTING, upper=False), bound(hits[1], TESTING, upper=True)
    return math.log(p / q) if p > 0 else 0.0


def caught(make: Make, patch: pytest.MonkeyPatch) -> bool:
    """Whether one of three audits exceeds the promise: one alone misses a loss of 2ε once in some dozens of times."""
    return any(lower_bound_of_epsilon(make, patch) > PROMISED for _ in range(3))


def machine() -> locate_refine.LocateRefine:
    return locate_refine.LocateRefine([0.5], GUARANTEE)


def test_the_audit_stays_below_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lower_bound_of_epsilon(machine, monkeypatch)
    assert PROMISED / 2 < found <= PROMISED  # not 0 either: an audit that sees nothing proves nothing


def test_the_audit_catches_noise_at_half_its_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = dpf.PureDP(epsilon=2 * PROMISED)
    monkeypatch.setattr(locate_refine, "add_noise", lambda values, guarantee, s: noise.add_noise(values, twice, s))
    assert caught(machine, monkeypatch)


class CountsTwice(locate_refine.LocateRefine):
    """Counts the items of a segment again in the next one."""

    def absorb(self, counts: Any, **options: Any) -> None:
        before: list[int] = getattr(self, "before", [0] * len(counts))
        same_edges = len(before) == len(counts)
        super().absorb([a + b for a, b in zip(counts, before, strict=True)] if same_edges else counts, **options)
        self.before = list(counts)


def test_the_audit_catches_items_counted_in_two_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two short segments have the same edges, so the second one shows the first one's items again."""
    assert caught(lambda: CountsTwice([0.5], GUARANTEE), monkeypatch)


class EdgesFromRawCounts(locate_refine.LocateRefine):
    """Moves the edges by what was counted: the edges are public, so the raw count is too."""

    def absorb(self, counts: Any, **options: Any) -> None:
        super().absorb(counts, **options)
        self.edges = self.edges + 1e3 * float(np.argmax(counts))


def test_the_audit_catches_edges_from_raw_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert caught(lambda: EdgesFromRawCounts([0.5], GUARANTEE), monkeypatch)
