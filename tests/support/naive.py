"""The slow and obvious versions that everything is held to."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from dpfrugal.estimators.walk.frugal import step
from dpfrugal.kernels.coins import COINS


def frugal_1u(stream: Iterable[Any], q: float, rands: Iterable[Fraction], start: int = 0) -> int:
    """Algorithm 1 of the paper, line by line; ``rands`` are its calls of random(0, 1)."""
    m = start
    for s, rand in zip(stream, rands, strict=True):
        if s > m and rand > 1 - Fraction(q):
            m = m + 1
        elif s < m and rand > Fraction(q):
            m = m - 1
    return m


def rand_of(coin: int) -> Fraction:
    """The paper's random(0, 1) that a coin stands for."""
    return Fraction(2 * coin + 1, 2 * COINS)


def walk(items: Sequence[float], permissions: Sequence[tuple[bool, bool]], start: int = 0) -> int:
    """``step`` over a stream, each coin given by what it allows: (a step up, a step down)."""
    estimate = start
    for item, (up, down) in zip(items, permissions, strict=True):
        estimate = step(estimate, item, coin=1, up_from=0 if up else 2, down_from=0 if down else 2)
    return estimate


NOTHING, UP, DOWN, BOTH = (False, False), (True, False), (False, True), (True, True)
# Whatever the coin, q ≥ 1/2 never allows only a step down, and q ≤ 1/2 never only a step up.
COINS_OF_HIGH_Q = (NOTHING, UP, BOTH)
COINS_OF_LOW_Q = (NOTHING, DOWN, BOTH)


def neighbours(stream: tuple[Any, ...], alphabet: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """All streams that differ from ``stream`` by one replaced item."""
    for i, item in itertools.product(range(len(stream)), alphabet):
        if item != stream[i]:
            yield (*stream[:i], item, *stream[i + 1 :])


def passes(count: int, threshold: int, scale: float) -> float:
    """P[count + discrete Laplace ≥ threshold], whatever the two are, by its definition."""
    below = [math.exp(-abs(x) / scale) for x in range(-2000, 2001)]
    return sum(below[max(threshold - count, -2000) + 2000 :]) / sum(below)
