"""Which items came before: a span that is delivered again is one item.

The identities of this window and of the last one are kept, as 64-bit hashes: the first ones, up to a fixed number. What
comes beyond it is not remembered, and each delivery of it counts; so an item more changes whether one other is
remembered, however items are cut into batches. Raw: nothing shows them.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.keys.index import KeyIndex

MOST_REMEMBERED: Final = 8_000_000  # 40 bytes each


class SeenItems:
    """The identities of one window, after those of the window before."""

    def __init__(self, before: "SeenItems | None" = None, most: int = MOST_REMEMBERED) -> None:
        self._index = KeyIndex()
        self._before: KeyIndex | None = None if before is None or not before._index.size else before._index
        self._most = most
        if self._before is not None:
            self._before.settle()  # nothing is added to it any more

    def new(self, identities: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Of each identity, whether it comes for the first time."""
        first = np.zeros(identities.size, dtype=np.bool_)
        first[np.unique(identities, return_index=True)[1]] = True
        known = self._index.size
        codes = self._index.codes(identities)
        if self._index.size > self._most:
            self._index.forget(self._most)
        if self._index.size == self._most:
            self._index.settle()
        forgotten = (codes < 0) | (codes >= self._most)
        new: NDArray[np.bool_] = forgotten | (first & (codes >= known))
        return new if self._before is None else new & (self._before.codes(identities) < 0)
