"""Coins: one per item position, the same for every way of cutting a stream.

A coin is an integer in [0, 2^32); the paper's ``random(0, 1)`` is ``(coin + 1/2) / 2^32``, strictly between 0
and 1. It depends on the key and on the item's position only, never on the item (privacy rule 3), so it can be
computed anywhere, in any order.

Worked number: at q = 0.99 a coin allows a step up when ``coin >= 42_949_673``, i.e. with probability
0.99 to within 2^-33, and a step down when ``coin >= 4_252_017_623``.

The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) read at a counter: word ``w`` is
``mix64(key + w * GAMMA)``, a bijection of a 64-bit counter that steps by an odd constant, so words repeat
only after 2^64 of them. A word gives two coins, so coins repeat only after 2^65 items. Within a block of 64
positions the low halves of 32 words come first, then their high halves: contiguous for a vectorised loop.
``make coins`` runs the statistical check; docs/coins.md keeps its result.
"""

import secrets
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.parameters import integer

COIN_BITS: Final = 32
COINS: Final = 1 << COIN_BITS
BLOCK: Final = 64
HALF: Final = BLOCK // 2

GAMMA: Final = 0x9E3779B97F4A7C15
MIX_1: Final = 0xBF58476D1CE4E5B9
MIX_2: Final = 0x94D049BB133111EB
WORD_MASK: Final = (1 << 64) - 1


def mix64(word: int) -> int:
    """SplitMix64's finaliser: a bijection of the 64-bit integers."""
    word = ((word ^ (word >> 30)) * MIX_1) & WORD_MASK
    word = ((word ^ (word >> 27)) * MIX_2) & WORD_MASK
    return word ^ (word >> 31)


def coin(key: int, position: int) -> int:
    """The coin of the item at ``position`` (0 for the first item of the stream)."""
    block, lane = divmod(position, BLOCK)
    word = mix64((key + (block * HALF + lane % HALF) * GAMMA) & WORD_MASK)
    return word >> COIN_BITS if lane >= HALF else word & (COINS - 1)


def coins(key: int, position: int, count: int) -> NDArray[np.uint32]:
    """The coins of ``count`` consecutive items, by numpy."""
    blocks = np.arange(position // BLOCK, -(-(position + count) // BLOCK), dtype=np.uint64)[:, None]
    lanes = np.arange(HALF, dtype=np.uint64)
    with np.errstate(over="ignore"):
        words: NDArray[np.uint64] = np.uint64(key) + (blocks * np.uint64(HALF) + lanes) * np.uint64(GAMMA)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(MIX_1)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(MIX_2)
        words ^= words >> np.uint64(31)
    halves = words & np.uint64(COINS - 1), words >> np.uint64(COIN_BITS)
    lane = position % BLOCK
    return np.concatenate(halves, axis=1).astype(np.uint32).ravel()[lane : lane + count]


def thresholds(quantile: float) -> tuple[int, int]:
    """The smallest coins that allow a step up and a step down.

    ``(coin + 1/2) / 2^32 > 1 - q`` is the paper's test for a step up; solved for the integer ``coin`` in exact
    arithmetic. A threshold never exceeds the largest coin, so no direction is ever closed.
    """
    q = Fraction(quantile)

    def smallest_above(bound: Fraction) -> int:
        return min(int((bound * COINS - Fraction(1, 2)) // 1) + 1, COINS - 1)

    return smallest_above(1 - q), smallest_above(q)


def key_from_seed(coin_seed: int | None) -> int:
    """The generator's key: from the caller's seed, or from the operating system's entropy."""
    if coin_seed is None:
        return secrets.randbits(64)
    coin_seed = integer("coin_seed", coin_seed, 0, WORD_MASK, shown_high="2**64 - 1")
    # Seeds 0, 1, 2, … must not give keys a few GAMMAs apart: those streams would be shifts of each other.
    return mix64(mix64(coin_seed) ^ MIX_1)
