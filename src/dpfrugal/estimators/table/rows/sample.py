"""A uniform random sample of rows that come once, of bounded size.

Every row gets a random priority of 64 bits; the sample is the rows of the smallest ones. So it does not depend on how
rows are cut into batches, and samples of parts make one of the whole. Priorities only choose: they protect nothing.
"""

import secrets
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.rows.native_rows import Rows

DRAWN: Final = 1 << 16  # priorities drawn at a time, so that they stay in the processor's cache


class Sample:
    """At most ``size`` of the rows added so far, each subset of that size equally likely: the ``rows``."""

    def __init__(self, size: int, generator: np.random.Generator | None = None) -> None:
        self._size = size
        self._generator = generator or np.random.Generator(np.random.SFC64(secrets.randbits(128)))
        self._rows: list[Rows] = []
        self._priorities: list[NDArray[np.uint64]] = []
        self._waiting = 0
        self._limit = np.uint64(2**64 - 1)  # no row whose priority is above it is in the sample

    def add(self, rows: Rows) -> None:
        """Consider more rows."""
        for first in range(0, rows.size, DRAWN):
            part = rows[first : first + DRAWN]
            priorities = self._generator.integers(0, 2**64, part.size, dtype=np.uint64)
            chosen = np.flatnonzero(priorities <= self._limit)
            self._take(part[chosen], priorities[chosen])

    def merge(self, other: "Sample") -> None:
        """Consider the rows of another sample, of rows that are not in this one; it must be as large."""
        for rows, priorities in zip(other._rows, other._priorities, strict=True):
            self._take(rows, priorities)

    def _take(self, rows: Rows, priorities: NDArray[np.uint64]) -> None:
        self._rows.append(rows)
        self._priorities.append(priorities)
        self._waiting += rows.size
        if self._waiting > 2 * self._size:
            self._shrink()

    def _shrink(self) -> None:
        """Keep the rows of the smallest priorities."""
        rows, priorities = np.concatenate(self._rows), np.concatenate(self._priorities)
        if rows.size > self._size:
            kept = np.argpartition(priorities, self._size - 1)[: self._size]
            rows, priorities = rows[kept], priorities[kept]
            self._limit = priorities.max()
        self._rows, self._priorities, self._waiting = [rows], [priorities], rows.size

    @property
    def rows(self) -> Rows:
        """The sampled rows, in no order."""
        if not self._rows:
            return np.zeros(0)
        self._shrink()
        return self._rows[0]


def held_sample(batches: Iterable[Rows], most_rows: int) -> Rows:
    """All rows of a stream, or ``most_rows`` of them if there are more, chosen uniformly; read once, in its memory."""
    sample = Sample(most_rows)
    for rows in batches:
        sample.add(rows)
    return sample.rows
