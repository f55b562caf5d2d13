"""The rows of a table as the mechanism needs them: how many there are, and those around a rank.

Everything here is raw. It stays in memory, is never stored, and nothing shows it.
"""

from dataclasses import dataclass, field

import numpy as np

from dpfrugal.estimators.table.codes import Codes


@dataclass(frozen=True)
class Window:
    """Some codes in ascending order, with the number of rows below each, and of rows up to it."""

    codes: Codes = field(repr=False)
    below: Codes = field(repr=False)
    upto: Codes = field(repr=False)


class OrderStatistics:
    """Rows by rank. It depends on the multiset of rows only: the order in which they came cannot matter."""

    def __init__(self, codes: Codes) -> None:
        self._sorted = np.sort(codes)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._sorted.size)

    def counts(self, code: int) -> tuple[int, int]:
        """How many rows are below a code, and how many up to it."""
        window = self._counted(np.array([code], dtype=np.int64))
        return int(window.below[0]), int(window.upto[0])

    def window(self, first: int, last: int, low: int | None, high: int | None) -> Window:
        """The distinct codes of the rows of ranks ``first`` to ``last``, as far as they lie from ``low`` to ``high``.

        The ends ``low`` and ``high`` belong to it, whether or not a row has them.
        """
        codes = self._sorted[max(first, 0) : max(last + 1, 0)]
        if low is not None:
            codes = codes[np.searchsorted(codes, low, "left") :]
        if high is not None:
            codes = codes[: np.searchsorted(codes, high, "right")]
        ends = [end for end in (low, high) if end is not None]
        return self._counted(np.unique(np.concatenate([codes, np.array(ends, dtype=np.int64)])))

    def _counted(self, codes: Codes) -> Window:
        below, upto = (np.searchsorted(self._sorted, codes, side) for side in ("left", "right"))
        return Window(codes, below, upto)
