"""The raw state of a ``KeyedDPFrugal1U``, for an engine that walks its rows elsewhere. Internal: never shown to a user.

An engine asks which keys there are and where their estimates stand, walks the rows beside the data, and hands back the
estimates and the number of rows. Noise is drawn by the estimator's own ``release`` only.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.estimators.keyed.state import KeyedState
from dpfrugal.keys.discovery import KeyDiscovery, in_order_of_keys
from dpfrugal.keys.index import KeyIndex


@dataclass(frozen=True)
class RawState:
    """Reads and changes the raw state of one estimator."""

    estimator: KeyedDPFrugal1U

    @property
    def index(self) -> KeyIndex:
        """Every key with its code, whether or not it is public."""
        return self.estimator._index

    @property
    def walks(self) -> KeyedState:
        """Every estimate, and what steers it."""
        return self.estimator._state

    def count_rows(self, rows: int) -> None:
        """Note rows whose estimates stay elsewhere."""
        clock = np.array([self.estimator.items + rows], dtype=np.int64)
        self.estimator._state = replace(self.walks, clock=clock)

    def take(self, rows: int, codes: NDArray[np.int32], points: NDArray[np.int64]) -> None:
        """Take in rows that were walked elsewhere: the estimates of these codes are at these grid points now."""
        estimates = self.walks.estimates.copy()
        estimates[codes] = points
        clock = np.array([self.estimator.items + rows], dtype=np.int64)
        self.estimator._state = replace(self.walks, estimates=estimates, clock=clock)

    def fresh_release(self) -> Any:
        """A release with noise of its own, also where no row has come since the last one."""
        self.estimator._last = None
        return self.estimator.release()

    def add_keys(self, keys: Any) -> NDArray[np.int32]:
        """Give each key a code and room, at the public start; return the codes."""
        codes = self.index.codes(keys)
        self._discovery.count(codes)  # makes room
        self.set_row_counts(codes[:0], np.empty(0, dtype=np.int64))
        self.estimator._state = self.walks.with_room(self.index.size, self.estimator._first_start)
        return codes

    def set_row_counts(self, codes: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
        """So many rows of each of these keys, and none of the others, count towards discovering it."""
        every = np.zeros_like(self._discovery.counts())
        every[codes] = counts
        self._discovery.restore(every, self._discovery.shown())

    def release_public(self, keys: Any, counts: NDArray[np.int64]) -> Any:
        """A release of the keys that were public before; afterwards the keys that it discovers are public too.

        ``counts`` are the rows since the last release of each of the other ``keys``. What is not public afterwards is
        forgotten.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        before, public = self.index.size, self.index.keys
        try:
            self.set_row_counts(self.add_keys(keys), counts)
            table = self.estimator.release()
            found = self._discovery.public
            names = self.index.keys.take(pa.array(in_order_of_keys(self.index.keys, found[found >= before])))
        finally:
            self.index.forget(before)
        self.add_public_keys(names)
        own = pc.is_in(table.column("key"), value_set=public) if before else pa.array([False] * len(table))
        self.estimator._last = table.filter(own)
        return self.estimator._last

    def add_public_keys(self, keys: Any) -> None:
        """Keep the public keys alone, and add these to them, at the public start."""
        before = self.index.size
        if len(keys):
            self.index.codes(keys)
        size = self.index.size
        self.estimator._state = self.walks.resized(before, size, self.estimator._first_start)
        self._discovery.restore(np.zeros(size, dtype=np.int64), np.ones(size, dtype=np.bool_))

    @property
    def _discovery(self) -> KeyDiscovery:
        discovery = self.estimator._discovery
        if discovery is None:
            raise TypeError("the keys of this estimator were declared")
        return discovery
