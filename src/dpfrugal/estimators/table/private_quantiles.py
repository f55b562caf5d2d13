"""``private_quantiles``: quantiles of a table that is at hand, a few rows off, in any order, without bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, get_args

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import ItemError, ParameterError
from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.kinds import Kind, hinted
from dpfrugal.estimators.table.choices.answers import answers, intervals_around, prepare
from dpfrugal.estimators.table.choices.intervals import IntervalOf, IntervalRule
from dpfrugal.estimators.table.choices.pilot import directed
from dpfrugal.estimators.table.choices.plan import Asked, Plan, plan_of
from dpfrugal.estimators.table.choices.radius import Interval
from dpfrugal.estimators.table.release import TableRelease
from dpfrugal.estimators.table.rows.columns import read_column
from dpfrugal.estimators.table.rows.engine_rows import EngineColumn
from dpfrugal.estimators.table.rows.engine_tables import Columns, engine_of
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics, SortedRows
from dpfrugal.estimators.table.rows.person_rows import person_rows
from dpfrugal.inputs.file_sets import FileSet
from dpfrugal.parameters import NanPolicy, Neighbours
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee


def private_quantiles(
    data: Any,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    column: str | None = None,
    neighbours: Neighbours = "replace",
    intervals: bool = True,
    confidence: float = 0.95,
    interval_of: IntervalOf = "population",
    low: Any = None,
    high: Any = None,
    decimals: int | None = None,
    nan_policy: NanPolicy = "raise",
    person: str | None = None,
    max_items_per_person: int = 1,
    memory: int | None = None,
    header: bool | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
) -> TableRelease:
    """Private quantiles of a column: one q or several, a guarantee, and nothing else is needed.

    ``data`` is a column: a list, an array of numpy or Arrow, a Series. Or it is a table, and ``column`` names the
    column: a data frame of pandas or polars, a lazy frame, an Arrow table or dataset, a DuckDB relation, a file, a
    folder or a pattern of file names. Answers have the column's type. A list of numbers counts as floats, as it states
    no type.

    **The guarantee** covers all answers together (Theorems 16 to 18). It hides the replacement of one row or, with
    ``neighbours="add-remove"``, that a row is there at all. With ``person``, a column of ids, it hides all rows of a
    person: at most ``max_items_per_person`` of them count, chosen at random. With a ``ledger`` the guarantee is spent
    on ``dataset`` before anything is drawn.

    **Intervals** hold the quantile of the population from which the rows are a sample with probability
    ``confidence``; with ``interval_of="table"``, that of the table itself. They cost half of the guarantee;
    ``intervals=False`` leaves it to the answers. Several quantiles share a pilot, for 4% of the guarantee: it finds out
    where the rows lie, and whether they are whole numbers, cents or others (Theorem 22).

    **Hints** are public, and never needed: ``low`` and ``high``, as which rows beyond them count, and ``decimals``.

    **Files** are held in memory where their rows take at most ``memory`` bytes, and are read again otherwise.
    ``header`` says whether files of text have one, where that is in doubt.

    >>> import numpy as np
    >>> from dpfrugal import PureDP
    >>> rows = np.random.default_rng(1).normal(1e6, 3.0, 100_000)
    >>> r = private_quantiles(rows, [0.5, 0.9], PureDP(epsilon=1.0))
    >>> abs(r.values[0] - 1e6) < 0.1, r.values[0] < r.values[1]
    (True, True)
    >>> r = private_quantiles(np.full(1000, 7), 0.5, PureDP(epsilon=1.0))
    >>> r.value, r.interval(0.95)
    (7, (7, 7))
    """
    checked = parameters.quantiles(quantiles)
    parameters.neighbours(neighbours)
    parameters.nan_policy(nan_policy)
    asked = Asked(
        # As decimals: 0.9 of ten rows is nine rows, which the float 0.9 is not.
        tuple(sorted(map(parameters.exact, checked))),
        checked_guarantee(guarantee),
        neighbours,
        rows_per_person=parameters.max_items_per_person(max_items_per_person),
        intervals=interval_rule(intervals, confidence, interval_of),
    )
    plan = plan_of(asked)
    account = Account.opened(
        *(ledger, dataset, guarantee),
        by=private_quantiles.__name__,
        max_items_per_person=asked.rows_per_person,
        neighbours=neighbours,
        asked={"column": column, "quantiles": list(checked), "source": source_name(data)},
    )
    with account.before_spending():
        column_read = rows_of(data, column, nan_policy, person, asked.rows_per_person, memory, header)
        if not column_read.number and neighbours == "replace":
            raise ItemError("The data has no rows: there is no quantile to find.")
        kind, number = column_read.kind, column_read.number
        base = hinted(kind, low, high, decimals)
        rows = column_read.ordered(base.low, base.high)
        prepare(rows, plan)
    account.before_noise()
    with account.owning_up():
        return replace(draw_release(rows, number, plan, base, kind, checked), has_persons=person is not None)


class RowsRead(NamedTuple):
    """The type of a column, the number of its rows, missing ones too, and its rows by rank, clipped to hints."""

    kind: Kind
    number: int
    ordered: Callable[[int | None, int | None], OrderStatistics]


def rows_of(
    data: Any,
    column: str | None,
    nan_policy: NanPolicy,
    person: str | None,
    rows_per_person: int,
    memory: int | None = None,
    header: bool | None = None,
) -> RowsRead:
    """A column that was read, of which only so many rows of a person count where ``person`` names ids."""
    if person is not None and column is None:
        raise ParameterError("person names a column of a table: name the column of numbers too, with column.")
    source = None if column is None else engine_of(data)
    if source is not None and column is not None:
        found = EngineColumn(source.open(Columns(column, (), person, rows_per_person)), nan_policy)
        return RowsRead(found.kind, found.number, found.ordered)
    if person is None or column is None:
        read = read_column(data, column, nan_policy, memory, header=header)
        return RowsRead(read.kind, read.rows, read.ordered)
    kind, codes, number = person_rows(data, column, person, rows_per_person, nan_policy)
    return RowsRead(kind, number, lambda least, most: SortedRows(codes, least, most))


def draw_release(
    rows: OrderStatistics, number: int, plan: Plan, base: Base, kind: Kind, quantiles: tuple[float, ...]
) -> TableRelease:
    """The release of a plan from rows that are at hand; ``number`` counts also those that are missing.

    It draws: whoever calls it has spent the plan's guarantee.
    """
    asked, codes = plan.asked, answers(rows, plan, directed(rows, plan, base))
    order = [asked.quantiles.index(parameters.exact(q)) for q in quantiles]
    drawn = [_ends(kind, interval) for interval in intervals_around(rows, plan, base, codes)]
    return TableRelease(
        values=tuple(kind.answer(codes[at]) for at in order),
        lower=None if asked.intervals is None else tuple(drawn[at][0] for at in order),
        upper=None if asked.intervals is None else tuple(drawn[at][1] for at in order),
        quantiles=quantiles,
        guarantee=asked.guarantee,
        items=number if asked.neighbours == "replace" else None,
        max_items_per_person=asked.rows_per_person,
        neighbours=asked.neighbours,
        plan=plan,
    )


def interval_rule(intervals: bool, confidence: float, interval_of: IntervalOf) -> IntervalRule | None:
    """What was asked for, checked."""
    rule = IntervalRule(
        parameters.probability("confidence", confidence),
        parameters.one_of("interval_of", interval_of, get_args(IntervalOf)),
    )
    return rule if parameters.truth("intervals", intervals) else None


def _ends(kind: Kind, interval: Interval) -> tuple[Any, Any]:
    """The ends of an interval; among times, which have no ±inf, an unbounded one has None."""
    low, high = kind.answer(interval.low), kind.answer(interval.high)
    if interval.bounded:
        return low, high
    return (-math.inf, math.inf) if kind.has_infinity else (None, None)


def source_name(data: Any) -> str:
    """What a ledger's history calls the data: the name of a file, or the type of a table."""
    if isinstance(data, FileSet):
        return data.name
    if isinstance(data, str | PathLike):
        return Path(data).name
    return type(data).__name__
