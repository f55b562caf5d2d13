"""Contenders from other packages, each given what suits it best: its own array type, prepared beforehand, untimed.

Private peers promise ε = 1 as well. OpenDP and this library hide a replaced item; PyDP hides an added or removed
one, which is a weaker promise at the same ε; the documentation of diffprivlib's ``quantile`` does not name its
neighbours.
"""

import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contenders import EPSILON, FEW, INT32, MANY, Absent, Answer, Contender, Run
from benchmarks.datasets import QUANTILE, Dataset

SKETCH_ITEMS, LOOP_ITEMS, ARRAY_ITEMS, SORTED_ITEMS = 4_000_000, 400_000, 1_000_000, 300_000
COARSE = 1001


def datasketch(name: str, kind: type[np.number[Any]], **settings: int) -> Callable[[Any], Callable[[Dataset], Run]]:
    """A sketch of Apache DataSketches with its default size, fed an array of the type it stores."""

    def of(module: Any) -> Callable[[Dataset], Run]:
        def prepare(dataset: Dataset) -> Run:
            items = dataset.thinned(SKETCH_ITEMS)
            if kind is np.int32:
                items = items.clip(INT32.min, INT32.max)
            converted = items.astype(kind)

            def run() -> Answer:
                sketch = getattr(module, name)(**settings)
                sketch.update(converted)
                return Answer(float(sketch.get_quantile(QUANTILE)), lambda: len(sketch.serialize()))

            return run

        return prepare

    return of


def ddsketch(module: Any) -> Callable[[Dataset], Run]:
    """1% relative accuracy, its default; one item at a time is the only way in."""

    def prepare(dataset: Dataset) -> Run:
        items = dataset.thinned(LOOP_ITEMS).astype(np.float64).tolist()

        def run() -> Answer:
            sketch = module.DDSketch()
            for item in items:
                sketch.add(item)
            stores = (sketch._store, sketch._negative_store)
            return Answer(sketch.get_quantile_value(QUANTILE), lambda: 8 * sum(len(store.bins) for store in stores))

        return run

    return prepare


def river(module: Any) -> Callable[[Dataset], Run]:
    """The P² algorithm: five markers, one item at a time."""

    def prepare(dataset: Dataset) -> Run:
        items = dataset.thinned(LOOP_ITEMS).astype(np.float64).tolist()

        def run() -> Answer:
            statistic = module.Quantile(QUANTILE)
            for item in items:
                statistic.update(item)
            return Answer(statistic.get(), lambda: len(pickle.dumps(statistic)))

        return run

    return prepare


def quantile_tree(module: Any) -> Callable[[Dataset], Run]:
    """Height 4 and 16 branches, Google's defaults; one item at a time."""

    def prepare(dataset: Dataset) -> Run:
        items = dataset.thinned(LOOP_ITEMS).astype(np.float64).tolist()
        lower, upper = dataset.law.bounds

        def run() -> Answer:
            tree = module.QuantileTree(lower, upper, 4, 16)
            for item in items:
                tree.add_entry(item)
            (estimate,) = tree.compute_quantiles(EPSILON, 0.0, 1, 1, [QUANTILE], "laplace")
            return Answer(estimate, lambda: int(tree.memory_used))

        return run

    return prepare


def opendp(candidates: int | None, *, listed: bool = False) -> Callable[[Any], Callable[[Dataset], Run]]:
    """``make_private_quantile`` with evenly spaced candidates, or with every integer in the bounds (None).

    The measurement is made beforehand, untimed: it does not depend on the items. It takes an int64 array as it is; in
    its documentation it is given a list, which it converts item by item.
    """

    def of(dp: Any) -> Callable[[Dataset], Run]:
        dp.enable_features("contrib")

        def prepare(dataset: Dataset) -> Run:
            items = dataset.thinned(LOOP_ITEMS if listed else ARRAY_ITEMS)
            lower, upper = dataset.law.bounds
            spaced = np.unique(np.linspace(lower, upper, candidates or upper - lower + 1).astype(np.int64)).tolist()
            domain = dp.vector_domain(dp.atom_domain(T="i64"), size=items.size)
            scale = 2 / EPSILON  # of known size, a replaced item is at distance 2
            measurement = dp.m.make_private_quantile(
                domain, dp.symmetric_distance(), dp.max_divergence(), spaced, QUANTILE, scale
            )
            assert measurement.map(2) <= EPSILON
            given = items.tolist() if listed else items

            def run() -> Answer:
                return Answer(float(measurement(given)), lambda: items.nbytes + 8 * len(spaced))

            return run

        return prepare

    return of


def diffprivlib(module: Any) -> Callable[[Dataset], Run]:
    """``tools.quantile``: sorts a copy and samples an interval between neighbours.

    It can fail on many equal items: with a million of D5 every interval near the quantile is empty and its
    probabilities become NaN. It gets 300,000 because it is slow, and there it answered.
    """

    def prepare(dataset: Dataset) -> Run:
        items = dataset.thinned(SORTED_ITEMS)

        def run() -> Answer:
            estimate = module.quantile(items, QUANTILE, epsilon=EPSILON, bounds=dataset.law.bounds)
            return Answer(float(estimate), lambda: items.nbytes)

        return run

    return prepare


KLL = "DataSketches KLL"
PYDP, OPENDP, OPENDP_COARSE, OPENDP_LISTED, DIFFPRIVLIB = (
    "PyDP quantile tree",
    "OpenDP, all candidates",
    "OpenDP, 1001 candidates",
    "OpenDP, 1001 candidates, a list",
    "diffprivlib",
)
SLOW = (OPENDP, OPENDP_LISTED, DIFFPRIVLIB)
# name, module, how it is run, most items, private, needs
PEERS: tuple[tuple[str, str, Callable[[Any], Callable[[Dataset], Run]], int, bool, str], ...] = (
    (KLL, "datasketches", datasketch("kll_doubles_sketch", np.float64), SKETCH_ITEMS, False, "nothing"),
    (f"{KLL} int32", "datasketches", datasketch("kll_ints_sketch", np.int32), SKETCH_ITEMS, False, "nothing"),
    ("DataSketches REQ", "datasketches", datasketch("req_floats_sketch", np.float32), SKETCH_ITEMS, False, "nothing"),
    ("DataSketches t-digest", "datasketches", datasketch("tdigest_double", np.float64), SKETCH_ITEMS, False, "nothing"),
    ("ddsketch", "ddsketch", ddsketch, LOOP_ITEMS, False, "nothing"),
    ("river Quantile", "river.stats", river, LOOP_ITEMS, False, "nothing"),
    (PYDP, "pydp.algorithms.quantile_tree", quantile_tree, LOOP_ITEMS, True, "bounds"),
    (OPENDP_COARSE, "opendp.prelude", opendp(COARSE), ARRAY_ITEMS, True, "candidates"),
    (OPENDP_LISTED, "opendp.prelude", opendp(COARSE, listed=True), LOOP_ITEMS, True, "candidates"),
    (OPENDP, "opendp.prelude", opendp(None), ARRAY_ITEMS, True, "candidates"),
    (DIFFPRIVLIB, "diffprivlib.tools", diffprivlib, SORTED_ITEMS, True, "bounds"),
)


def contenders() -> tuple[list[Contender], list[Absent]]:
    """The peers that import, and the others with the reason."""
    present, absent = [], []
    for name, module, run_with, most_items, private, needs in PEERS:
        try:
            prepare = run_with(importlib.import_module(module))
        except Exception as error:  # whatever goes wrong in a peer is its row's result, not this run's end
            absent.append(Absent(name, f"{type(error).__name__}: {error}".splitlines()[0]))
        else:
            repetitions = FEW if name in SLOW else MANY
            present.append(Contender(name, prepare, most_items, private, needs, repetitions))
    return present, absent
