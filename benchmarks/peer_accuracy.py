"""The error in rank of other estimators on the streams of ``benchmarks.accuracy``: the same seeds, the same measure.

Private peers promise ε = 1 and get generous bounds, about twice as wide as the data; OpenDP gets 10,001 candidates
evenly spaced between them. DP-Frugal-1U walks from 0 on a grid of three decimals, as in the paper. A peer that is not
installed, or fails, is reported as such.

    python -m benchmarks.peer_accuracy [--items 100000] [--repetitions 20]
"""

import argparse
import importlib
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import dpfrugal as dpf
from benchmarks.accuracy import PAPER, QUANTILES, Floats

EPSILON = 1.0
CANDIDATES = 10_001
BOUNDS = {
    "D1 uniform": (0.0, 2000.0),
    "D2 chi-squared": (0.0, 100.0),
    "D3 exponential": (0.0, 100.0),
    "D4 lognormal": (0.0, 2000.0),
    "D5 normal": (0.0, 100.0),
    "D6 Cauchy": (-200_000.0, 200_000.0),
    "D7 Gumbel": (0.0, 100.0),
    "D8 gamma": (0.0, 100.0),
}
Estimate = Callable[[Floats, float, tuple[float, float]], float]


def exact(stream: Floats, q: float, bounds: tuple[float, float]) -> float:
    return float(np.quantile(stream, q))


def private_quantile(stream: Floats, q: float, bounds: tuple[float, float]) -> float:
    p = dpf.PrivateQuantile(q, dpf.PureDP(epsilon=EPSILON))
    p.update_many(stream)
    return p.release(close=True).value


def dp_frugal(stream: Floats, q: float, bounds: tuple[float, float]) -> float:
    p = dpf.DPFrugal1U(q, dpf.PureDP(epsilon=EPSILON), decimals=3)
    p.update_many(stream)
    return p.release().value


def opendp(module: Any) -> Estimate:
    module.enable_features("contrib")

    def estimate(stream: Floats, q: float, bounds: tuple[float, float]) -> float:
        domain = module.vector_domain(module.atom_domain(T=float, nan=False), size=stream.size)
        candidates = np.linspace(*bounds, CANDIDATES).tolist()
        measurement = module.m.make_private_quantile(
            domain, module.symmetric_distance(), module.max_divergence(), candidates, q, 2 / EPSILON
        )
        return float(measurement(stream))

    return estimate


def quantile_tree(module: Any) -> Estimate:
    def estimate(stream: Floats, q: float, bounds: tuple[float, float]) -> float:
        tree = module.QuantileTree(*bounds, 4, 16)
        for item in stream.tolist():
            tree.add_entry(item)
        return float(tree.compute_quantiles(EPSILON, 0.0, 1, 1, [q], "laplace")[0])

    return estimate


def diffprivlib(module: Any) -> Estimate:
    return lambda stream, q, bounds: float(module.quantile(stream, q, epsilon=EPSILON, bounds=bounds))


def kll(module: Any) -> Estimate:
    def estimate(stream: Floats, q: float, bounds: tuple[float, float]) -> float:
        sketch = module.kll_doubles_sketch()
        sketch.update(stream)
        return float(sketch.get_quantile(q))

    return estimate


OURS: dict[str, Estimate] = {
    "exact sample quantile (not private)": exact,
    "PrivateQuantile": private_quantile,
    "DP-Frugal-1U-L": dp_frugal,
}
PEERS: dict[str, tuple[str, Callable[[Any], Estimate]]] = {
    "OpenDP private_quantile": ("opendp.prelude", opendp),
    "PyDP quantile tree": ("pydp.algorithms.quantile_tree", quantile_tree),
    "diffprivlib quantile": ("diffprivlib.tools", diffprivlib),
    "DataSketches KLL (not private)": ("datasketches", kll),
}


def ratios(estimate: Estimate, n: int, repetitions: int) -> list[float]:
    """The root mean square error in rank of each cell, over that of the exact sample quantile's theory."""
    cells = []
    for name, dataset in PAPER.items():
        for q in QUANTILES:
            errors = []
            for repetition in range(repetitions):
                stream = dataset.draw(np.random.default_rng([repetition, *name.encode()]), n)
                errors.append(dataset.rank_error(estimate(stream, q, BOUNDS[name]), q))
            cells.append(math.sqrt(statistics.fmean(error**2 for error in errors) * n / (q * (1 - q))))
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    print(f"n = {options.items:,}, ε = {EPSILON:g}, {options.repetitions} repetitions: rank error ÷ √(q(1-q)/n)\n")
    print("| estimator | median cell | worst at q ≤ 0.5 | worst at q = 0.99 |\n|---|---|---|---|")
    rows = dict(OURS)
    for name, (module, make) in PEERS.items():
        try:
            rows[name] = make(importlib.import_module(module))
        except Exception as error:  # whatever goes wrong in a peer is its row's result, not this run's end
            print(f"| {name} | not installed: {type(error).__name__} | | |")
    for name, estimate in rows.items():
        try:
            cells = ratios(estimate, options.items, options.repetitions)
        except Exception as error:  # the same
            print(f"| {name} | failed: {type(error).__name__} | | |", flush=True)
            continue
        tails = cells[len(QUANTILES) - 1 :: len(QUANTILES)]
        middle = [cell for k, cell in enumerate(cells) if k % len(QUANTILES) != len(QUANTILES) - 1]
        figures = " | ".join(f"{figure:.2f}" for figure in (statistics.median(cells), max(middle), max(tails)))
        print(f"| {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
