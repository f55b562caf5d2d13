"""The error of two scans, simulated for tables of any size: the second scan's counts are drawn, not counted.

Given the edges, the counts of n independent rows are multinomial; so a table of 10^12 rows costs no more than its
sample. Printed is the RMS error in rank over that of the exact sample quantile, √(q(1-q)/n).

    python -m benchmarks.schedule [repetitions]
"""

import math
import sys
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from dpfrugal.engines.two_scans import SAMPLE

SIZES = (10**6, 10**7, 10**9, 10**12)
QUANTILES = (0.5, 0.99)
STANDARD = NormalDist()


def lognormal(x: float) -> float:
    """The CDF of 40·lognormal(0, 0.5): latencies."""
    return STANDARD.cdf((math.log(x) - math.log(40)) / 0.5) if x > 0 else 0.0


def cauchy(x: float) -> float:
    """The CDF of Cauchy(10000, 1250), the paper's D6."""
    return 0.5 + math.atan((x - 10_000) / 1250) / math.pi


DRAWN: dict[str, tuple[Callable[[float], float], Callable[[np.random.Generator], NDArray[np.float64]]]] = {
    "lognormal": (lognormal, lambda rng: 40 * rng.lognormal(0, 0.5, SAMPLE)),
    "Cauchy": (cauchy, lambda rng: 10_000 + 1250 * rng.standard_cauchy(SAMPLE)),
}


def error(kind: str, q: float, size: int, epsilon: float, rng: np.random.Generator) -> float:
    """How far one release is off in rank, over the standard error of the exact sample quantile."""
    cdf, draw = DRAWN[kind]
    p = dpf.PrivateQuantile(q, dpf.PureDP(epsilon=epsilon))
    p.update_many(draw(rng))
    p.expect(size - SAMPLE)
    below = [0.0, *(cdf(edge) for edge in p.edges.tolist()), 1.0]
    left, counts = size - SAMPLE, []
    for k in range(1, len(below) - 1):  # bin by bin: given the earlier ones, a count is binomial
        share = (below[k] - below[k - 1]) / max(1 - below[k - 1], 1e-300)
        counts.append(int(rng.binomial(left, min(max(share, 0.0), 1.0))))
        left -= counts[-1]
    p.absorb([*counts, left])
    return (cdf(p.release().value) - q) / math.sqrt(q * (1 - q) / size)


def main(repetitions: int) -> None:
    """A table of all sizes."""
    rng = np.random.default_rng(1)
    table = Table("", "q", "ε", *(f"{size:.0e} rows" for size in SIZES))
    for kind in DRAWN:
        for q in QUANTILES:
            for epsilon in (1.0, 0.1):
                found = [
                    math.sqrt(np.mean([error(kind, q, size, epsilon, rng) ** 2 for _ in range(repetitions)]))
                    for size in SIZES
                ]
                table.add_row(kind, str(q), str(epsilon), *(f"{rms:.2f}" for rms in found))
    Console(width=100).print(table)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
