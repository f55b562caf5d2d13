"""How accurate the state machine is: its error in rank, as a multiple of the exact sample quantile's.

Every cell is a root mean square over repetitions, divided by √(q(1-q)/n), for the paper's eight datasets and four
quantiles. "close" counts every item; "open" shows what a release shows that does not close the open segment.

Run: python benchmarks/accuracy.py [--repetitions 100] [--rows 1e6,1 1e6,0.1 1e5,1 1e4,1] [--others] [--processes 2]
"""

import argparse
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.segments.planner import SegmentPlanner
from dpfrugal.privacy.guarantees import PureDP

Floats = NDArray[np.float64]
QUANTILES = (0.1, 0.3, 0.5, 0.99)


def normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def chi_squared_5(x: float) -> float:
    if x <= 0:
        return 0.0
    return math.erf(math.sqrt(x / 2)) - math.sqrt(2 * x / math.pi) * math.exp(-x / 2) * (1 + x / 3)


def gumbel(x: float) -> float:
    return math.exp(-math.exp(min(-x, 700.0)))


@dataclass(frozen=True)
class Dataset:
    """A distribution: how to draw from it, and its exact CDF."""

    draw: Callable[[np.random.Generator, int], Floats]
    cdf: Callable[[float], float]

    def rank_error(self, estimate: float, q: float) -> float:
        """How far the estimate's ranks, from just below it to it, are from ``q``: 0 if a tie spans it."""
        below, upto = self.cdf(math.nextafter(estimate, -math.inf)), self.cdf(estimate)
        return upto - q if upto < q else max(below - q, 0.0)

    def covered(self, low: float, high: float, q: float) -> bool:
        """Whether an interval holds a true quantile."""
        low, high = max(low, -1e300), min(high, 1e300)
        return self.cdf(high) >= q - 1e-12 and self.cdf(math.nextafter(low, -math.inf)) <= q + 1e-12


PAPER = {
    "D1 uniform": Dataset(lambda r, n: r.uniform(0, 1000, n), lambda x: min(max(x / 1000, 0.0), 1.0)),
    "D2 chi-squared": Dataset(lambda r, n: r.chisquare(5, n), chi_squared_5),
    "D3 exponential": Dataset(lambda r, n: r.exponential(2, n), lambda x: -math.expm1(-max(x, 0.0) / 2)),
    "D4 lognormal": Dataset(
        lambda r, n: r.lognormal(1, 1.5, n), lambda x: normal((math.log(x) - 1) / 1.5) if x > 0 else 0.0
    ),
    "D5 normal": Dataset(lambda r, n: r.normal(50, 2, n), lambda x: normal((x - 50) / 2)),
    "D6 Cauchy": Dataset(
        lambda r, n: 10000 + 1250 * r.standard_cauchy(n), lambda x: 0.5 + math.atan((x - 10000) / 1250) / math.pi
    ),
    "D7 Gumbel": Dataset(lambda r, n: r.gumbel(20, 2, n), lambda x: gumbel((x - 20) / 2)),
    "D8 gamma": Dataset(lambda r, n: r.gamma(2, 4, n), lambda x: 1 - math.exp(-x / 4) * (1 + x / 4) if x > 0 else 0.0),
}


def binomial_sum(count: int, p: float, upto: float) -> float:
    last = math.floor(min(upto, count))
    return sum(math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(last + 1))


def clusters(r: np.random.Generator, n: int) -> Floats:
    return np.where(r.random(n) < 0.5, r.normal(0, 1, n), r.normal(1e6, 1, n))


OTHERS = {
    "arcsine": Dataset(
        lambda r, n: r.beta(0.5, 0.5, n), lambda x: 2 / math.pi * math.asin(math.sqrt(min(max(x, 0.0), 1.0)))
    ),
    "Pareto 1.1": Dataset(lambda r, n: 1 + r.pareto(1.1, n), lambda x: 1 - x**-1.1 if x > 1 else 0.0),
    "Student 2": Dataset(lambda r, n: r.standard_t(2, n), lambda x: 0.5 + x / (2 * math.sqrt(2 + x * x))),
    "1% outliers": Dataset(
        lambda r, n: np.where(r.random(n) < 0.99, r.normal(0, 1, n), r.normal(1e12, 1e11, n)),
        lambda x: 0.99 * normal(x) + 0.01 * normal((x - 1e12) / 1e11),
    ),
    "normal at 1e9": Dataset(lambda r, n: r.normal(1e9, 1, n), lambda x: normal(x - 1e9)),
    "normal at 3e-9": Dataset(lambda r, n: r.normal(3e-9, 1e-9, n), lambda x: normal((x - 3e-9) / 1e-9)),
    "exponential 1e15": Dataset(lambda r, n: r.exponential(1e15, n), lambda x: -math.expm1(-max(x, 0.0) / 1e15)),
    "two clusters": Dataset(clusters, lambda x: 0.5 * normal(x) + 0.5 * normal(x - 1e6)),
    "90% zeros": Dataset(
        lambda r, n: np.where(r.random(n) < 0.9, 0.0, r.exponential(3, n)),
        lambda x: 0.9 - 0.1 * math.expm1(-x / 3) if x >= 0 else 0.0,
    ),
    "all equal": Dataset(lambda r, n: np.full(n, math.pi), lambda x: float(x >= math.pi)),
    "integers 0..5": Dataset(
        lambda r, n: r.integers(0, 6, n).astype(np.float64), lambda x: min(max(math.floor(x) + 1, 0), 6) / 6
    ),
    "integers 0..999": Dataset(
        lambda r, n: r.integers(0, 1000, n).astype(np.float64), lambda x: min(max(math.floor(x) + 1, 0), 1000) / 1000
    ),
    "binomial 20": Dataset(lambda r, n: r.binomial(20, 0.3, n).astype(np.float64), partial(binomial_sum, 20, 0.3)),
    "geometric": Dataset(
        lambda r, n: r.geometric(0.2, n).astype(np.float64), lambda x: 1 - 0.8 ** math.floor(x) if x >= 1 else 0.0
    ),
}


def count(items: Floats, edges: Floats) -> NDArray[np.int64]:
    """Counts of the items between the edges: bins are closed below and open above."""
    if edges.size <= 4:
        below = [int(np.count_nonzero(items < edge)) for edge in edges]
        return np.array([upto - before for before, upto in pairwise([0, *below, int(items.size)])], dtype=np.int64)
    return np.bincount(np.searchsorted(edges, items, side="right"), minlength=edges.size + 1)


def run(machine: SegmentPlanner, stream: Floats) -> Floats:
    """Give the machine all whole segments of ``stream``; return the items of the open segment."""
    position = 0
    while position + (length := machine.segment_length) <= stream.size:
        machine.absorb(count(stream[position : position + length], machine.edges))
        position += length
    return stream[position:]


Outcome = list[tuple[float, float, bool]]  # per quantile: both errors in rank, and whether the interval covers


def repeat(name: str, n: int, epsilon: float, repetition: int) -> Outcome:
    dataset = (PAPER | OTHERS)[name]
    stream = dataset.draw(np.random.default_rng([repetition, *name.encode()]), n)
    outcome: Outcome = []
    for q in QUANTILES:
        machine = SegmentPlanner([q], PureDP(epsilon=epsilon))
        rest = run(machine, stream)
        unclosed = dataset.rank_error(machine.estimates[0], q)
        if rest.size:
            machine.absorb(count(rest, machine.edges))
        closed = dataset.rank_error(machine.estimates[0], q)
        outcome.append((closed, unclosed, dataset.covered(*machine.intervals(0.95)[0], q)))
    return outcome


def table(names: Sequence[str], n: int, epsilon: float, repetitions: int, processes: int) -> None:
    started = time.perf_counter()
    print(
        f"\nn = {n:,}, ε = {epsilon:g}, {repetitions} repetitions: rank error ÷ √(q(1-q)/n), close / open (coverage)\n"
    )
    print("| data | " + " | ".join(f"q = {q:g}" for q in QUANTILES) + " |\n|---|" + "---|" * len(QUANTILES))
    cells: list[tuple[float, float]] = []
    covered: list[float] = []
    with multiprocessing.Pool(processes) as pool:
        for name in names:
            outcomes = pool.map(partial(repeat, name, n, epsilon), range(repetitions))
            line = []
            for i, q in enumerate(QUANTILES):
                unit = math.sqrt(q * (1 - q) / n)
                closed, unclosed = (
                    math.sqrt(statistics.fmean(outcome[i][way] ** 2 for outcome in outcomes)) / unit for way in (0, 1)
                )
                coverage = statistics.fmean(outcome[i][2] for outcome in outcomes)
                cells.append((closed, unclosed))
                covered.append(coverage)
                line.append(f"{closed:.2f} / {unclosed:.2f} ({coverage:.0%})")
            print(f"| {name} | " + " | ".join(line) + " |", flush=True)
    for way, what in enumerate(("close", "open")):
        errors = [cell[way] for cell in cells]
        print(f"\n{what}: median {statistics.median(errors):.2f}, worst {max(errors):.2f}")
    print(
        f"\ncoverage of interval(0.95): {min(covered):.1%} to {max(covered):.1%}, mean {statistics.fmean(covered):.1%}"
    )
    print(f"({time.perf_counter() - started:.0f} s)")


TEN = (0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 0.95, 0.99)


def together(n: int, repetition: int) -> list[tuple[float, float]]:
    """The errors in rank of ten quantiles of a normal stream: each alone, and all in one pass."""
    dataset = PAPER["D5 normal"]
    stream = dataset.draw(np.random.default_rng([repetition, 10]), n)

    def errors(quantiles: Sequence[float]) -> list[float]:
        machine = SegmentPlanner(quantiles, PureDP(epsilon=1.0))
        rest = run(machine, stream)
        if rest.size:
            machine.absorb(count(rest, machine.edges))
        return [dataset.rank_error(value, q) for value, q in zip(machine.estimates, quantiles, strict=True)]

    return list(zip([errors([q])[0] for q in TEN], errors(TEN), strict=True))


def table_of_ten(n: int, repetitions: int, processes: int) -> None:
    print(f"\nn = {n:,}, ε = 1, {repetitions} repetitions, D5: rank error ÷ √(q(1-q)/n), alone / ten together\n")
    print("| q | alone | together | ratio |\n|---|---|---|---|")
    with multiprocessing.Pool(processes) as pool:
        outcomes = pool.map(partial(together, n), range(repetitions))
    for i, q in enumerate(TEN):
        unit = math.sqrt(q * (1 - q) / n)
        alone, shared = (math.sqrt(statistics.fmean(row[i][way] ** 2 for row in outcomes)) / unit for way in (0, 1))
        print(f"| {q:g} | {alone:.2f} | {shared:.2f} | {shared / alone:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--rows", nargs="+", default=["1e6,1", "1e6,0.1", "1e5,1", "1e4,1"], help="items,epsilon")
    parser.add_argument("--others", action="store_true", help="other data than the paper's: ties, gaps, scales")
    parser.add_argument("--ten", action="store_true", help="ten quantiles in one pass beside each of them alone")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.ten:
        table_of_ten(1_000_000, options.repetitions, options.processes)
        return
    for row in options.rows:
        n, epsilon = (float(part) for part in row.split(","))
        names = list(OTHERS if options.others else PAPER)
        table(names, int(n), epsilon, options.repetitions, options.processes)


if __name__ == "__main__":
    main()
