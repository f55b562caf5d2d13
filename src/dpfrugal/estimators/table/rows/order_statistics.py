"""The rows of a table as the mechanism needs them: how many there are, and those around a rank.

Everything here is raw. It stays in memory, is never stored, and nothing shows it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpfrugal.estimators.table.base.codes import Codes


@dataclass(frozen=True)
class Window:
    """Some codes in ascending order, with the number of rows below each, and of rows up to it."""

    codes: Codes = field(repr=False)
    below: Codes = field(repr=False)
    upto: Codes = field(repr=False)


@dataclass(frozen=True)
class Reach:
    """Which ranks of n rows are looked at for a quantile: q·n ± (least + per_root·√n) and a little more. Public."""

    quantile: float
    least: float
    per_root: float

    def ranks(self, sizes: Codes) -> tuple[Codes, Codes]:
        """The first and the last rank in tables of so many rows."""
        middle, reach = self.quantile * sizes, self.least + self.per_root * np.sqrt(sizes)
        return (
            np.maximum(np.floor(middle - reach).astype(np.int64) - 2, 0),
            np.minimum(np.ceil(middle + reach).astype(np.int64) + 2, sizes - 1),
        )


class OrderStatistics(ABC):
    """Rows by rank. It depends on the multiset of rows only: the order in which they came cannot matter.

    With ``least`` and ``most``, which are public, rows beyond these codes count as these.
    """

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self._least, self._most = least, most

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def _ranked(self, first: int, last: int) -> Codes:
        """The distinct codes of the rows of ranks ``first`` to ``last``, both of which exist, before clipping."""

    @abstractmethod
    def _counted(self, codes: Codes) -> tuple[Codes, Codes]:
        """How many rows are below each of these distinct codes in ascending order, and up to it, before clipping."""

    def prepare(  # noqa: B027 - a hint may be ignored
        self, ranges: Sequence[tuple[int, int]], reaches: Sequence[Reach] = ()
    ) -> None:
        """Say which ranks, first and last, windows will be asked of, so that all are found at once.

        ``reaches`` say it publicly, for tables of any size.
        """

    def counts(self, code: int) -> tuple[int, int]:
        """How many rows are below a code, and how many up to it."""
        window = self._counts(np.array([code], dtype=np.int64))
        return int(window.below[0]), int(window.upto[0])

    def window(self, first: int, last: int, low: int | None, high: int | None) -> Window:
        """The distinct codes of the rows of ranks ``first`` to ``last``, as far as they lie from ``low`` to ``high``.

        The ends ``low`` and ``high`` belong to it, whether or not a row has them.
        """
        first, last = max(first, 0), min(last, self.rows - 1)
        if low is not None:
            first = max(first, self.counts(low)[0])
        if high is not None:
            last = min(last, self.counts(high)[1] - 1)
        codes = self._ranked(first, last) if first <= last else np.zeros(0, dtype=np.int64)
        if codes.size and (self._least is not None or self._most is not None):
            codes = np.clip(codes, self._least, self._most)
        ends = [end for end in (low, high) if end is not None]
        return self._counts(np.unique(np.concatenate([codes, np.array(ends, dtype=np.int64)])))

    def _counts(self, codes: Codes) -> Window:
        """The counts of clipped rows: none is below ``least``, and none is above ``most``."""
        inside = np.ones(codes.size, dtype=np.bool_)
        if self._least is not None:
            inside &= codes >= self._least
        if self._most is not None:
            inside &= codes <= self._most
        below, upto = np.zeros(codes.size, dtype=np.int64), np.zeros(codes.size, dtype=np.int64)
        if inside.any():
            below[inside], upto[inside] = self._counted(codes[inside])
        if self._least is not None:
            below[codes <= self._least] = 0
        if self._most is not None:
            below[codes > self._most] = upto[codes >= self._most] = self.rows
        return Window(codes, below, upto)


class SortedRows(OrderStatistics):
    """Rows that are few enough to be sorted; the definition of what all others must answer."""

    def __init__(self, codes: Codes, least: int | None = None, most: int | None = None) -> None:
        super().__init__(least, most)
        self._sorted = np.sort(codes)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._sorted.size)

    def _ranked(self, first: int, last: int) -> Codes:
        return np.unique(self._sorted[first : last + 1])

    def _counted(self, codes: Codes) -> tuple[Codes, Codes]:
        return np.searchsorted(self._sorted, codes, "left"), np.searchsorted(self._sorted, codes, "right")
