"""The estimators as an audit sees them: created for every run, fed with items, and observed from outside."""

from collections.abc import Callable, Sequence
from typing import Any

from dpfrugal.audit.neighbour_search import Case, Numbers, Periods
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
from dpfrugal.privacy.guarantees import Guarantee

FAR_BELOW, FAR_ABOVE = -1e6, 1e6
COIN_SEEDS = (0, 1, 2)
KEYS = ("a", "b")
MOST_NUMBERS = 64

Make = Callable[..., Any]


def walk_cases(make: Make = DPFrugal1U, quantiles: Sequence[float] = (0.5, 0.9)) -> list[Case]:
    """The walk with known coins: the guarantee holds for every coin sequence, so the attacker may know it."""
    items = (FAR_BELOW, 0.0, FAR_ABOVE, float("nan"))
    return [Case(f"q={q:g}, coin_seed={seed}", _walk(make, q, seed), items) for q in quantiles for seed in COIN_SEEDS]


def _walk(make: Make, quantile: float, coin_seed: int) -> Callable[[Guarantee, Periods], Numbers]:
    def run(guarantee: Guarantee, periods: Periods) -> Numbers:
        estimator = make(quantile, guarantee, nan_policy="omit", coin_seed=coin_seed)
        numbers = []
        for items in periods:
            estimator.update_many(items)
            numbers.append(estimator.release().values)
        return numbers

    return run


def keyed_cases(make: Make = KeyedDPFrugal1U) -> list[Case]:
    """The walk of two keys: a replaced row may have another value, another key, or an undeclared key."""
    values = (FAR_BELOW, FAR_ABOVE)
    rows = (*((key, value) for key in KEYS for value in values), (KEYS[0], float("nan")), ("undeclared", FAR_ABOVE))
    return [Case(f"q=0.5, two keys, coin_seed={seed}", _keyed(make, seed), rows, longest=16) for seed in COIN_SEEDS[:2]]


def _keyed(make: Make, coin_seed: int) -> Callable[[Guarantee, Periods], Numbers]:
    def run(guarantee: Guarantee, periods: Periods) -> Numbers:
        estimator = make(0.5, guarantee, keys=list(KEYS), nan_policy="omit", coin_seed=coin_seed)
        numbers = []
        for rows in periods:
            estimator.update_many([key for key, _ in rows], [value for _, value in rows])
            numbers.append(estimator.release()["value"].to_pylist())
        return numbers

    return run


def segment_cases(make: Make = PrivateQuantile) -> list[Case]:
    """PrivateQuantile with a segment closed after every period; the attacker sees noisy counts and the next edges."""
    items = (-3.0, 1e-6, 3.0, 1e12)
    return [
        Case("q=0.5", _segments(make, "raise"), items, longest=0),
        Case("q=0.5, items may be missing", _segments(make, "omit"), (3.0, 1e12, float("nan")), longest=0),
    ]


def _segments(make: Make, nan_policy: str) -> Callable[[Guarantee, Periods], Numbers]:
    def run(guarantee: Guarantee, periods: Periods) -> Numbers:
        estimator = make(0.5, guarantee, nan_policy=nan_policy)
        numbers = []
        for items in periods:
            estimator.update_many(items)
            estimator.release(close=True)
            numbers.append(_public(estimator))
        return numbers

    return run


def _public(estimator: PrivateQuantile) -> list[float]:
    """All that Theorem 9 calls the transcript: the noisy counts that are kept, and the edges planned from them."""
    edges = estimator.edges
    row = [float(estimator.segment_length), float(edges.size), *edges[[0, edges.size // 2, -1]].tolist()]
    row += estimator.noisy_counts
    return (row + [0.0] * MOST_NUMBERS)[:MOST_NUMBERS]
