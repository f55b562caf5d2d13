"""A batch of keys and values, in whatever container, as arrays of codes and values.

Keys and values are chunked independently of each other; an array ends where a chunk of values does. No state changes
here, so that a batch can be refused before it has changed anything.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.inputs.numbers import chunks
from dpfrugal.kernels.threads import WORTH_A_THREAD, at_once
from dpfrugal.keys.index import UNDECLARED, Codes, KeyIndex
from dpfrugal.parameters import NanPolicy, NullKeys

# So many rows are looked up and walked at once: their codes take 4 MB.
ROWS_AT_ONCE: Final = 1 << 20
UNEVEN: Final = "values must hold as many items as their length says."


@dataclass(frozen=True)
class CodedRows:
    """Some rows: the codes of their keys, and their values; a row with a negative code moves no estimate."""

    codes: Codes
    values: NDArray[Any]


class KeyLookup:
    """The keys of a batch; they are looked up as their values are read."""

    def __init__(self, index: KeyIndex, keys: Any, null_keys: NullKeys, threads: int = 1) -> None:
        self._index, self._null_keys, self._threads = index, null_keys, threads
        self.parts = index.parts(keys)
        self._part, self._first = 0, 0
        self.size = sum(len(part) for part in self.parts)

    def check_length(self, values: Any) -> None:
        """Refuse values that are not as many as the keys."""
        if self.size != len(values):
            lengths = f"there are {self.size:,} keys and {len(values):,} values"
            raise ItemError(f"keys and values must be of the same length; {lengths}.")

    def next(self, count: int) -> Codes:
        """The codes of the next keys."""
        found = [np.empty(0, dtype=np.int32)]
        while count and self._part < len(self.parts):
            piece = self.parts[self._part][self._first : self._first + count]
            found.append(self._looked_up(piece))
            count, self._first = count - len(piece), self._first + len(piece)
            if self._first == len(self.parts[self._part]):
                self._part, self._first = self._part + 1, 0
        return found[1] if len(found) == 2 else np.concatenate(found)

    def _looked_up(self, piece: Any) -> Codes:
        """By several threads where looking up changes nothing, each its share of the rows."""
        if self._threads == 1 or len(piece) < WORTH_A_THREAD or not self._index.is_settled_for(piece):
            return self._index.codes(piece, self._null_keys)
        codes = np.empty(len(piece), dtype=np.int32)
        share = -(-len(piece) // self._threads)

        def look_up(k: int) -> None:
            codes[k * share : (k + 1) * share] = self._index.codes(piece[k * share : (k + 1) * share], self._null_keys)

        at_once(look_up, self._threads)
        return codes


class LookedUpCodes:
    """The same for keys that have been looked up already."""

    def __init__(self, codes: Codes) -> None:
        self._codes, self._first = codes, 0

    def next(self, count: int) -> Codes:
        """The next codes."""
        self._first += count
        return self._codes[self._first - count : self._first]


def coded_rows(keys: KeyLookup | LookedUpCodes, values: Any, nan_policy: NanPolicy) -> Iterator[CodedRows]:
    """The rows of a batch in order."""
    for chunk in chunks(values):
        for first in range(0, chunk.values.size, ROWS_AT_ONCE):
            part = slice(first, first + ROWS_AT_ONCE)
            items = chunk.values[part]
            codes = keys.next(items.size)
            if codes.size < items.size:
                raise ItemError(UNEVEN)
            missing = None if chunk.missing is None else chunk.missing[part]
            yield CodedRows(_present(codes, items, missing, nan_policy), items)


def _present(codes: Codes, values: NDArray[Any], missing: NDArray[np.bool_] | None, nan_policy: NanPolicy) -> Codes:
    """The codes, negative where the value is NaN or null."""
    absent = np.isnan(values) if values.dtype.kind == "f" else None
    if missing is not None:
        absent = missing if absent is None else absent | missing
    if absent is None or not absent.any():
        return codes
    if nan_policy == "raise":
        raise ItemError('The batch has NaN or null items; clean the data, or use nan_policy="omit".')
    return np.where(absent, np.int32(UNDECLARED), codes)


def sized(values: Any) -> Any:
    """``values``, or a list of them where they have no length."""
    try:
        len(values)
    except TypeError:
        if isinstance(values, Iterable) and not hasattr(values, "__len__"):
            return list(values)
        for _ in chunks(values):  # says what is wrong with them
            break
        raise ItemTypeError(f"values must be a batch of real numbers, not {type(values).__name__}.") from None
    return values
