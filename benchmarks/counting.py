"""How fast ``PrivateQuantile`` counts, beside ``numpy.sum`` of the same float64 array, in one run.

Targets: the kernel with the edges of one quantile at 0.8 times the speed of ``numpy.sum`` or more, with those of
three at 0.35 or more; ``update_many`` of 20 million items, from the first to the last, at 0.4 or more.

    python -m benchmarks.counting
"""

import time
from collections.abc import Callable
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from dpfrugal.estimators.segments.counting import count_below

ITEMS = 20_000_000
ROUNDS = 15


def main() -> None:
    """Interleaved rounds; the median of the ratios inside each."""
    stream = np.random.default_rng(1).normal(50, 2, ITEMS)
    guarantee = dpf.PureDP(epsilon=1.0)

    def whole(quantiles: tuple[float, ...]) -> Callable[[], object]:
        return lambda: dpf.PrivateQuantile(quantiles, guarantee).update_many(stream)

    around = [float(np.quantile(stream[:100_000], q)) for q in (0.5, 0.9, 0.99)]
    edges = np.sort([centre + shift for centre in around for shift in (-0.01, 0.0, 0.01)])
    runs: dict[str, tuple[Callable[[], object], float]] = {
        "kernel, 1 edge": (lambda: count_below(stream, edges[1:2]), 0.8),
        "kernel, 3 edges": (lambda: count_below(stream, edges[:3]), 0.8),
        "kernel, 9 edges": (lambda: count_below(stream, edges), 0.35),
        "update_many, q = 0.5": (whole((0.5,)), 0.4),
        "update_many, q = 0.99": (whole((0.99,)), 0.4),
        "update_many, three quantiles": (whole((0.5, 0.9, 0.99)), 0.35),
    }
    for run, _ in runs.values():
        run()
    ratios: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        reading = seconds(stream.sum)
        for name, (run, _) in runs.items():
            ratios[name].append(reading / seconds(run))
    table = Table("what", "times numpy.sum", "best", "at least", title=f"{ITEMS:,} float64, {ROUNDS} rounds")
    for name, (_, least) in runs.items():
        table.add_row(name, f"{median(ratios[name]):.2f}", f"{max(ratios[name]):.2f}", f"{least:g}")
    Console().print(table)


def seconds(run: Callable[[], object]) -> float:
    """One timed call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
