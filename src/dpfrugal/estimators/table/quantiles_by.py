"""``quantiles_by``: quantiles of each group of a table, a few rows off, in any order, without bounds.

>>> import dpfrugal as dpf, pyarrow as pa
>>> flights = pa.table({"carrier": ["AA", "UA"] * 5_000, "delay": [10, 20] * 5_000})
>>> table = quantiles_by(flights, "delay", 0.9, dpf.PureDP(epsilon=1.0), by="carrier", keys=["AA", "UA", "DL"])
>>> table.select(["key", "value", "lower", "upper"]).to_pylist()[:2]
[{'key': 'AA', 'value': 10, 'lower': 10, 'upper': 10}, {'key': 'UA', 'value': 20, 'lower': 20, 'upper': 20}]
"""

from collections.abc import Sequence
from typing import Any, Literal

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import ItemError, ParameterError
from dpfrugal.estimators.keyed.release_table import total_cost
from dpfrugal.estimators.keyed.walked_quantiles_by import walked_quantiles_by
from dpfrugal.estimators.table.base.kinds import hinted
from dpfrugal.estimators.table.choices.answers import reaches_of
from dpfrugal.estimators.table.choices.group_answers import Progress, answer_groups
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.choices.pilot import ranks_of_pilot
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.group_table import group_table
from dpfrugal.estimators.table.private_quantiles import interval_rule, source_name
from dpfrugal.estimators.table.rows.grouped_rows import checked_names, groups_of
from dpfrugal.keys.index import MOST_KEYS
from dpfrugal.parameters import NanPolicy, Neighbours, NullGroups
from dpfrugal.privacy.guarantees import ApproxDP, Guarantee, checked_guarantee

Method = Literal["table", "walk"]


def quantiles_by(
    data: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    by: str | Sequence[str],
    keys: Any = None,
    discover_keys: ApproxDP | None = None,
    other: Any = None,
    null_keys: NullGroups = "raise",
    person: str | None = None,
    max_items_per_person: int = 1,
    max_keys_per_person: int | None = None,
    neighbours: Neighbours = "replace",
    intervals: bool = True,
    confidence: float = 0.95,
    interval_of: IntervalOf = "population",
    counts: bool = True,
    low: Any = None,
    high: Any = None,
    decimals: int | None = None,
    nan_policy: NanPolicy = "raise",
    max_keys: int = MOST_KEYS,
    memory: int | None = None,
    header: bool | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
    progress: Progress | None = None,
    method: Method = "table",
    start: float | None = None,
    rounds: int | None = None,
    adaptive_steps: bool | None = None,
    threads: int | None = None,
    coin_seed: int | None = None,
) -> Any:
    """Private quantiles of ``column`` for each key of ``by``, a column or several: a pyarrow.Table.

    Its columns are key, quantile, value, lower, upper, rows and reason; where ``by`` names several columns, these stand
    in the place of key. A group that is too small for its quantile has no value but a ``reason``; without intervals and
    counts nothing tells that.

    **The guarantee** covers the whole table (Theorem 19). It hides that one row has another value *and* another key or,
    with ``neighbours="add-remove"``, that it is there at all. With ``person``, a column of ids, it hides all rows of a
    person: at most ``max_items_per_person`` of them count (in each of at most ``max_keys_per_person`` keys), chosen at
    random.

    **Keys** are data: declare them (``keys``), or say what it may cost to find them
    (``discover_keys=ApproxDP(...)``, on top of the guarantee). Rows of other keys are left out, or make one more group,
    which is shown as ``other``. Rows without a key are refused, left out (``null_keys="drop"``) or, beside declared
    keys, make a group whose key is null (``null_keys="group"``).

    **Shares.** ``rows``, a noisy number of rows, costs a tenth of the guarantee; ``counts=False`` saves it. A pilot
    costs 4%: it finds out for all groups where the rows lie, and whether they are whole numbers, cents or others
    (Theorem 22). ``lower`` and ``upper`` cost half of what is left; ``intervals=False`` saves that. They bound the
    quantile of the population or, with ``interval_of="table"``, of the group itself.

    **Hints** are public, and never needed: ``low`` and ``high``, as which rows beyond them count, and ``decimals``.

    ``method="walk"`` is the paper's random walk, one integer per key, for which ``decimals``, ``start``, ``rounds``,
    ``adaptive_steps``, ``threads`` and ``coin_seed`` are; its columns are key, quantile, value and alpha.

    >>> import dpfrugal as dpf, pyarrow as pa
    >>> flights = pa.table({"carrier": ["AA", "UA"] * 5_000, "delay": [10, 20] * 5_000})
    >>> table = dpf.quantiles_by(flights, "delay", 0.9, dpf.PureDP(epsilon=1.0), by="carrier", keys=["AA", "UA"])
    >>> table.select(["key", "value", "lower", "upper"]).to_pylist()[0]
    {'key': 'AA', 'value': 10, 'lower': 10, 'upper': 10}
    """
    given = {"start": start, "rounds": rounds, "adaptive_steps": adaptive_steps, "threads": threads}
    given["coin_seed"] = coin_seed
    walk: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    parameters.one_of("method", method, ("table", "walk"))
    if method == "walk":
        common = {
            "keys": keys, "discover_keys": discover_keys, "null_keys": null_keys, "nan_policy": nan_policy,
            "max_items_per_person": max_items_per_person, "max_keys_per_person": max_keys_per_person,
            "max_keys": max_keys, "ledger": ledger, "dataset": dataset,
        }  # fmt: skip
        if not isinstance(by, str):
            raise ParameterError('by must be the name of one column for method="walk".')
        if header is not None:
            raise ParameterError('header is for method="table".')
        more = walk if decimals is None else walk | {"decimals": decimals}
        return walked_quantiles_by(data, column, quantiles, guarantee, by=by, person=person, **common, **more)
    if walk:
        raise ParameterError(f'{next(iter(walk))} is for method="walk": a table needs none.')
    checked = parameters.quantiles(quantiles)
    per_person = parameters.max_items_per_person(max_items_per_person)
    keys_per_person = parameters.max_keys_per_person(max_keys_per_person)
    asked = Asked(
        tuple(sorted(map(parameters.exact, checked))),
        checked_guarantee(guarantee),
        parameters.neighbours(neighbours),
        grouped=True,
        rows_per_person=per_person * (keys_per_person or 1),
        intervals=interval_rule(intervals, confidence, interval_of),
        counts=parameters.truth("counts", counts),
    )
    plan, names = plan_of(asked), checked_names(column, by, person)
    account = Account.opened(
        *(ledger, dataset, guarantee if ledger is None else total_cost(guarantee, discover_keys)),
        by=quantiles_by.__name__,
        max_items_per_person=per_person,
        neighbours=neighbours,
        asked={"column": column, "by": by if isinstance(by, str) else names, "quantiles": list(checked)}
        | {"source": source_name(data)},
    )
    with account.before_spending():
        grouped = groups_of(
            data, column, by, keys=keys, discover_keys=discover_keys, other=other, null_keys=null_keys, person=person,
            max_items_per_person=per_person, max_keys_per_person=keys_per_person, nan_policy=nan_policy,
            max_keys=max_keys, memory=memory, header=header,
        )  # fmt: skip
        if not grouped.rows and neighbours == "replace":
            raise ItemError("The data has no rows: there is no quantile to find.")
        base = hinted(grouped.kind, low, high, decimals)
        grouped.prepare(reaches_of(plan), ranks_of_pilot(plan))  # before anything is spent
    account.before_noise()
    with account.owning_up():
        shown = grouped.discover()
        shown.prepare(reaches_of(plan), ranks_of_pilot(plan))
        found = answer_groups(shown, plan, base, progress)
        return group_table(
            shown, plan, found, checked, discover_keys, per_person, keys_per_person, has_persons=person is not None
        )
