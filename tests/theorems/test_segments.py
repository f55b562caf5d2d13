"""Theorems 8 and 9: a segment is a histogram, and a whole transcript of segments costs one guarantee."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpfrugal as dpf
from dpfrugal.audit import broken
from dpfrugal.estimators.segments import planner
from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity
from tests.support.naive import neighbours

ONE = dpf.PureDP(epsilon=1.0)
GUARANTEES: list[Guarantee] = [ONE, dpf.ApproxDP(epsilon=1.0, delta=1e-6), dpf.ZCDP(rho=0.5)]
rng = np.random.default_rng(17)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
@pytest.mark.parametrize("most", [1, 3])
def test_theorem_8__noise_is_asked_for_with_the_sensitivity_of_a_histogram(
    guarantee: Guarantee, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Theorem 8: 2k in L1 and 2k² in squared L2; k for the one count of a segment with one edge."""
    asked: set[tuple[int, Sensitivity]] = set()

    def record(values: Sequence[int], given: Guarantee, sensitivity: Sensitivity) -> list[int]:
        assert given == guarantee
        asked.add((min(len(values), 2), sensitivity))
        return list(values)

    monkeypatch.setattr(planner, "add_noise", record)
    p = dpf.PrivateQuantile(0.5, guarantee, max_items_per_person=most)
    p.update_many(rng.normal(0, 1, 100_000))
    histogram = (2, Sensitivity(l1=2 * most, l2_squared=2 * most**2))
    single = (1, Sensitivity(l1=most, l2_squared=most**2, one_number=most == 1))
    assert asked <= {histogram, single}
    assert histogram in asked


def bins_of(items: Sequence[float], edges: NDArray[np.float64]) -> list[int]:
    bins = np.searchsorted(edges, items, side="right").tolist()
    return [bins.count(i) for i in range(edges.size + 1)]


def transcript_cost(
    make: Callable[[], SegmentPlanner],
    periods: Sequence[Sequence[float]],
    offset: int,
    patch: pytest.MonkeyPatch,
) -> int:
    """Σ|output - raw| of a transcript whose outputs are fixed beforehand, whatever the stream."""
    cost = 0

    def answer(values: Sequence[int], guarantee: Guarantee, sensitivity: Sensitivity) -> list[int]:
        nonlocal cost
        outputs = [(offset + 3 * i) % 5 for i in range(len(values))]
        cost += sum(abs(out - raw) for out, raw in zip(outputs, values, strict=True))
        return outputs

    patch.setattr(planner, "add_noise", answer)
    machine = make()
    for period in periods:
        machine.absorb(bins_of(period, machine.edges))
    return cost


def largest_log_ratio(make: Callable[[], SegmentPlanner], patch: pytest.MonkeyPatch) -> int:
    """Over all neighbours of all streams of four items in two segments, in units of 1/scale; exact in integers."""
    alphabet = (-7.0, 0.0, 3.0, 900.0)
    largest = 0
    for offset in range(5):
        costs = {
            stream: transcript_cost(make, (stream[:2], stream[2:]), offset, patch)
            for stream in itertools.product(alphabet, repeat=4)
        }
        for stream, cost in costs.items():
            largest = max(largest, *(abs(cost - costs[other]) for other in neighbours(stream, alphabet)))
    return largest


def test_theorem_9__a_transcript_costs_one_epsilon_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 9: with discrete Laplace noise of scale 2/ε, a log-ratio of at most 2 in units of 1/scale is ε."""
    assert largest_log_ratio(lambda: SegmentPlanner([0.5, 0.9], ONE), monkeypatch) == 2


class FromRawCounts(SegmentPlanner):
    """Moves its edges by what it counted instead of by what it released."""

    def absorb(self, counts: Any, **options: Any) -> None:
        super().absorb(counts, **options)
        self.edges = self.edges + float(np.argmax(counts))


@pytest.mark.parametrize("mistake", [FromRawCounts, broken._CountsAgain], ids=["raw edges", "counted twice"])
def test_theorem_9__enumeration_catches(mistake: type[SegmentPlanner], monkeypatch: pytest.MonkeyPatch) -> None:
    assert largest_log_ratio(lambda: mistake([0.5, 0.9], ONE), monkeypatch) > 2
