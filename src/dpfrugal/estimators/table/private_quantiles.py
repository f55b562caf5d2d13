"""``private_quantiles``: quantiles of a table that is at hand, a few rows off, in any order, without bounds."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, get_args

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import ItemError, ParameterError
from dpfrugal.estimators.table.columns import read_column
from dpfrugal.estimators.table.kinds import hinted
from dpfrugal.estimators.table.levels import Neighbours, answers, planned
from dpfrugal.estimators.table.release import TableRelease
from dpfrugal.parameters import NanPolicy
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee


def private_quantiles(
    data: Any,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    column: str | None = None,
    neighbours: Neighbours = "replace",
    low: Any = None,
    high: Any = None,
    decimals: int | None = None,
    nan_policy: NanPolicy = "raise",
    max_items_per_person: int = 1,
    ledger: Ledger | None = None,
    dataset: str | None = None,
) -> TableRelease:
    """Private quantiles of a column: one q or several, a guarantee, and nothing else is needed.

    ``data`` is a column (a list, an array of numpy or Arrow, a Series), or a table with ``column`` (a data frame of
    pandas or polars, a lazy frame, an Arrow table or dataset, a DuckDB relation), or a file, a folder or a pattern.
    The guarantee (Theorems 16 and 17) covers all answers together, for neighbours that differ by one row replaced or,
    with ``neighbours="add-remove"``, by one row more; or by the at most ``max_items_per_person`` rows of one person.
    ``low``, ``high`` and ``decimals`` are public hints, never needed: rows beyond ``low`` and ``high`` count as these.
    An answer has the column's type, which is public; a list of numbers counts as floats, as it states no type.
    With a ``ledger`` the guarantee is spent on ``dataset`` before anything is drawn.

    >>> import numpy as np
    >>> from dpfrugal import PureDP
    >>> rows = np.random.default_rng(1).normal(1e6, 3.0, 100_000)
    >>> r = private_quantiles(rows, [0.5, 0.9], PureDP(epsilon=1.0))
    >>> abs(r.values[0] - 1e6) < 0.1, r.values[0] < r.values[1]
    (True, True)
    >>> private_quantiles(np.full(1000, 7), 0.5, PureDP(epsilon=1.0)).value
    7
    """
    checked = parameters.quantiles(quantiles)
    guarantee = checked_guarantee(guarantee)
    parameters.one_of("neighbours", neighbours, get_args(Neighbours))
    rows_per_person = parameters.max_items_per_person(max_items_per_person)
    parameters.nan_policy(nan_policy)
    if ledger is not None and neighbours == "add-remove":
        raise ParameterError('ledger totals are for rows that are replaced; neighbours="add-remove" cannot be added.')
    # As decimals: 0.9 of ten rows is nine rows, which the float 0.9 is not.
    exact = tuple(sorted(Fraction(repr(q)) for q in checked))
    plan = planned(exact, guarantee, neighbours, rows_per_person)
    account = Account.opened(
        ledger, dataset, guarantee, by=private_quantiles.__name__, max_items_per_person=rows_per_person
    )
    read = read_column(data, column, nan_policy)
    if not read.rows and neighbours == "replace":
        raise ItemError("The data has no rows: there is no quantile to find.")
    base = hinted(read.kind, low, high, decimals)
    rows = read.ordered(base.low, base.high)
    account.before_noise()
    with account.owning_up():
        found = dict(zip(exact, answers(rows, plan, base), strict=True))
        return TableRelease(
            values=tuple(read.kind.answer(found[Fraction(repr(q))]) for q in checked),
            quantiles=checked,
            guarantee=guarantee,
            items=read.rows if neighbours == "replace" else None,
            max_items_per_person=rows_per_person,
            neighbours=neighbours,
            plan=plan,
        )
