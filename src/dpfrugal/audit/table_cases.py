"""Tables as an audit sees them: rows go in, answers come out.

Answers are the integers from 0 to 16, by public hints, so that a few runs show how likely each of them is. Under a
guarantee so weak that nothing is hidden a choice shows little of what it weighs, so neighbours are not searched: they
are those at which a choice can lose most. A row moves from one end to the other where answers of large mass lie on one
side of the wanted rank, and one of small mass on the other; then the one becomes less likely, and the other more.

Worked number: of 19 rows 0 and one row 15, with q = 0.95, a row 16 more has a loss of 0.94·ε in the answer 16 at ε = 1.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dpfrugal.audit.neighbour_search import Case, Items, Numbers, Periods
from dpfrugal.estimators.table.private_quantiles import private_quantiles
from dpfrugal.parameters import Neighbours
from dpfrugal.privacy.guarantees import Guarantee

Answer = Callable[..., Sequence[float]]  # of rows, quantiles and a guarantee
Make = Callable[[], Answer]  # for every run

TOP: Final = 16.0
ZERO, NEXT, LAST = (0.0,), (1.0,), (TOP - 1,)
HIGH: Final = (TOP,)

REPLACED: Final[list[tuple[Items, Items]]] = [
    (ZERO + NEXT, HIGH + NEXT),
    (ZERO + LAST, HIGH + LAST),
    (ZERO * 2 + NEXT + HIGH, ZERO + NEXT + HIGH * 2),
    (ZERO * 5 + LAST + HIGH * 4, ZERO * 4 + LAST + HIGH * 5),
    (ZERO * 3, ZERO * 2 + HIGH),
    (ZERO * 40, ZERO * 39 + HIGH),
]
ADDED_AT_MEDIAN: Final[list[tuple[Items, Items]]] = [
    (HIGH, LAST + HIGH),
    (ZERO + HIGH * 2, ZERO + LAST + HIGH * 2),
    ((), HIGH),
]
ADDED_FAR_OUT: Final[list[tuple[Items, Items]]] = [
    (ZERO * 19 + LAST, ZERO * 19 + LAST + HIGH),
    (ZERO * 19 + NEXT, ZERO * 19 + NEXT + HIGH),
    (ZERO * 20, ZERO * 20 + HIGH),
    (LAST, LAST + HIGH),
]


def released(rows: Items, quantiles: float | Sequence[float], guarantee: Guarantee, **options: Any) -> Sequence[float]:
    """What ``private_quantiles`` answers."""
    values = np.array(rows, dtype=np.float64)
    options = {"low": 0.0, "high": TOP, "decimals": 0, "intervals": False} | options
    return private_quantiles(values, quantiles, guarantee, **options).values


def replaced_cases(make: Make = lambda: released) -> list[Case]:
    """One row is replaced."""
    return [
        _case("q=0.5, one row replaced", _once(make, 0.5, "replace"), REPLACED),
        _case("q=0.25 and 0.5, one row replaced", _once(make, (0.25, 0.5), "replace"), REPLACED[:3]),
    ]


def added_cases(make: Make = lambda: released) -> list[Case]:
    """One row is added or removed: the number of rows, and with it the wanted rank, changes too."""
    return [
        _case("q=0.95, one row added", _once(make, 0.95, "add-remove"), ADDED_FAR_OUT),
        _case("q=0.5, one row added", _once(make, 0.5, "add-remove"), ADDED_AT_MEDIAN),
    ]


def version_cases(make: Make = lambda: released) -> list[Case]:
    """Two versions of a table, each with one row of a person: for a person of two rows, both are covered."""

    def run(guarantee: Guarantee, periods: Periods) -> Numbers:
        answer = make()
        return [answer(rows, 0.5, guarantee, neighbours="replace", max_items_per_person=2) for rows in periods]

    same, other = ZERO + NEXT, HIGH + NEXT
    pairs = (((same, same), (same, other)), ((same, same), (other, other)), ((same, other), (other, same)))
    return [Case("q=0.5, two versions of a table, a person's row in each", run, (), neighbours=pairs, chosen=True)]


def table_cases() -> list[Case]:
    """All of them, of ``private_quantiles``."""
    return [*replaced_cases(), *added_cases(), *version_cases()]


def _case(name: str, run: Callable[[Guarantee, Periods], Numbers], pairs: list[tuple[Items, Items]]) -> Case:
    return Case(name, run, (), neighbours=tuple(((first,), (second,)) for first, second in pairs), chosen=True)


def _once(
    make: Make, quantiles: float | Sequence[float], neighbours: Neighbours
) -> Callable[[Guarantee, Periods], Numbers]:
    def run(guarantee: Guarantee, periods: Periods) -> Numbers:
        (rows,) = periods
        return [make()(rows, quantiles, guarantee, neighbours=neighbours)]

    return run
