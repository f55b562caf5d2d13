"""The walk of many keys over rows in the order of their words, compiled; see ``secret_words`` and ``walker``."""

from typing import Any, Final

import numpy as np

from dpfrugal.engines.spark.unordered_walk.secret_words import COIN_BITS, INITIAL, LENGTH
from dpfrugal.kernels.compiler import cached, inlined
from dpfrugal.kernels.walk_keys import move_key

I_0, I_1, I_2, I_3 = (np.uint64(part) for part in INITIAL)
LAST: Final = np.uint64(LENGTH)
FINISH: Final = np.uint64(0xFF)
COIN: Final = np.uint64((1 << COIN_BITS) - 1)
_13, _16, _17, _21, _32 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32))
_64: Final = np.uint64(64)


@inlined
def turned(number: Any, bits: Any) -> Any:
    """The number, rotated to the left."""
    return (number << bits) | (number >> (_64 - bits))


@inlined
def sip_round(a: Any, b: Any, c: Any, d: Any) -> Any:
    """One round of SipHash."""
    a, c = a + b, c + d
    b, d = turned(b, _13) ^ a, turned(d, _16) ^ c
    a = turned(a, _32)
    c, a = c + b, a + d
    b, d = turned(b, _17) ^ c, turned(d, _21) ^ a
    return a, b, turned(c, _32), d


@cached
def words_of(positions: Any, first: Any, second: Any) -> Any:
    """``words.word`` of each position."""
    words = np.empty(positions.shape[0], dtype=np.uint64)
    for i in range(positions.shape[0]):
        message = np.uint64(positions[i])
        a, b, c, d = I_0 ^ first, I_1 ^ second, I_2 ^ first, I_3 ^ second ^ message
        a, b, c, d = sip_round(a, b, c, d)
        a, b, c, d = sip_round(a, b, c, d)
        a, d = a ^ message, d ^ LAST
        a, b, c, d = sip_round(a, b, c, d)
        a, b, c, d = sip_round(a, b, c, d)
        a, c = a ^ LAST, c ^ FINISH
        for _ in range(4):
            a, b, c, d = sip_round(a, b, c, d)
        words[i] = a ^ b ^ c ^ d
    return words


@cached
def walk_rows(
    codes: Any, items: Any, scale: Any, words: Any, estimates: Any, steps: Any, up_from: Any, down_from: Any
) -> Any:
    """Move the estimates past all rows, in place; a negative code moves nothing."""
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            own = np.uint32(words[i] & COIN)
            move_key(codes[i], items[i], scale, own, estimates, steps, up_from, down_from)
