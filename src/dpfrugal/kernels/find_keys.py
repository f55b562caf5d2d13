"""The look-up of keys: hash tables with open addressing, for integers and for strings of bytes.

``keys.hash_tables`` owns the tables. What is found must equal a dictionary from keys to codes, 0, 1, 2 … in the order
in which keys came.

A string's hash is its length and its bytes, seven at a time, as a polynomial over the integers modulo 2^61 - 1, at a
secret point: two different strings of at most 7n bytes have the same hash at no more than n + 1 of 2^61 points, so
nobody who does not know the point can make keys collide. An integer's is SplitMix64's finaliser, keyed. A hash only
selects a slot: keys are equal if all their bytes are.

A slot has two words. Strings: the upper half of the hash with the code + 1 (0: empty), then the key's place in the
arena of all keys' bytes, with its length. Integers: the code + 1, then the integer. Rows are looked up in batches, each
stage for all rows of a batch before the next, and what the next stage reads is prefetched: with 100,000 strings that
is twice as fast as without.
"""

from typing import Any, Final

import numpy as np

from dpfrugal.kernels.bit_layout import LENGTH_BITS, LONGEST_KEY, PRIME
from dpfrugal.kernels.compiled_coins import mix64
from dpfrugal.kernels.compiler import cached, inlined
from dpfrugal.kernels.intrinsics import prefetch, product

ROWS: Final = 128
UNKNOWN: Final = -1
INLINE: Final = 12  # an Arrow view of so many bytes holds them itself

_PRIME = np.uint64(PRIME)
_0, _1, _2, _3, _4, _5, _6, _7, _8, _32 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 32))
_SEVEN_BYTES, _LOWER = np.uint64(2**56 - 1), np.uint64(2**32 - 1)
_16 = np.uint64(16)
_LENGTH_BITS, _LENGTHS = np.uint64(LENGTH_BITS), np.uint64(LONGEST_KEY)


@inlined
def byte_at(data: Any, place: Any) -> Any:
    """One byte, as a word."""
    return np.uint64(data[place])


@inlined
def half_at(data: Any, place: Any) -> Any:
    """Four bytes, lowest first, as a word: LLVM makes one load of it."""
    low = byte_at(data, place) | byte_at(data, place + _1) << _8
    return low | (byte_at(data, place + _2) | byte_at(data, place + _3) << _8) << (_8 + _8)


@inlined
def word_at(data: Any, place: Any) -> Any:
    """Eight bytes, lowest first: one load likewise."""
    return half_at(data, place) | half_at(data, place + _4) << _32


@inlined
def last_bytes(data: Any, place: Any, left: Any, length: Any) -> Any:
    """The last bytes of a string, of which ``left``, at most seven, are left; never a byte beside it is read."""
    if left == _0:
        return _0
    end = place + left
    if length >= _8:
        return word_at(data, end - _8) >> (_8 * (_8 - left))
    if left >= _4:
        return half_at(data, place) | (half_at(data, end - _4) << (_8 * (left - _4)))
    half = left >> _1
    middle, last = byte_at(data, place + half) << (_8 * half), byte_at(data, end - _1) << (_8 * (left - _1))
    return byte_at(data, place) | middle | last


@inlined
def string_hash(data: Any, place: Any, length: Any, point: Any, seal: Any) -> Any:
    """The polynomial at the secret point, then a bijection that spreads it over all 64 bits."""
    total, left = length, length
    while left >= _8:
        total = product(total, point) + (word_at(data, place) & _SEVEN_BYTES)
        total = total - _PRIME if total >= _PRIME else total
        place, left = place + _7, left - _7
    # Of an empty string too, whose sum stays 0: numba counts references to an array that only one branch reads, which
    # takes as long as the hash itself.
    total = product(total, point) + last_bytes(data, place, left, length)
    total = total - _PRIME if total >= _PRIME else total
    return mix64(total ^ seal)


@inlined
def same_bytes(one: Any, at_one: Any, other: Any, at_other: Any, length: Any) -> Any:
    """Whether two strings of one length are equal."""
    if length < _8:
        return last_bytes(one, at_one, length, length) == last_bytes(other, at_other, length, length)
    last, k = length - _8, _0
    while k < last:
        if word_at(one, at_one + k) != word_at(other, at_other + k):
            return False
        k += _8
    return word_at(one, at_one + last) == word_at(other, at_other + last)


@inlined
def row_of(offsets: Any, i: Any) -> Any:
    """Where row i's string begins, and its length."""
    first = np.uint64(offsets[i])
    return first, np.uint64(offsets[i + 1]) - first


@inlined
def find_located(
    rows: Any, places: Any, lengths: Any, data: Any, table: Any, arena: Any, point: Any, seal: Any, hashes: Any,
    order: Any, codes: Any,
) -> Any:  # fmt: skip
    """The codes of at most ``ROWS`` strings, of which row ``order[r]`` lies at ``places[r]`` of the data."""
    mask = np.uint64(table.shape[0] - 1)
    for r in range(rows):
        hashes[r] = string_hash(data, places[r], lengths[r], point, seal)
        prefetch(table, (hashes[r] & mask) * _2)
    for r in range(rows):
        slot = hashes[r] & mask
        while True:
            entry = table[slot, 0]
            if entry == _0:
                break
            if (entry ^ hashes[r]) >> _32 == _0 and (table[slot, 1] & _LENGTHS) == lengths[r]:
                own = table[slot, 1] >> _LENGTH_BITS
                prefetch(arena, own)
                prefetch(arena, own + lengths[r] - _1)  # a key may lie across two cache lines
                break
            slot = (slot + _1) & mask
        hashes[r] = (hashes[r] >> _32 << _32) | slot
    for r in range(rows):
        slot, code = hashes[r] & _LOWER, np.int32(UNKNOWN)
        while True:
            entry = table[slot, 0]
            if entry == _0:
                break
            likely = (entry ^ hashes[r]) >> _32 == _0 and (table[slot, 1] & _LENGTHS) == lengths[r]
            if likely and same_bytes(arena, table[slot, 1] >> _LENGTH_BITS, data, places[r], lengths[r]):
                code = np.int32((entry & _LOWER) - _1)
                break
            slot = (slot + _1) & mask
        codes[order[r]] = code


@cached
def find_strings(offsets: Any, data: Any, table: Any, arena: Any, point: Any, seal: Any, codes: Any) -> Any:
    """The code of every row's string, or ``UNKNOWN``."""
    places, lengths = np.empty(ROWS, np.uint64), np.empty(ROWS, np.uint64)
    hashes, order = np.empty(ROWS, np.uint64), np.arange(ROWS)
    for first in range(0, codes.shape[0], ROWS):
        rows = min(ROWS, codes.shape[0] - first)
        for r in range(rows):
            places[r], lengths[r] = row_of(offsets, first + r)
        find_located(rows, places, lengths, data, table, arena, point, seal, hashes, order, codes[first : first + rows])


@cached
def find_viewed(
    views: Any, held: Any, data: Any, buffer: Any, table: Any, arena: Any, point: Any, seal: Any, codes: Any
) -> Any:
    """``find_strings`` of Arrow's views: of a string's length and itself, or of its length, buffer and place there.

    ``held`` is the bytes of the views, and ``data`` those of one buffer. Ends at the first string of another buffer;
    returns how many rows were looked up.
    """
    places, lengths = np.empty((2, 2 * ROWS), np.uint64)
    hashes, order = np.empty(ROWS, np.uint64), np.empty(2 * ROWS, np.int64)
    first: Any = 0
    while first < codes.shape[0]:
        rows: Any = min(ROWS, codes.shape[0] - first)
        short: Any = 0
        long: Any = 0
        elsewhere: Any = 0
        for r in range(rows):
            length = views[first + r, 0]
            is_long = np.int64(length > INLINE)
            elsewhere += is_long & np.int64(views[first + r, 2] != buffer)
            order[short], order[ROWS + long] = r, r
            lengths[short], lengths[ROWS + long] = length, length
            places[short] = _16 * np.uint64(first + r) + _4
            places[ROWS + long] = np.uint64(views[first + r, 3])
            short, long = short + 1 - is_long, long + is_long
        if elsewhere:
            rows = 0
            while views[first + rows, 0] <= INLINE or views[first + rows, 2] == buffer:
                rows += 1
            short, long = np.searchsorted(order[:short], rows), np.searchsorted(order[ROWS : ROWS + long], rows)
        found = codes[first : first + rows]
        find_located(short, places, lengths, held, table, arena, point, seal, hashes, order, found)
        find_located(long, places[ROWS:], lengths[ROWS:], data, table, arena, point, seal, hashes, order[ROWS:], found)
        first += rows
        if elsewhere:
            break
    return first


@cached
def add_strings(
    offsets: Any, data: Any, table: Any, arena: Any, point: Any, seal: Any, codes: Any, first: Any, size: Any,
    used: Any, ends: Any,
) -> Any:  # fmt: skip
    """Give every unknown row from ``first`` on a code of its own, one per string; stop where there is no room.

    Returns the row to go on with, how many keys there are, and how many bytes of the arena they take. A string longer
    than ``LONGEST_KEY`` stays unknown.
    """
    mask = np.uint64(table.shape[0] - 1)
    for i in range(first, codes.shape[0]):
        if codes[i] != UNKNOWN:
            continue
        place, length = row_of(offsets, i)
        if length > _LENGTHS:
            continue
        value = string_hash(data, place, length, point, seal)
        slot = value & mask
        while table[slot, 0] != _0:
            likely = (table[slot, 0] ^ value) >> _32 == _0 and (table[slot, 1] & _LENGTHS) == length
            if likely and same_bytes(arena, table[slot, 1] >> _LENGTH_BITS, data, place, length):
                codes[i] = np.int32((table[slot, 0] & _LOWER) - _1)
                break
            slot = (slot + _1) & mask
        if codes[i] != UNKNOWN:
            continue
        if 2 * (size + 1) > table.shape[0] or size + 1 >= ends.shape[0] or used + np.int64(length) > arena.shape[0]:
            return i, size, used
        arena[used : used + np.int64(length)] = data[np.int64(place) : np.int64(place + length)]
        table[slot, 0] = (value >> _32 << _32) | np.uint64(size + 1)
        table[slot, 1] = (np.uint64(used) << _LENGTH_BITS) | length
        codes[i] = np.int32(size)
        size += 1
        used += np.int64(length)
        ends[size] = used
    return codes.shape[0], size, used


@cached
def place_strings(table: Any, arena: Any, ends: Any, size: Any, point: Any, seal: Any) -> Any:
    """Fill an empty table with the keys of the arena, which differ from each other."""
    mask = np.uint64(table.shape[0] - 1)
    for code in range(size):
        start, length = row_of(ends, code)
        value = string_hash(arena, start, length, point, seal)
        slot = value & mask
        while table[slot, 0] != _0:
            slot = (slot + _1) & mask
        table[slot, 0] = (value >> _32 << _32) | np.uint64(code + 1)
        table[slot, 1] = (start << _LENGTH_BITS) | length


@cached
def find_integers(keys: Any, table: Any, seal: Any, codes: Any) -> Any:
    """The code of every integer, or ``UNKNOWN``."""
    size, mask = codes.shape[0], np.uint64(table.shape[0] - 1)
    homes = np.empty(ROWS, np.uint64)
    for first in range(0, size, ROWS):
        rows = min(ROWS, size - first)
        for r in range(rows):
            home = mix64(np.uint64(keys[first + r]) ^ seal) & mask
            prefetch(table, home * _2)
            homes[r] = home
        for r in range(rows):
            slot, key = homes[r], np.int64(keys[first + r])
            while table[slot, 0] != 0 and table[slot, 1] != key:
                slot = (slot + _1) & mask
            codes[first + r] = np.int32(table[slot, 0] - 1)


@cached
def add_integers(keys: Any, table: Any, seal: Any, codes: Any, first: Any, size: Any, values: Any) -> Any:
    """Give every unknown integer a code of its own; stop where there is no room. Returns the row and the size."""
    mask = np.uint64(table.shape[0] - 1)
    for i in range(first, codes.shape[0]):
        if codes[i] != UNKNOWN:
            continue
        key = np.int64(keys[i])
        slot = mix64(np.uint64(key) ^ seal) & mask
        while table[slot, 0] != 0 and table[slot, 1] != key:
            slot = (slot + _1) & mask
        if table[slot, 0] == 0:
            if 2 * (size + 1) > table.shape[0] or size >= values.shape[0]:
                return i, size
            table[slot, 0], table[slot, 1] = size + 1, key
            values[size] = key
            size += 1
        codes[i] = np.int32(table[slot, 0] - 1)
    return codes.shape[0], size


@cached
def look_up(keys: Any, lowest: Any, direct: Any, codes: Any) -> Any:
    """The code of every integer of a dense range, by its distance from the lowest."""
    span = np.uint64(direct.shape[0])
    for i in range(codes.shape[0]):
        distance = np.uint64(np.int64(keys[i])) - np.uint64(np.int64(lowest))
        codes[i] = direct[distance] if distance < span else np.int32(UNKNOWN)


@cached
def count_codes(codes: Any, counts: Any) -> Any:
    """Add one to the count of every code that is not negative."""
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            counts[codes[i]] += 1
