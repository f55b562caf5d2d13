"""How many rows the quantiles of a table are off: nine laws, several sizes, one quantile or several, two budgets.

Prints the root mean square over tables of the distance between the wanted rank and the ranks that the answer covers,
for each quantile: ``python -m benchmarks.table_accuracy [--tables 100] [--most 1000000]``.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import dpfrugal as dpf

Rows = NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Rows]
LAWS: dict[str, Law] = {
    "latencies": lambda rng, n: 40 * rng.lognormal(0, 0.5, n),
    "normal 50 2": lambda rng, n: rng.normal(50, 2, n),
    "exponential": lambda rng, n: rng.exponential(300, n),
    "cauchy": lambda rng, n: 1e4 + 1250 * rng.standard_cauchy(n),
    "whole numbers": lambda rng, n: np.round(rng.exponential(30, n) - 8 + rng.normal(0, 2, n)),
    "normal 1e9 5": lambda rng, n: rng.normal(1e9, 5, n),
    "cents": lambda rng, n: np.round(rng.lognormal(3, 1, n), 2),
    "90% zeros": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.exponential(5, n)),
    "tiny": lambda rng, n: rng.normal(3e-9, 1e-10, n),
}
QUANTILES = {
    "one quantile, .5": (0.5,),
    "one quantile, .9": (0.9,),
    "one quantile, .99": (0.99,),
    "p50, p90, p99": (0.5, 0.9, 0.99),
    "nine deciles": tuple(round(0.1 * i, 1) for i in range(1, 10)),
}
SIZES = (200, 1_000, 10_000, 100_000, 1_000_000)
ENOUGH = 30  # rows beyond a quantile, times ε


def rows_off(rows: Rows, answer: float, q: float) -> float:
    """How far the rank q·n is from those that the answer covers; ``rows`` are sorted."""
    below, upto = np.searchsorted(rows, answer, "left"), np.searchsorted(rows, answer, "right")
    return max(0.0, float(below - q * rows.size), float(q * rows.size - upto))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--most", type=int, default=1_000_000)
    chosen = parser.parse_args()
    rng = np.random.default_rng(7)
    for epsilon in (1.0, 0.1):
        for name, quantiles in QUANTILES.items():
            for n in SIZES:
                fewest = min(min(q, 1 - q) for q in quantiles) * n
                if n > chosen.most or fewest * epsilon < ENOUGH * 0.99:
                    continue
                began, errors = time.perf_counter(), {}
                for law, draw in LAWS.items():
                    squares = np.zeros(len(quantiles))
                    for _ in range(chosen.tables):
                        rows = np.sort(draw(rng, n))
                        release = dpf.private_quantiles(rows, quantiles, dpf.PureDP(epsilon=epsilon))
                        off = [rows_off(rows, value, q) for q, value in zip(quantiles, release.values, strict=True)]
                        squares += np.square(off)
                    errors[law] = np.sqrt(squares / chosen.tables)
                worst = {law: float(error.max()) for law, error in errors.items()}
                law = max(worst, key=lambda each: worst[each])
                seconds = (time.perf_counter() - began) / len(LAWS) / chosen.tables
                shown = ", ".join(f"{each} {error:.1f}" for each, error in worst.items())
                print(
                    f"ε={epsilon:g} {name}, n={n:,}: median law {np.median(list(worst.values())):.1f}, "
                    f"worst {worst[law]:.1f} ({law}); "
                    f"{1000 * seconds:.0f} ms each [{shown}]",
                    flush=True,
                )


if __name__ == "__main__":
    main()
