"""Noise: the only source of it, and the only module that imports OpenDP.

``add_noise`` adds discrete Laplace or discrete Gaussian noise to integers with OpenDP's samplers, which draw from the
operating system's entropy and cannot be seeded (privacy rule 3). Before a sampler is used for the first time, OpenDP's
own privacy map for it must report no more than the guarantee promises (privacy rule 4). Noise is drawn when it is
needed, in one call for all values of a release. A call costs as much as nine draws, so work that needs a few values
many times draws them ``in_lots``, each as large as all before it, up to 64; what is left of a lot is dropped when that
work ends, and no other thread sees it.
OpenDP is imported at the first release, not before.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import PrivacyError
from dpfrugal.privacy.guarantees import Guarantee, PureDP, Sensitivity

# How many values of an array get their noise between two reports of progress: a tenth of a second.
PART: Final = 1 << 13

LOT: Final = 64
# OpenDP's integers end at ±2^63. Larger noise could reach that end, and must do so with the value already added.
LARGEST_IN_LOTS: Final = 2.0**40

Progress = Callable[[int, int], None]
_here = threading.local()


@dataclass
class _Lot:
    """Noise on zeros that was drawn at once and is not used yet."""

    numbers: list[int] = field(default_factory=list)
    drawn: int = 0  # in this lot and all before it


@contextmanager
def in_lots() -> Iterator[None]:
    """Within it, this thread draws the noise of a few values in lots: noise on zeros, each number used once."""
    _here.lots = {}
    try:
        yield
    finally:
        _here.lots = None


def add_noise(values: Sequence[int], guarantee: Guarantee, sensitivity: Sensitivity) -> list[int]:
    """``values`` plus fresh noise: a release of all of them together is covered by ``guarantee``."""
    lots: dict[tuple[Guarantee, Sensitivity], _Lot] | None = getattr(_here, "lots", None)
    if lots is None or len(values) > LOT:
        return measurement(guarantee, sensitivity)(list(values))
    lot = lots.get((guarantee, sensitivity))
    if lot is None:
        if guarantee.noise_scale(sensitivity) > LARGEST_IN_LOTS:
            return measurement(guarantee, sensitivity)(list(values))
        lot = lots[guarantee, sensitivity] = _Lot()
    missing = len(values) - len(lot.numbers)
    if missing > 0:
        more = max(missing, min(lot.drawn, LOT))
        lot.numbers.extend(measurement(guarantee, sensitivity)([0] * more))
        lot.drawn += more
    # A number leaves the lot before it is used, so that no interrupt can make it serve twice.
    return [value + lot.numbers.pop() for value in values]


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


@lru_cache(maxsize=1)
def load() -> None:
    """Load OpenDP now, by a draw for nobody: that takes a while, and not after a ledger has counted a release."""
    measurement(PureDP(epsilon=1.0), Sensitivity.of(1))([0])


@lru_cache(maxsize=1)
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
    sampler = guarantee.noise.sampler(opendp, integers, scale)
    if not guarantee.covers(sampler.map(guarantee.noise.distance(sensitivity)), sensitivity):
        raise PrivacyError(
            f"The noise of scale {scale:g} does not give {guarantee} by OpenDP's privacy map; nothing was released."
        )
    return cast(Callable[[list[int]], list[int]], sampler)
