"""The items of a window that are held: all of them, or a uniform sample of bounded size. Raw: nothing shows them.

Every item gets a random priority of 32 bits by its position. Where more than ``hold`` items have come, those of the
smallest priorities are held, and of equal ones those that came first. So the sample does not depend on how a stream is
cut into batches, and two samples make that of both windows (``merge``). With ``per_group`` this is done for each group
by itself. With ``per_person`` only so many items of each person may be held, those of that person's smallest
priorities: the others could not count, and must not take other people's places. Priorities only choose, they protect
nothing.

Worked number: a code, a group and a priority are 16 bytes an item; 12 without groups.
"""

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.table.base.codes import Codes

Priorities = NDArray[np.uint32]
Groups = NDArray[np.int32]
Limits = NDArray[np.int64]
Columns = tuple[NDArray[Any], ...]
NO_LIMIT: Final = 1 << 32  # above every priority
# Short batches are gathered in blocks of so many items.
BLOCK: Final = 1 << 16
# So many items more than are held may wait until the sample is taken again: a quarter, but at least a block.
WAITING: Final = 4


class HeldItems:
    """At most ``hold`` items (None: all), or at most so many of each group; ``columns`` are those beside the code."""

    def __init__(
        self,
        hold: int | None,
        columns: tuple[str, ...] = (),
        *,
        per_group: bool = False,
        per_person: int | None = None,
    ) -> None:
        self.hold, self.per_group, self.per_person = hold, per_group, per_person
        self._names = ("codes", *columns, "priorities")
        self._dtypes = [np.dtype(np.int64), *(np.dtype(np.int32) for _ in columns), np.dtype(np.uint32)]
        self._generator = np.random.Generator(np.random.SFC64(int.from_bytes(os.urandom(16), "little")))
        self._limit = NO_LIMIT  # items whose priority is not below it are not held
        self._limits = np.full(0, NO_LIMIT, dtype=np.int64)  # the same for each group
        self._blocks: list[Columns] = []
        self._open = tuple(np.empty(0, dtype=dtype) for dtype in self._dtypes)
        self._filled = 0  # places of the open block
        self._waiting = self._sampled = 0  # items in all blocks; and after the sample was taken last
        self._new = False  # whether an item has come since

    @property
    def names(self) -> tuple[str, ...]:
        """What is known of each item: its code, its priority last, and what stands between them."""
        return self._names

    @property
    def size(self) -> int:
        """How many items are held, with those that wait for the sample to be taken again."""
        return self._waiting

    def priorities(self, items: int) -> Priorities:
        """Those of the next items; the same ones however the items are cut."""
        return self._generator.integers(0, NO_LIMIT, items, dtype=np.uint32)

    def add(self, codes: Codes, priorities: Priorities, **columns: Groups) -> None:
        """Take in items with their priorities, and with their groups or persons where there are any."""
        parts: Columns = (codes, *(columns[name] for name in self._names[1:-1]), priorities)
        below = self._below(parts)
        if below is not None:
            parts = tuple(part[below] for part in parts)
        size = parts[0].size
        self._waiting, self._new = self._waiting + size, True
        if size >= BLOCK // 4:
            self._close_block()
            # What was not chosen anew belongs to the caller, who may change it.
            self._blocks.append(parts if below is not None else tuple(part.copy() for part in parts))
        elif size:
            if not self._open[0].size or self._filled + size > self._open[0].size:
                self._close_block()
                self._open = tuple(np.empty(BLOCK, dtype=dtype) for dtype in self._dtypes)
            for column, part in zip(self._open, parts, strict=True):
                column[self._filled : self._filled + size] = part
            self._filled += size
        most = self._sampled if self.per_group and self.hold is not None else self.hold
        if most is not None and self._waiting > most + max(most // WAITING, BLOCK):
            self.shrink()

    def merge(self, other: "HeldItems") -> None:
        """Take in what another window holds: then this one holds what it would, had all those items come here next."""
        self.add(**other.arrays())

    @property
    def limits(self) -> tuple[int, Limits]:
        """The limit of all priorities, and that of each group."""
        self.shrink()
        return self._limit, self._limits

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The codes, what stands beside them, and the priorities of the items that are held, in the order they came."""
        self.shrink()
        return dict(zip(self._names, self._gathered(), strict=True))

    def replace(self, arrays: Mapping[str, NDArray[Any]], limit: int, limits: Limits) -> None:
        """Hold these items instead; what ``arrays`` and ``limits`` gave."""
        parts = tuple(np.ascontiguousarray(arrays[name]) for name in self._names)
        if any(part.dtype != dtype or part.ndim != 1 for part, dtype in zip(parts, self._dtypes, strict=True)):
            raise ValueError("not the items of a window")
        if len({part.size for part in parts}) != 1 or limits.dtype != np.int64 or limits.ndim != 1:
            raise ValueError("not the items of a window")
        self._limit, self._limits = limit, limits
        full = limit < NO_LIMIT or bool((limits < NO_LIMIT).any())
        if full and (self.hold is None or parts[0].size < self.hold):
            raise ValueError("items that the window does not hold")
        self._keep(parts)

    def column(self, name: str) -> NDArray[Any]:
        """One of ``arrays``."""
        return self.arrays()[name]

    def relabel(self, name: str, here: Groups) -> None:
        """Give groups or persons new codes: ``here`` has one for each that is held."""
        self.recode(name, here.take(self.column(name)))
        if name == "groups" and self._limits.size:
            limits = _room(np.empty(0, np.int64), int(here.max(initial=-1)) + 1)
            old = self._limits[: here.size]
            limits[here[: old.size]] = old
            self._limits = limits

    def recode(self, name: str, new: NDArray[Any]) -> None:
        """Replace a column of the items that are held, in the order of ``arrays``."""
        arrays = self.arrays()
        self._keep(tuple(new if each == name else arrays[each] for each in self._names))

    def shrink(self) -> None:
        """Hold the sample only, and nothing that waits."""
        if self.hold is None or not self._new:
            return
        self._new = False
        if self.per_person is not None:
            whole = self._gathered()
            chosen, _ = _bottom_of_groups(self.per_person, whole[-2], whole[-1], self._limits[:0])
            self._keep(tuple(part[chosen] for part in whole))
        if self._waiting <= self.hold:
            return
        whole = self._gathered()
        if self.per_group:
            chosen, self._limits = _bottom_of_groups(self.hold, whole[1], whole[-1], self._limits)
        else:
            self._limit = int(np.partition(whole[-1], self.hold - 1)[self.hold - 1])
            chosen = whole[-1] <= self._limit
            ties = np.flatnonzero(whole[-1] == self._limit)
            chosen[ties[self.hold - chosen.sum() + ties.size :]] = False
        self._keep(tuple(part[chosen] for part in whole))

    def _below(self, parts: Columns) -> NDArray[np.bool_] | None:
        """Which of some new items may belong to the sample; None where all may. Of equal ones the first is held."""
        if self.per_group and (self._limits < NO_LIMIT).any():
            self._limits = _room(self._limits, int(parts[1].max(initial=-1)) + 1)
            return np.asarray(parts[-1] < self._limits[parts[1]])
        return None if self._limit == NO_LIMIT else np.asarray(parts[-1] < np.uint32(self._limit))

    def _close_block(self) -> None:
        if self._filled:
            self._blocks.append(tuple(column[: self._filled] for column in self._open))
            self._open, self._filled = tuple(column[self._filled :] for column in self._open), 0

    def _gathered(self) -> Columns:
        self._close_block()
        if len(self._blocks) != 1:
            empty = tuple(np.empty(0, dtype=dtype) for dtype in self._dtypes)
            columns = zip(empty, *self._blocks, strict=True)
            self._blocks = [tuple(np.concatenate(column) for column in columns)]
        return self._blocks[0]

    def _keep(self, parts: Columns) -> None:
        self._open = tuple(np.empty(0, dtype=dtype) for dtype in self._dtypes)
        self._blocks, self._filled = [parts], 0
        self._waiting = self._sampled = parts[0].size


def _bottom_of_groups(
    hold: int, groups: Groups, priorities: Priorities, limits: Limits
) -> tuple[NDArray[np.bool_], Limits]:
    """Which items are held where each group holds so many, and the largest priority of each group that is full."""
    counts = np.bincount(groups, minlength=limits.size)
    limits = _room(limits, counts.size)
    chosen = np.ones(groups.size, dtype=np.bool_)
    large = np.flatnonzero(counts > hold)
    if large.size:
        some = np.flatnonzero((counts > hold)[groups])
        order = some[np.argsort(groups[some].astype(np.uint64) << np.uint64(32) | priorities[some], kind="stable")]
        first = np.cumsum(counts[large]) - counts[large]  # of each of these groups in that order
        limits[large] = priorities[order[first + hold - 1]]
        chosen[order[np.arange(order.size) - np.repeat(first, counts[large]) >= hold]] = False
    return chosen, limits


def _room(limits: Limits, groups: int) -> Limits:
    """The limits of at least so many groups."""
    missing = np.full(max(0, groups - limits.size), NO_LIMIT, dtype=np.int64)
    return np.concatenate([limits, missing])
