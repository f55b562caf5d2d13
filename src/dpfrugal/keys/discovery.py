"""Key discovery: which keys may be shown, where nobody declared them.

Between two releases the rows of each key are counted. At a release every key that has rows and is not public yet gets
discrete Laplace noise on its count, and is made public if that reaches a threshold so high that a key which only one
person has is shown with a probability of at most δ. The counts then start again from nothing, and a public key stays
public. All releases together are (ε, δ)-DP in which keys they show (docs/proofs.md, Theorem 11); the values of the
public keys have a guarantee of their own, and the two add up.

Worked number: ε = 1, δ = 1e-6, one row per person: noise of scale 2, and a key is shown if its noisy count reaches 28.
With 50 rows since the last release it is missed with a probability below 1e-5.
"""

import copy
import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ParameterError
from dpfrugal.privacy import noise
from dpfrugal.privacy.guarantees import ApproxDP, PureDP, Sensitivity, checked_guarantee

# What the threshold allows for the rounding of its own arithmetic.
ROUNDING: Final = 1 - 1e-9
FEWEST: Final = 1024


def sensitivity_of_counts(max_items_per_person: int) -> Sensitivity:
    """How far one person can move the counts of all keys in all releases together (Theorem 11)."""
    return Sensitivity(l1=2 * max_items_per_person, l2_squared=4 * max_items_per_person**2)


def chance_to_pass(count: int, threshold: int, scale: float) -> float:
    """P[count + noise ≥ threshold] for discrete Laplace noise, where the count is below the threshold."""
    return math.exp(-(threshold - count) / scale) / (1 + math.exp(-1 / scale))


def threshold_for(cost: ApproxDP, max_items_per_person: int) -> int:
    """The smallest threshold that Theorem 11 allows.

    One person's keys are shown with the largest probability where all rows have one key in one release, or each row
    has a key or a release of its own.
    """
    scale = PureDP(epsilon=cost.epsilon).noise_scale(sensitivity_of_counts(max_items_per_person))
    most = min(cost.delta, -math.expm1(-1 / scale)) * ROUNDING

    def holds(threshold: int) -> bool:
        together = chance_to_pass(max_items_per_person, threshold, scale)
        apart = max_items_per_person * chance_to_pass(1, threshold, scale)
        return max(together, apart) <= most

    low = max_items_per_person  # too low: noise of 0 would show a key
    high = low + 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def checked_discovery(discover_keys: ApproxDP) -> ApproxDP:
    """``discover_keys``, if it is an (ε, δ)."""
    if checked_guarantee(discover_keys, ApproxDP, "discover_keys").calibration != "analytic":
        raise ParameterError("discover_keys takes no calibration: its noise is discrete Laplace.")
    return discover_keys


def declared_or_discovered(keys: Any, discover_keys: ApproxDP | None) -> None:
    """Refuse both, and neither."""
    if keys is not None and discover_keys is not None:
        raise ParameterError("keys and discover_keys exclude each other: keys are declared, or they are discovered.")
    if keys is None and discover_keys is None:
        raise ParameterError(
            "Either keys or discover_keys must be given: which keys there are is data too. Declare them, or say what "
            "discovering them may cost: discover_keys=ApproxDP(epsilon=..., delta=...)."
        )


class KeyDiscovery:
    """Counts of rows per key since the last release, and which keys are public. Counts are raw: never shown."""

    cost: ApproxDP
    threshold: int

    def __init__(self, cost: ApproxDP, max_items_per_person: int = 1) -> None:
        self.cost = checked_discovery(cost)
        self.threshold = threshold_for(cost, max_items_per_person)
        self._noise = (PureDP(epsilon=cost.epsilon), sensitivity_of_counts(max_items_per_person))
        self._counts = np.zeros(FEWEST, dtype=np.int64)
        self._public = np.zeros(FEWEST, dtype=np.bool_)

    def count(self, codes: NDArray[np.int32]) -> None:
        """Count a row for each code; negative ones count for nothing."""
        from dpfrugal.kernels.find_keys import count_codes

        while self._counts.size <= codes.max(initial=0):
            more = max(FEWEST, self._counts.size)
            self._counts = np.concatenate([self._counts, np.zeros(more, dtype=np.int64)])
            self._public = np.concatenate([self._public, np.zeros(more, dtype=np.bool_)])
        count_codes(codes, self._counts)

    def counts(self) -> NDArray[np.int64]:
        """A copy of the counts; for a checkpoint."""
        return self._counts.copy()

    def twin(self) -> "KeyDiscovery":
        """One that counts on its own: a refused batch is forgotten with it."""
        twin = copy.copy(self)
        twin._counts = self._counts.copy()
        return twin

    def shown(self) -> NDArray[np.bool_]:
        """Of every code, whether its key is public; for a checkpoint."""
        return self._public

    def restore(self, counts: NDArray[np.int64], shown: NDArray[np.bool_]) -> None:
        """Go on from these counts and what was shown: a checkpoint's, or those that an engine has counted."""
        if counts.dtype != np.int64 or shown.dtype != np.bool_ or counts.shape != shown.shape or counts.ndim != 1:
            raise ValueError("not the counts of a discovery")
        self._counts, self._public = counts, shown

    def found(self) -> NDArray[np.int64]:
        """Codes of keys that pass now, with fresh noise: call it once per release, then ``settle``."""
        candidates = np.flatnonzero((self._counts > 0) & ~self._public)
        noisy = noise.add_noise(self._counts[candidates].tolist(), *self._noise)
        return candidates[np.array(noisy, dtype=np.int64) >= self.threshold]

    def settle(self, found: NDArray[np.int64]) -> None:
        """Make these keys public, and count from nothing again."""
        public = self._public.copy()
        public[found] = True
        self._public, self._counts = public, np.zeros_like(self._counts)

    @property
    def public(self) -> NDArray[np.int64]:
        """Codes of the keys that are public; their order says in which order they came, so it must not be shown."""
        return np.flatnonzero(self._public)


def in_order_of_keys(keys: Any, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The codes in the order of their keys, which says nothing about the order they came in."""
    import pyarrow as pa
    import pyarrow.compute as pc

    shown = keys.take(pa.array(codes, pa.int64()))
    try:
        order = pc.sort_indices(shown)
    except pa.ArrowException:  # lists and the like have no order
        order = pc.sort_indices(pa.array([str(key) for key in shown.to_pylist()], pa.string()))
    places: NDArray[np.uint64] = order.to_numpy()
    return codes[places]
