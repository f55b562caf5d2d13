"""Tests of uniform 32-bit coins, each reduced to a two-sided p-value.

``stream`` looks at one stream: bytes, bits, pairs at a distance, runs, gaps, birthday spacings. ``neighbours`` looks
at streams of neighbouring seeds beside each other. Coins are made chunk by chunk, so memory does not grow with them.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpfrugal.kernels import coins

Fill = Callable[[int, NDArray[np.uint32]], None]

CHUNK = 1 << 20
# 1 to 3 for neighbours, 32 for the two halves of a word, 64 for the same lane of the next block, and around them.
LAGS = (1, 2, 3, 31, 32, 33, 63, 64, 65, 128)
LONGEST_RUN = 24
# Birthday spacings: 4,096 birthdays in 2^32 days give 4 equal spacings on average. Poisson's law holds well enough
# while experiments × 4 stays below 2^(32·5/12) = 10,321 (L'Ecuyer and Simard, 2001).
BIRTHDAYS, EXPERIMENTS, MEAN_REPEATS = 4096, 2048, 4.0


@dataclass(frozen=True)
class Test:
    """One test's result."""

    family: str
    name: str
    p_value: float


def two_sided(upper_tail: float) -> float:
    """The p-value of a statistic that may be too large or too small."""
    return 2 * min(upper_tail, 1 - upper_tail)


def chi_square(observed: NDArray[np.int64], expected: NDArray[np.float64] | float) -> float:
    """Two-sided p-value of counts against their expectations.

    Beyond 1,000 degrees of freedom by Wilson and Hilferty's cube root, whose error is far below any threshold here.
    """
    freedom = observed.size - 1
    statistic = float(((observed - expected) ** 2 / expected).sum())
    if freedom > 1000:
        spread = 2 / (9 * freedom)
        return normal(((statistic / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5)
    return two_sided(float(mpmath.gammainc(freedom / 2, statistic / 2, mpmath.inf, regularized=True)))


def normal(deviation: float) -> float:
    """Two-sided p-value of a standard normal deviate."""
    return float(mpmath.erfc(abs(deviation) / mpmath.sqrt(2)))


@njit(nogil=True)
def count_bytes(sample: NDArray[np.uint32], table: NDArray[np.int64]) -> None:
    """Add each byte of each coin to its row of ``table``."""
    for coin in sample:
        table[0, coin & 255] += 1
        table[1, (coin >> 8) & 255] += 1
        table[2, (coin >> 16) & 255] += 1
        table[3, coin >> 24] += 1


@njit(nogil=True)
def count_pairs(sample: NDArray[np.uint32], lag: int, high: NDArray[np.int64], low: NDArray[np.int64]) -> None:
    """Add pairs of coins ``lag`` apart: their highest bytes, and their lowest."""
    for i in range(sample.size - lag):
        high[((sample[i] >> 24) << 8) | (sample[i + lag] >> 24)] += 1
        low[((sample[i] & 255) << 8) | (sample[i + lag] & 255)] += 1


@njit(nogil=True)
def count_runs(sample: NDArray[np.uint32], bit: int, lengths: NDArray[np.int64]) -> None:
    """Add the lengths of runs of one bit's value; the last of a chunk may be cut off and is left out."""
    length = 1
    for i in range(1, sample.size):
        if ((sample[i] ^ sample[i - 1]) >> bit) & 1:
            lengths[min(length, lengths.size - 1)] += 1
            length = 1
        else:
            length += 1


@njit(nogil=True)
def count_gaps(sample: NDArray[np.uint32], threshold: int, width: int, gaps: NDArray[np.int64]) -> None:
    """Add the gaps between coins at or above ``threshold``, in cells of ``width``."""
    last = -1
    for i in range(sample.size):
        if sample[i] >= threshold:
            if last >= 0:
                gaps[min((i - last - 1) // width, gaps.size - 1)] += 1
            last = i


def geometric(chance: float, cells: int, width: int, total: int) -> NDArray[np.float64]:
    """Expected counts of waiting times in cells of ``width``; the last cell holds the rest."""
    edges = (1 - chance) ** (width * np.arange(cells + 1, dtype=np.float64))
    edges[-1] = 0.0
    return total * -np.diff(edges)


def birthday_spacings(sample: NDArray[np.uint32]) -> int:
    """How many spacings between sorted birthdays occur again."""
    spacings = np.sort(np.diff(np.sort(sample)))
    return int(np.count_nonzero(spacings[1:] == spacings[:-1]))


def bits(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each of the 32 bits is set, from the counts of bytes."""
    values = np.arange(256)
    return np.array([int(table[b // 8] @ ((values >> (b % 8)) & 1)) for b in range(32)])


def stream(fill: Fill, count: int) -> list[Test]:
    """All tests of one stream of ``count`` coins."""
    table, chunk = np.zeros((4, 256), np.int64), np.empty(CHUNK, np.uint32)
    high, low = (np.zeros((len(LAGS), 1 << 16), np.int64) for _ in range(2))
    runs = {bit: np.zeros(LONGEST_RUN + 1, np.int64) for bit in (31, 16, 0)}
    rare = {q: (coins.thresholds(q)[1], np.zeros(200, np.int64)) for q in (0.9, 0.99)}
    repeats: list[int] = []
    for position in range(0, count, CHUNK):
        fill(position, chunk)
        count_bytes(chunk, table)
        for k, lag in enumerate(LAGS):
            count_pairs(chunk, lag, high[k], low[k])
        for bit, lengths in runs.items():
            count_runs(chunk, bit, lengths)
        for q, (threshold, gaps) in rare.items():
            count_gaps(chunk, threshold, width_for(q), gaps)
        # A few experiments from every chunk, so that they come from the whole stream.
        for first in range(0, CHUNK, BIRTHDAYS)[: max(1, EXPERIMENTS * CHUNK // count)]:
            if len(repeats) < EXPERIMENTS:
                repeats.append(birthday_spacings(chunk[first : first + BIRTHDAYS]))
    found = [Test("bytes", f"byte {b}", chi_square(table[b], table[b].sum() / 256)) for b in range(4)]
    deviations = (bits(table) - count / 2) / (count / 4) ** 0.5
    found += [Test("bits", f"bit {b}", normal(float(z))) for b, z in enumerate(deviations)]
    for k, lag in enumerate(LAGS):
        for name, pairs in (("high", high[k]), ("low", low[k])):
            found.append(Test("pairs", f"{name} bytes {lag} apart", chi_square(pairs, pairs.sum() / pairs.size)))
    for bit, lengths in runs.items():
        expected = geometric(0.5, LONGEST_RUN, 1, int(lengths.sum()))
        found.append(Test("runs", f"runs of bit {bit}", pooled(lengths[1:], expected)))
    for q, (_, gaps) in rare.items():
        expected = geometric(1 - q, gaps.size, width_for(q), int(gaps.sum()))
        found.append(Test("gaps", f"gaps between steps down at q = {q}", pooled(gaps, expected)))
    z = (sum(repeats) - MEAN_REPEATS * len(repeats)) / (MEAN_REPEATS * len(repeats)) ** 0.5
    found.append(Test("birthday spacings", f"{len(repeats)} experiments", normal(z)))
    return found


def width_for(q: float) -> int:
    """Cells as wide as a tenth of the mean gap, at least 1."""
    return max(1, round(0.1 / (1 - q)))


def pooled(observed: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    """Chi-square with the last cells joined, so that each expects at least 20."""
    cells = max(2, int(np.count_nonzero(expected >= 20)))
    tail = slice(cells - 1, None)
    return chi_square(
        np.append(observed[: cells - 1], observed[tail].sum()),
        np.append(expected[: cells - 1], expected[tail].sum()),
    )


def neighbours(fills: list[Fill], count: int) -> list[Test]:
    """Streams of seeds s and s + 1 beside each other: the exclusive or of their coins, in step and shifted by one."""
    found = []
    chunks = [np.empty(CHUNK, np.uint32) for _ in range(2)]
    for seed, pair in enumerate(itertools.pairwise(fills)):
        tables = {shift: np.zeros((4, 256), np.int64) for shift in (-1, 0, 1)}
        for position in range(0, count, CHUNK):
            for fill, chunk in zip(pair, chunks, strict=True):
                fill(position, chunk)
            for shift, table in tables.items():
                count_bytes(chunks[0][1:-1] ^ chunks[1][1 + shift : CHUNK - 1 + shift], table)
        for shift, table in tables.items():
            for b in range(4):
                p_value = chi_square(table[b], table[b].sum() / 256)
                found.append(Test("neighbouring seeds", f"seeds {seed}, {seed + 1}, shift {shift}, byte {b}", p_value))
    return found
