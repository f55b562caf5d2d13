"""``TableRelease``: private quantiles of a table, and what is public about them."""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import numpy as np

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.display.answers import Answer
from dpfrugal.estimators.display.shown_values import shown_value
from dpfrugal.estimators.releases import SHOWN_BETA, Release
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.parameters import Neighbours, probability

CAUTION: Final = 2.0  # so many scales of the noise on a number of rows
BEYOND: Final = "the answer is beyond decimals of 64 bits: make the column one of floats"
RELATIONS = {"replace": "replace-one", "add-remove": "add-or-remove-one"}


@dataclass(frozen=True, kw_only=True)
class TableRelease(Release):
    """Released from a table, in the type of its column; values rise with q.

    ``items``, the number of rows, is None under ``neighbours="add-remove"``, which keeps it private. ``lower`` and
    ``upper`` are the ends of the intervals, None where ``intervals=False``. An end that so few rows cannot tell is
    −inf or inf; among times, which have none, it is None.

    >>> import dpfrugal as dpf
    >>> release = dpf.private_quantiles([7] * 9_000, [0.5, 0.9], dpf.PureDP(epsilon=1.0))
    >>> release.values, release.intervals(), release.neighbours
    ((7.0, 7.0), ((7.0, 7.0), (7.0, 7.0)), 'replace')
    """

    values: tuple[Any, ...]
    lower: tuple[Any, ...] | None = None
    upper: tuple[Any, ...] | None = None
    items: Any
    neighbours: Neighbours
    plan: Plan = field(repr=False)
    has_persons: bool = False  # rows came with ids of persons, and no more count of each than the guarantee covers
    numbers: int | None = None  # a noisy number of rows that hold a number, where not all have to

    @property
    def value(self) -> Any:
        """The private quantile, where only one was asked for."""
        return self._only(self.values, "value", "values")

    @property
    def unit(self) -> str:
        """Whose change the guarantee hides."""
        return unit_of(self.max_items_per_person, None, has_persons=self.has_persons)

    @property
    def confidence(self) -> float | None:
        """How likely an interval holds its quantile; None where there are no intervals."""
        return None if self.plan.asked.intervals is None else self.plan.asked.intervals.confidence

    @property
    def interval_of(self) -> IntervalOf | None:
        """Whose quantile an interval holds: the population's, or the table's own."""
        return None if self.plan.asked.intervals is None else self.plan.asked.intervals.of

    @property
    def shares(self) -> dict[str, float]:
        """What part of the guarantee the values cost, and what part their intervals."""
        return {part: float(share) for part, share in self.plan.asked.shares.items()}

    def intervals(self, confidence: float | None = None) -> tuple[tuple[Any, Any], ...]:
        """For each quantile an interval that holds it with the confidence that the call asked for.

        The ends are answers of their own, for one confidence; those of another one would have to be paid for.
        """
        if self.lower is None or self.upper is None:
            raise ParameterError("intervals were not asked for: call with intervals=True, which is the default.")
        if confidence is not None and probability("confidence", confidence) != self.confidence:
            raise ParameterError(
                f"confidence must be {self.confidence:g}, as in the call; for {confidence:g}, pass "
                f"confidence={confidence:g} to it."
            )
        return tuple(zip(self.lower, self.upper, strict=True))

    def interval(self, confidence: float | None = None) -> tuple[Any, ...]:
        """The interval (lower, upper) of the only quantile; where several were asked for, one for each, in order."""
        intervals = self.intervals(confidence)
        return intervals[0] if len(intervals) == 1 else intervals

    def rows_off(self, beta: float = SHOWN_BETA) -> Any:
        """By how many rows the answer's rank may be off: more with probability at most ``beta``.

        A number where one quantile was asked for, else one for each, in order. It holds where possible answers lie
        about as densely on one side of the quantile as on the other; ``reasons`` says where a table is too small.
        """
        bounds = self._in_order(self.plan.rows_off(probability("beta", beta)))
        return bounds[0] if len(bounds) == 1 else bounds

    @property
    def reasons(self) -> tuple[str | None, ...]:
        """For each quantile why its answer may come from far outside of the table; None where it does not.

        Known from its interval, which is then unbounded, and from the number of rows where that is public or noisy. A
        decimal that 64 bits cannot hold is ±infinity, and has a reason too.
        """
        needed = self._in_order(self.plan.rows_needed)
        surely = self.items
        if self.numbers is not None:  # one that is large by chance must not pass for many
            surely = self.numbers - math.ceil(CAUTION / self.plan.counts_slope)
        few = [surely is not None and surely < rows for rows in needed]
        unbounded = [False] * len(needed)
        if self.lower is not None:
            unbounded = [
                low is None or (isinstance(low, float) and high - low == math.inf) for low, high in self.intervals()
            ]
        there = "" if self.items is None else f", there are {self.items:,}"
        there = there if self.numbers is None else f", there are about {self.numbers:,}"
        small = "too few rows for q={q:g}: about {rows:,} are needed at " + f"{self.guarantee}{there}"
        wide = small if surely is None else "no bounded interval holds q={q:g}: the rows around it lie too far apart"
        beyond, found = "q={q:g}: " + BEYOND, []
        for q, rows, is_few, is_wide, value in zip(self.quantiles, needed, few, unbounded, self.values, strict=True):
            is_beyond = isinstance(value, Decimal) and value.is_infinite()
            said = small if is_few else wide if is_wide else beyond if is_beyond else ""
            found.append(said.format(q=q, rows=rows) or None)
        return tuple(found)

    def _in_order(self, ascending: tuple[Any, ...]) -> tuple[Any, ...]:
        """What is in the order of ascending quantiles, in the order in which they were asked for."""
        order = sorted(self.quantiles)
        return tuple(ascending[order.index(q)] for q in self.quantiles)

    def __str__(self) -> str:
        ends = [(None, None)] * len(self.values) if self.lower is None else self.intervals()
        shown = ", ".join(
            _shown(q, value, low, high) for q, value, (low, high) in zip(self.quantiles, self.values, ends, strict=True)
        )
        how_sure = "" if self.confidence is None else f" ({100 * self.confidence:g}%)"
        doubts = "".join(f"; {reason}" for reason in self.reasons if reason)
        return f"{shown}{how_sure}, {self._claim()}{doubts}"

    def _claim(self) -> str:
        changed = "replaced" if self.neighbours == "replace" else "added or removed"
        rows = "" if self.items is None else f", {self.items:,} rows"
        return f"{self.guarantee} per {self.unit} {changed}{rows}"

    def _how_sure(self) -> str:
        return "" if self.confidence is None else f"{100 * self.confidence:g}% intervals; "

    def answers(self) -> list[Answer]:
        """Internal: what notebooks and pictures show."""
        ends = [(None, None)] * len(self.values) if self.lower is None else self.intervals()
        found = zip(self.quantiles, self.values, ends, self.reasons, strict=True)
        return [Answer(q, value, *interval, reason) for q, value, interval, reason in found]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; dates, timestamps, durations and decimals are strings, and what is private or unknown is null."""
        record = super().to_dict()
        values = [_plain(value) for value in self.values]
        single = {"value": values[0]} if len(values) == 1 else {}
        off = self.rows_off()
        more = {
            "values": values,
            "neighbours": RELATIONS[self.neighbours],
            "rows_off": list(off) if isinstance(off, tuple) else [off],
            "beta": SHOWN_BETA,
            "shares": self.shares,
            "reasons": list(self.reasons),
        }
        if self.lower is not None:
            ends = [[_plain(low), _plain(high)] for low, high in self.intervals()]
            more |= {"intervals": ends, "confidence": self.confidence, "interval_of": self.interval_of}
        return record | single | more


def _shown(q: float, value: Any, low: Any, high: Any) -> str:
    if low is None and high is None:
        return f"q={q:g}: {shown_value(value)}"
    width = high - low if isinstance(low, float) and isinstance(high, float) else None
    ends = ", ".join("…" if end is None else shown_value(end, width) for end in (low, high))
    return f"q={q:g}: {shown_value(value, width)} in [{ends}]"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    plain = isinstance(value, int | float) and not isinstance(value, np.generic)
    return value if plain or value is None else str(value)


def unit_of(max_items_per_person: int, max_keys_per_person: int | None, *, has_persons: bool = False) -> str:
    """Whose change a guarantee hides: a row's, or that of the rows of a person."""
    if max_items_per_person == 1 and max_keys_per_person is None and not has_persons:
        return "row"
    unit = f"person of ≤ {max_items_per_person} row{'s' * (max_items_per_person > 1)}"
    return unit if max_keys_per_person is None else f"{unit} in each of ≤ {max_keys_per_person} keys"
