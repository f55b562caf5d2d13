"""Hash tables that give each key a code: 0, 1, 2 … in the order in which keys came.

One is for integers, one for strings of bytes, one for any other hashable objects. ``codes`` looks up a part of a batch;
with ``grow`` it adds the keys that are missing, so that a table is built and extended in one way. Several threads may
search; one adds.
"""

import secrets
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.kernels.bit_layout import PRIME
from dpfrugal.kernels.compiler import loading, read_only
from dpfrugal.kernels.find_keys import (
    UNKNOWN,
    add_integers,
    add_strings,
    find_integers,
    find_strings,
    find_viewed,
    look_up,
    place_strings,
)
from dpfrugal.kernels.threads import in_shares
from dpfrugal.keys.arrays import Strings, Views

Codes = NDArray[np.int32]
FEWEST: Final = 64
# A direct table may have this many places per key, and this many anyway.
SPARSEST: Final = 4
SMALL_SPAN: Final = 1 << 16
# Views are read buffer by buffer, of which there may be this many anyway, and one for so many rows.
MOST_BUFFERS: Final = 24
ROWS_PER_BUFFER: Final = 4096
NO_BYTES: Final = read_only(np.empty(0, dtype=np.uint8))


class StringTable:
    """Strings of bytes: 32 bytes per key in the table's slots, and the bytes themselves."""

    size: int

    def __init__(self) -> None:
        self.size = 0
        self._point, self._seal = np.uint64(1 + secrets.randbelow(PRIME - 1)), np.uint64(secrets.randbits(64))
        self._used = 0
        self._table = np.zeros((2 * FEWEST, 2), dtype=np.uint64)
        self._arena = np.empty(16 * FEWEST, dtype=np.uint8)
        self._ends = np.zeros(FEWEST + 1, dtype=np.int64)

    def codes(self, part: Strings | Views, *, grow: bool = False, threads: int = 1) -> Codes:
        """The code of every string of the part; keys are added from strings by offsets."""
        if isinstance(part, Views):
            if not grow:
                return self._of_views(part, threads)
            part = part.plain(slice(0, part.size))
        codes = np.empty(part.size, dtype=np.int32)
        where = (read_only(part.offsets), read_only(part.data))

        def find(rows: slice) -> None:
            offsets = where[0][rows.start : rows.stop + 1]
            find_strings(offsets, where[1], self._table, self._arena, self._point, self._seal, codes[rows])

        with loading(("key strings", part.offsets.dtype)), np.errstate(over="ignore"):
            in_shares(find, part.size, threads)
            row = 0 if grow else part.size
            while row < part.size:
                row, self.size, self._used = add_strings(
                    *where, self._table, self._arena, self._point, self._seal, codes, row,
                    self.size, self._used, self._ends,
                )  # fmt: skip
                if row < part.size:
                    self._make_room(part.longest)
        return codes

    def _of_views(self, part: Views, threads: int) -> Codes:
        codes = np.empty(part.size, dtype=np.int32)
        numbers, held = part.numbers, part.numbers.reshape(-1).view(np.uint8)

        def find(rows: slice) -> None:
            row, number, data = rows.start, -1, NO_BYTES
            # Strings lie in few buffers, one after another; where they are scattered, a copy is faster.
            for _ in range(MOST_BUFFERS + (rows.stop - rows.start) // ROWS_PER_BUFFER):
                row += find_viewed(
                    read_only(numbers[row : rows.stop]), read_only(held[16 * row :]), data, number,
                    self._table, self._arena, self._point, self._seal, codes[row : rows.stop],
                )  # fmt: skip
                if row == rows.stop:
                    return
                number = int(numbers[row, 2])
                data = read_only(part.buffer(number))
            codes[row : rows.stop] = self.codes(part.plain(slice(row, rows.stop)))

        with loading("key views"), np.errstate(over="ignore"):
            in_shares(find, part.size, threads)
        return codes

    def _make_room(self, longest: int) -> None:
        if 2 * (self.size + 1) > self._table.shape[0]:
            self._table = np.zeros((2 * self._table.shape[0], 2), dtype=np.uint64)
            place_strings(self._table, self._arena, self._ends, self.size, self._point, self._seal)
        if self.size + 1 >= self._ends.size:
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        if self._used + longest > self._arena.size:
            wider = np.empty(2 * self._arena.size + longest, dtype=np.uint8)
            wider[: self._used] = self._arena[: self._used]
            self._arena = wider

    def forget(self, size: int) -> None:
        """Keep the first keys only."""
        self.size, self._used = size, int(self._ends[size])
        self._table[:] = 0
        with np.errstate(over="ignore"):
            place_strings(self._table, self._arena, self._ends, self.size, self._point, self._seal)

    def settle(self) -> None:
        """No key will be added any more: keep no room for them."""
        self._arena, self._ends = self._arena[: self._used].copy(), self._ends[: self.size + 1].copy()

    @property
    def content(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Where each key ends (from 0 on), and the bytes of all."""
        return self._ends[: self.size + 1].copy(), self._arena[: self._used].copy()

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._table.nbytes + self._arena.nbytes + self._ends.nbytes


class IntegerTable:
    """Integers of 64 bits: by distance from the lowest where they are dense, otherwise hashed in 32 bytes per key."""

    size: int

    def __init__(self) -> None:
        self.size = 0
        self._seal = np.uint64(secrets.randbits(64))
        self._table = np.zeros((2 * FEWEST, 2), dtype=np.int64)
        self._values = np.empty(FEWEST, dtype=np.int64)
        self._direct: tuple[int, Codes] | None = None

    def codes(self, part: NDArray[Any], *, grow: bool = False, threads: int = 1) -> Codes:
        """The code of every integer of the part."""
        codes, keys = np.empty(part.size, dtype=np.int32), read_only(part)

        def find(rows: slice) -> None:
            find_integers(keys[rows], self._table, self._seal, codes[rows])

        with loading(("key integers", part.dtype)), np.errstate(over="ignore"):
            if self._direct is not None and not grow:
                look_up(keys, *self._direct, codes)
                return codes
            in_shares(find, part.size, threads)
            row = 0 if grow else part.size
            while row < part.size:
                row, self.size = add_integers(keys, self._table, self._seal, codes, row, self.size, self._values)
                if row < part.size:
                    self._make_room()
        return codes

    def _make_room(self) -> None:
        if self.size >= self._values.size:
            self._values = np.concatenate([self._values, np.empty_like(self._values)])
        if 2 * (self.size + 1) > self._table.shape[0]:
            self._place(2 * self._table.shape[0])

    def _place(self, slots: int) -> None:
        self._table = np.zeros((slots, 2), dtype=np.int64)
        codes, placed = np.full(self.size, UNKNOWN, dtype=np.int32), np.empty(self.size, dtype=np.int64)
        add_integers(read_only(self._values[: self.size]), self._table, self._seal, codes, 0, 0, placed)

    def forget(self, size: int) -> None:
        """Keep the first keys only."""
        self.size = size
        with np.errstate(over="ignore"):
            self._place(self._table.shape[0])

    def settle(self) -> None:
        """No key will be added any more: keys in a dense range are found without hashing."""
        values = self._values = self._values[: self.size].copy()
        lowest, highest = (int(values.min()), int(values.max())) if self.size else (0, 0)
        span = highest - lowest + 1
        if span <= max(SPARSEST * self.size, SMALL_SPAN):
            direct = np.full(span, UNKNOWN, dtype=np.int32)
            direct[values - lowest] = np.arange(self.size, dtype=np.int32)
            self._direct = (lowest, direct)
            self._table = np.zeros((2, 2), dtype=np.int64)

    @property
    def content(self) -> NDArray[np.int64]:
        """The integers, in the order of their codes."""
        return self._values[: self.size].copy()

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        return self._table.nbytes + self._values.nbytes + (self._direct[1].nbytes if self._direct else 0)


class ObjectTable:
    """Any hashable objects, one by one in a dictionary: a hundred times slower than the others."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}

    @property
    def size(self) -> int:
        """How many keys there are."""
        return len(self._codes)

    def codes(self, part: list[Any], *, grow: bool = False, threads: int = 1) -> Codes:
        """The code of every object of the part; in one thread."""
        if grow:
            for key in part:
                self._codes.setdefault(key, len(self._codes))
        return np.fromiter((self._codes.get(key, UNKNOWN) for key in part), dtype=np.int32, count=len(part))

    def settle(self) -> None:
        """No key will be added any more."""

    def forget(self, size: int) -> None:
        """Keep the first keys only."""
        self._codes = dict(list(self._codes.items())[:size])

    @property
    def content(self) -> list[Any]:
        """The objects, in the order of their codes."""
        return list(self._codes)

    @property
    def nbytes(self) -> int:
        """About the memory it takes, without the objects themselves."""
        return self._codes.__sizeof__()
