"""A black-box audit of PrivateQuantile: a lower bound for ε from many runs on a searched pair of neighbours.

An attacker sees the public transcript (edges and noisy counts). For each pair of neighbours it learns, on half of the
runs, which set of transcripts tells the two streams apart best; the other half gives counts for that set, and
Clopper-Pearson bounds at 99.9% give ε ≥ ln(P/Q). The right mechanism must stay below its promise (it exceeds it by
chance in less than one run in a hundred thousand, being far below); the broken ones must exceed it.
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

ONE = dpf.PureDP(epsilon=1.0)
RUNS = 3_000
UNSURE = 1e-3
Stream = tuple[float, ...]
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


def score(samples: list[NDArray[np.float64]]) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """A statistic that tells two samples of transcripts apart: how many numbers lie on the first one's side."""
    first, second = (sample.mean(axis=0) for sample in samples)
    direction = np.where(np.abs(first - second) > 0.5, np.sign(first - second), 0.0)
    return lambda seen: np.sign(seen - (first + second) / 2) @ direction


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
    """The best over all pairs, both ways round."""
    best = 0.0
    for pair in PAIRS:
        rows = [[transcript(make, (stream[:2], stream[2:]), patch) for _ in range(RUNS // 2)] for stream in pair]
        width = min(len(row) for side in rows for row in side)  # later segments may differ in their number of edges
        seen = [np.array([row[:width] for row in side]) for side in rows]
        learn, test = [side[: RUNS // 4] for side in seen], [side[RUNS // 4 :] for side in seen]
        for one, other in ((0, 1), (1, 0)):
            statistic = score([learn[one], learn[other]])
            learnt = [statistic(learn[one]), statistic(learn[other])]
            ratios = {
                t: ((learnt[0] >= t).sum() + 1) / ((learnt[1] >= t).sum() + 5)
                for t in np.unique(np.concatenate(learnt))
            }
            threshold = max(ratios, key=lambda t: ratios[t])
            hits = [int((statistic(test[side]) >= threshold).sum()) for side in (one, other)]
            p, q = bound(hits[0], len(test[one]), upper=False), bound(hits[1], len(test[other]), upper=True)
            best = max(best, math.log(p / q) if p > 0 else 0.0)
    return best


def machine() -> locate_refine.LocateRefine:
    return locate_refine.LocateRefine([0.5], ONE)


def test_the_audit_stays_below_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    found = lower_bound_of_epsilon(machine, monkeypatch)
    assert 0.3 < found <= 1.0  # not 0 either: an audit that sees nothing proves nothing


def test_the_audit_catches_noise_at_half_its_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = dpf.PureDP(epsilon=2.0)
    monkeypatch.setattr(locate_refine, "add_noise", lambda values, guarantee, s: noise.add_noise(values, twice, s))
    assert lower_bound_of_epsilon(machine, monkeypatch) > 1.0


class CountsTwice(locate_refine.LocateRefine):
    """Counts the items of a segment again in the next one."""

    def absorb(self, counts: Any, **options: Any) -> None:
        before: list[int] = getattr(self, "before", [0] * len(counts))
        same_edges = len(before) == len(counts)
        super().absorb([a + b for a, b in zip(counts, before, strict=True)] if same_edges else counts, **options)
        self.before = list(counts)


def test_the_audit_catches_items_counted_in_two_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two short segments have the same edges, so the second one shows the first one's items again."""
    assert lower_bound_of_epsilon(lambda: CountsTwice([0.5], ONE), monkeypatch) > 1.0


class EdgesFromRawCounts(locate_refine.LocateRefine):
    """Moves the edges by what was counted: the edges are public, so the raw count is too."""

    def absorb(self, counts: Any, **options: Any) -> None:
        super().absorb(counts, **options)
        self.edges = self.edges + 1e3 * float(np.argmax(counts))


def test_the_audit_catches_edges_from_raw_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lower_bound_of_epsilon(lambda: EdgesFromRawCounts([0.5], ONE), monkeypatch) > 1.0
