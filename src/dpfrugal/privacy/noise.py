"""Noise: the only source of it, and the only module that imports OpenDP.

``add_noise`` adds discrete Laplace or discrete Gaussian noise to integers with OpenDP's samplers, which draw
from the operating system's entropy and cannot be seeded (privacy rule 3). Before a sampler is used for the
first time, OpenDP's own privacy map for it must report no more than the guarantee promises (privacy rule 4).
OpenDP is imported at the first release, not before.
"""

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import PrivacyError
from dpfrugal.privacy.guarantees import Guarantee, Sensitivity

# A call of OpenDP costs as much as drawing twenty numbers, so a few values take theirs from a stock. A stock that is in
# use grows with it. A thread refills it, lot by lot: OpenDP draws without holding up Python. The thread waits a while
# for more to do, because starting one can take milliseconds.
FEW: Final = 64
STOCK: Final = 1024
IDLE_SECONDS: Final = 1.0
# How many values of an array get their noise between two reports of progress: a tenth of a second.
PART: Final = 1 << 13
# OpenDP's integers end at ±2^63. Larger noise could reach that end, and must do so with the value already added.
LARGEST_STOCKED: Final = 2.0**40

Progress = Callable[[int, int], None]


@dataclass
class Stock:
    """Noise of one kind that has never been used: what the measurement adds to zeros is what it adds to anything."""

    draw: Callable[[list[int]], list[int]]
    numbers: list[int] = field(default_factory=list)
    taken: int = 0
    ordered: bool = False

    @property
    def wanting(self) -> bool:
        """Whether less than half of what it should hold is left."""
        return self.taken > FEW and len(self.numbers) < min(self.taken, STOCK) // 2


_stocks: dict[tuple[Guarantee, Sensitivity], Stock | None] = {}
_lock = threading.Lock()
_orders: SimpleQueue[Stock | None] = SimpleQueue()
_worker: threading.Thread | None = None
_process = os.getpid()


def add_noise(values: Sequence[int], guarantee: Guarantee, sensitivity: Sensitivity) -> list[int]:
    """``values`` plus fresh noise: a release of all of them together is covered by ``guarantee``."""
    if os.getpid() != _process:  # a fork from C runs no hooks
        _forget_stocks()
    try:
        stock = _stocks[guarantee, sensitivity]
    except KeyError:
        stock = _new_stock(guarantee, sensitivity)
    if stock is None or len(values) > FEW:
        return measurement(guarantee, sensitivity)(list(values))
    return [value + draw for value, draw in zip(values, drawn(len(values), stock), strict=True)]


def add_noise_to_many(
    values: NDArray[np.int64], guarantee: Guarantee, sensitivity: Sensitivity, progress: Progress | None = None
) -> NDArray[np.int64]:
    """``add_noise`` for an array: part by part, and ``progress`` is told how many values of how many are done.

    The noise of each value is independent of all others, so the parts are one vector of Theorems 5 and 7.
    """
    noisy = np.empty_like(values)
    for first in range(0, values.size, PART):
        part = slice(first, first + PART)
        noisy[part] = add_noise(values[part].tolist(), guarantee, sensitivity)
        if progress is not None:
            progress(min(first + PART, values.size), values.size)
    return noisy


def _new_stock(guarantee: Guarantee, sensitivity: Sensitivity) -> Stock | None:
    """None where the noise is so large that it must go through the measurement with its value."""
    stocked = guarantee.noise_scale(sensitivity) <= LARGEST_STOCKED
    return _stocks.setdefault((guarantee, sensitivity), Stock(measurement(guarantee, sensitivity)) if stocked else None)


def drawn(count: int, stock: Stock) -> list[int]:
    """Numbers from a stock.

    A number leaves the stock before it is looked at, so that no interrupt can make it serve twice.
    """
    with _lock:
        if len(stock.numbers) < count:
            stock.numbers.extend(stock.draw([0] * FEW))
        taken = [stock.numbers.pop() for _ in range(count)]
        stock.taken += count
        if stock.wanting and (_worker is None or not stock.ordered):
            _order(stock)
    return taken


def _order(stock: Stock) -> None:
    """Have a stock refilled; the lock is held."""
    global _worker
    try:
        if _worker is None:
            worker = threading.Thread(target=_refill, args=(_orders,), name="dpfrugal-noise", daemon=True)
            worker.start()
            _worker = worker
    except RuntimeError:  # no more threads, or the interpreter is ending: whoever needs numbers draws them
        return
    stock.ordered = True
    _orders.put(stock)


def _refill(orders: "SimpleQueue[Stock | None]") -> None:
    global _worker
    while True:
        try:
            stock = orders.get(timeout=IDLE_SECONDS)
        except Empty:
            with _lock:
                if orders.empty():
                    _worker = None
                    return
            continue
        if stock is None:
            return
        try:
            while stock.ordered:
                numbers = stock.draw([0] * FEW)
                with _lock:
                    stock.numbers.extend(numbers)
                    stock.ordered = len(stock.numbers) < min(stock.taken, STOCK)
        finally:
            stock.ordered = False


def _end_worker() -> None:
    """Before a fork, as a process with one thread forks more safely; and before the interpreter ends."""
    global _worker
    worker = _worker
    if worker is not None:
        _orders.put(None)
        worker.join(timeout=1.0)
        _worker = None


def _forget_stocks() -> None:
    """In a forked process: the parent will use the same numbers."""
    global _stocks, _lock, _orders, _worker, _process
    theirs, _stocks = _stocks, {}
    _lock, _orders, _worker = threading.Lock(), SimpleQueue(), None
    for stock in theirs.values():
        if stock is not None:
            stock.numbers.clear()
    _process = os.getpid()  # last: from here on no thread looks again


atexit.register(_end_worker)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_end_worker, after_in_child=_forget_stocks)


def _opendp() -> Any:
    """The parts of OpenDP that are used: its prelude would load scikit-learn and polars where they are installed."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    parts = (atom_domain, vector_domain, make_gaussian, make_laplace, l1_distance, l2_distance, enable_features)
    return SimpleNamespace(**{part.__name__: part for part in parts})


@lru_cache(maxsize=64)
def measurement(guarantee: Guarantee, sensitivity: Sensitivity) -> Callable[[list[int]], list[int]]:
    """OpenDP's measurement for a vector of integers, checked against the promise by its own privacy map."""
    opendp = _opendp()
    opendp.enable_features("contrib")
    scale = guarantee.noise_scale(sensitivity)
    integers = opendp.vector_domain(opendp.atom_domain(T="i64"))
    if guarantee.noise == "laplace":
        sampler = opendp.make_laplace(integers, opendp.l1_distance(T="i64"), scale=scale)
        reported = sampler.map(sensitivity.l1)
    else:
        sampler = opendp.make_gaussian(integers, opendp.l2_distance(T="f64"), scale=scale)
        reported = sampler.map(sensitivity.l2)
    if not guarantee.covers(reported, sensitivity):
        raise PrivacyError(
            f"The noise of scale {scale:g} does not give {guarantee} by OpenDP's privacy map; nothing was released."
        )
    return cast(Callable[[list[int]], list[int]], sampler)
