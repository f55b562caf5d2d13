"""Words: 64 random bits for every row of a table that lies on many machines. Half of them say when the row is walked.

Rows on a cluster have positions, but where a row is found may depend on other rows: Spark reads large files first, and
cuts and joins parts by their bytes. So the order of a walk must not be that of positions. A word is a hash of the
position under a secret key: to whoever does not know the key, words are independent of each other and of what rows
hold, whichever positions rows have. Rows are walked in the order of their words, and the lower half is the coin.

The hash is SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012), which is made for secret keys; the key comes from
the operating system, or from ``coin_seed``. With a seed that others know, words are a function of positions.
"""

from typing import Final

from dpfrugal.kernels.coins import MIX_1, WORD_MASK, mix64

INITIAL: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
LENGTH: Final = 8 << 56  # of the message, in bytes, as its last word
COIN_BITS: Final = 32


def word(key: int, position: int) -> int:
    """The word of the row at ``position``; the specification of ``words_of``.

    >>> hex(siphash(0x0706050403020100, 0x0F0E0D0C0B0A0908, 0x0706050403020100))  # the authors' own test vector
    '0x93f5f5799a932462'
    """
    return siphash(*siphash_key(key), position)


def siphash_key(key: int) -> tuple[int, int]:
    """The two halves of SipHash's key."""
    return key, mix64(key ^ MIX_1)


def siphash(first: int, second: int, message: int) -> int:
    """SipHash-2-4 of a message of eight bytes."""
    state = [part ^ (second if k % 2 else first) for k, part in enumerate(INITIAL)]
    for part in (message, LENGTH):
        state[3] ^= part
        state = _rounds(state, 2)
        state[0] ^= part
    state[2] ^= 0xFF
    state = _rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _rounds(state: list[int], count: int) -> list[int]:
    a, b, c, d = state
    for _ in range(count):
        a, c = (a + b) & WORD_MASK, (c + d) & WORD_MASK
        b, d = _turned(b, 13) ^ a, _turned(d, 16) ^ c
        a = _turned(a, 32)
        c, a = (c + b) & WORD_MASK, (a + d) & WORD_MASK
        b, d = _turned(b, 17) ^ c, _turned(d, 21) ^ a
        c = _turned(c, 32)
    return [a, b, c, d]


def _turned(number: int, bits: int) -> int:
    return ((number << bits) | (number >> (64 - bits))) & WORD_MASK
