"""Tables with one mistake each, for an audit that has never failed proves nothing. Never use them."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

from dpfrugal.audit.neighbour_search import Case, Items, Numbers, Periods
from dpfrugal.audit.table_cases import HIGH, LAST, NEXT, TOP, ZERO, added_cases, replaced_cases, version_cases
from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.codes import codes_of
from dpfrugal.estimators.table.base.kinds import FLOATS, hinted
from dpfrugal.estimators.table.choices.mechanism import Choice, Scores
from dpfrugal.estimators.table.choices.plan import range_of
from dpfrugal.estimators.table.rows.order_statistics import SortedRows
from dpfrugal.parameters import exact
from dpfrugal.privacy import choice
from dpfrugal.privacy.choice import Bits, Ranges, slope
from dpfrugal.privacy.guarantees import Guarantee

KEYS: Final = ("a", "b")
RECORDED_BITS: Final = 4096


@cache
def world(low: float = 0.0, high: float = TOP) -> Base:
    """What may be answered: the integers between two hints."""
    return hinted(FLOATS, low, high, 0)


@lru_cache(maxsize=64)
def scores(rows: Items, quantile: float, public: Choice) -> Scores:
    """The weights of all answers: the same in every run, so they are worked out once."""
    statistics = SortedRows(codes_of(np.array(rows, dtype=np.float64)))
    return Scores(statistics, public, exact(quantile) * statistics.rows)


def chosen(rows: Items, quantile: float, public: Choice, bits: Bits | None = None) -> float:
    """One choice, as ``private_quantiles`` makes it."""
    found = scores(rows, quantile, public)
    return float(FLOATS.answer(found.draw(choice.choose(found.approximate, found.exact, bits), bits)))


def ranges(total: Fraction, count: int = 1) -> Ranges:
    """So many choices of equal ranges that come to ``total``."""
    return Ranges(total, total**2 / count)


def range_of_the_data(rows: Items, quantile: float, guarantee: Guarantee, **_: Any) -> Sequence[float]:
    """Answers lie between the smallest and the largest row, which are taken for public hints."""
    public = Choice(world(min(rows), max(rows)), slope(guarantee, ranges(Fraction(2))))
    return [chosen(rows, quantile, public)]


@dataclass(frozen=True)
class CapOfTheData(Choice):
    """Caps distances at a number that is taken from the rows."""

    raw: int = 1

    @property
    def cap(self) -> int:
        """Not public."""
        return self.raw


def cap_of_the_data(rows: Items, quantile: float, guarantee: Guarantee, **_: Any) -> Sequence[float]:
    """The cap is the spread of the rows' values: it decides how likely all distant answers are."""
    spread = 1 + int(max(rows) - min(rows))
    return [chosen(rows, quantile, CapOfTheData(world(), slope(guarantee, ranges(Fraction(2))), raw=spread))]


def sensitivity_one(rows: Items, quantile: float, guarantee: Guarantee, **_: Any) -> Sequence[float]:
    """A row more adds 1 to ranks above it, so a range of 1 is charged; but the wanted rank moves with n too."""
    return [chosen(rows, quantile, Choice(world(), slope(guarantee, ranges(Fraction(1)))))]


def by_key(moved: int) -> Callable[[Guarantee, Periods], Numbers]:
    """A median per key, where a row that changes its key is charged for in ``moved`` keys: 2 is right, 1 is not."""

    def run(guarantee: Guarantee, periods: Periods) -> Numbers:
        (rows,) = periods
        public = Choice(world(), slope(guarantee, ranges(moved * range_of(Fraction(1, 2)), moved)))
        return [[chosen(tuple(value for key, value in rows if key == each), 0.5, public) for each in KEYS]]

    return run


def key_cases(moved: int) -> list[Case]:
    """A row leaves one key for another, with another value."""
    one, other = KEYS
    # Of all small tables these lose most in an event that is not too rare.
    stay = tuple((one, value) for value in NEXT + LAST + HIGH) + tuple((other, value) for value in ZERO + NEXT * 2)
    pair = ((*stay, (one, *HIGH)),), ((*stay, (other, *LAST)),)
    return [Case("q=0.5, two keys, a row changes its key", by_key(moved), (), neighbours=(pair,), chosen=True)]


class ReusedChoice:
    """Draws the answer for another version of the table by the bits of the first, as after a retry."""

    def __init__(self) -> None:
        self._recorded = secrets.randbits(RECORDED_BITS)

    def __call__(self, rows: Items, quantile: float, guarantee: Guarantee, **_: Any) -> Sequence[float]:
        """The answer; the bits begin anew every time."""
        position = 0

        def bits(count: int) -> int:
            nonlocal position
            position += count
            return self._recorded >> (RECORDED_BITS - position) & (1 << count) - 1

        # One row of a person in each of two versions: the slope is right.
        return [chosen(rows, quantile, Choice(world(), slope(guarantee, ranges(Fraction(4)))), bits)]


# What the command line can be asked to audit, by name.
BROKEN_TABLES: dict[str, Callable[[], list[Case]]] = {
    "data-range": lambda: replaced_cases(lambda: range_of_the_data)[:1],
    "raw-cap": lambda: replaced_cases(lambda: cap_of_the_data)[:1],
    "sensitivity-one": lambda: added_cases(lambda: sensitivity_one)[:1],
    "keys-charged-once": lambda: key_cases(1),
    "reused-choice": lambda: version_cases(ReusedChoice),
}
