"""Rows off, side by side: the table's quantiles, this library's other ways, and other libraries, in two orders.

The same tables for all: the paper's eight datasets, first as drawn, then in order of time: the same rows, arranged so
that they rise from the first to the last with a good deal of noise. Private peers promise ε = 1 and get generous
bounds, about twice as wide as the data, and OpenDP evenly spaced candidates between them; the table's quantiles get
nothing. OpenDP and this library hide a replaced row; PyDP an added or removed one; diffprivlib does not say which.
A peer that is not installed, or fails, is reported as such.

    python -m benchmarks.peer_accuracy [--rows 100000] [--repetitions 10] [--processes 2]
"""

import argparse
import importlib
import math
import multiprocessing
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dpfrugal as dpf
from benchmarks.laws import PAPER, Floats
from benchmarks.table_accuracy import rows_off

EPSILON = 1.0
QUANTILES = (0.1, 0.5, 0.9, 0.99)
TREND_NOISE = 0.2  # standard deviation of the noise on a row's place, as a share of all rows
BOUNDS = {
    "D1 uniform": (0.0, 2000.0),
    "D2 chi-squared": (0.0, 100.0),
    "D3 exponential": (0.0, 100.0),
    "D4 lognormal": (0.0, 2000.0),
    "D5 normal": (0.0, 100.0),
    "D6 Cauchy": (-200_000.0, 200_000.0),
    "D7 extreme value": (0.0, 100.0),
    "D8 gamma": (0.0, 100.0),
}
Estimate = Callable[[Floats, float, tuple[float, float]], float]


def table(rows: Floats, q: float, bounds: tuple[float, float]) -> float:
    return float(dpf.private_quantiles(rows, q, dpf.PureDP(epsilon=EPSILON), intervals=False).value)


def private_quantile(rows: Floats, q: float, bounds: tuple[float, float]) -> float:
    p = dpf.PrivateQuantile(q, dpf.PureDP(epsilon=EPSILON))
    p.update_many(rows)
    return p.release(close=True).value


def dp_frugal(rows: Floats, q: float, bounds: tuple[float, float]) -> float:
    p = dpf.DPFrugal1U(q, dpf.PureDP(epsilon=EPSILON), decimals=3)
    p.update_many(rows)
    return p.release().value


def opendp(module: Any, candidates: int) -> Estimate:
    module.enable_features("contrib")

    def estimate(rows: Floats, q: float, bounds: tuple[float, float]) -> float:
        domain = module.vector_domain(module.atom_domain(T=float, nan=False), size=rows.size)
        spaced = np.linspace(*bounds, candidates).tolist()
        scale = 2 / EPSILON  # of known size, a replaced row is at distance 2
        measurement = module.m.make_private_quantile(
            domain, module.symmetric_distance(), module.max_divergence(), spaced, q, scale
        )
        return float(measurement(rows))

    return estimate


def quantile_tree(module: Any) -> Estimate:
    def estimate(rows: Floats, q: float, bounds: tuple[float, float]) -> float:
        tree = module.QuantileTree(*bounds, 4, 16)
        for item in rows.tolist():
            tree.add_entry(item)
        return float(tree.compute_quantiles(EPSILON, 0.0, 1, 1, [q], "laplace")[0])

    return estimate


def diffprivlib(module: Any) -> Estimate:
    return lambda rows, q, bounds: float(module.quantile(rows, q, epsilon=EPSILON, bounds=bounds))


def kll(module: Any) -> Estimate:
    def estimate(rows: Floats, q: float, bounds: tuple[float, float]) -> float:
        sketch = module.kll_doubles_sketch()
        sketch.update(rows)
        return float(sketch.get_quantile(q))

    return estimate


OURS: dict[str, Estimate] = {
    "**private_quantiles**, no bounds": table,
    "PrivateQuantile, no bounds": private_quantile,
    "DP-Frugal-1U-L from 0": dp_frugal,
}
PEERS: dict[str, tuple[str, Callable[[Any], Estimate]]] = {
    "OpenDP, 10,001 candidates": ("opendp.prelude", partial(opendp, candidates=10_001)),
    "OpenDP, 1,001 candidates": ("opendp.prelude", partial(opendp, candidates=1_001)),
    "diffprivlib quantile": ("diffprivlib.tools", diffprivlib),
    "PyDP quantile tree": ("pydp.algorithms.quantile_tree", quantile_tree),
    "DataSketches KLL (not private)": ("datasketches", kll),
}


def in_order_of_time(rows: Floats, rng: np.random.Generator) -> Floats:
    """The same rows, rising over time with noise."""
    ranks = np.argsort(np.argsort(rows))
    return rows[np.argsort(ranks / rows.size + rng.normal(0, TREND_NOISE, rows.size))]


def cells(name: str, n: int, repetitions: int) -> dict[bool, list[float]] | str:
    """The root mean square of rows off, for each dataset and quantile, as drawn and in order of time."""
    try:
        if name in OURS:
            estimate = OURS[name]
        else:
            module, make = PEERS[name]
            estimate = make(importlib.import_module(module))
        found: dict[bool, list[float]] = {False: [], True: []}
        for law in PAPER:
            squares = {(timed, q): 0.0 for timed in found for q in QUANTILES}
            for repetition in range(repetitions):
                rng = np.random.default_rng([repetition, *law.name.encode()])
                rows = law.draw(rng, n)
                ordered = np.sort(rows)
                for timed, given in ((False, rows), (True, in_order_of_time(rows, rng))):
                    for q in QUANTILES:
                        squares[timed, q] += rows_off(ordered, estimate(given, q, BOUNDS[law.name]), q, n) ** 2
            for (timed, _), total in squares.items():
                found[timed].append(math.sqrt(total / repetitions))
        return found
    except Exception as error:  # whatever goes wrong in a peer is its row's result, not this run's end
        return f"{'not installed' if isinstance(error, ImportError) else 'failed'}: {type(error).__name__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    quantiles = ", ".join(f"{q:g}" for q in QUANTILES)
    print(
        f"n = {options.rows:,}, ε = {EPSILON:g}, D1 to D8, q = {quantiles}, {options.repetitions} tables each: rows off"
    )
    print("(root mean square), in the median and in the worst of 32 cells\n")
    print("| estimator | as drawn: median | worst | in order of time: median | worst |\n|---|---|---|---|---|")
    names = [*OURS, *PEERS]
    with multiprocessing.Pool(options.processes) as pool:
        for name, found in zip(
            names, pool.imap(partial(cells, n=options.rows, repetitions=options.repetitions), names), strict=True
        ):
            if isinstance(found, str):
                print(f"| {name} | {found} | | | |", flush=True)
                continue
            figures = [f"{figure:,.1f}" for part in found.values() for figure in (statistics.median(part), max(part))]
            print(f"| {name} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
