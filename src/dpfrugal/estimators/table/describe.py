"""``describe``: five private quantiles of every numeric column of a table, under one guarantee.

Each of k columns gets the k-th part of the guarantee: of its ε, or of its ρ under zCDP. An (ε, δ) is not cut into k
smaller ones: every column gets the k-th part of the ρ of zCDP that (ε, δ) has room for (errors then grow by √k, not by
k) or, where that is more accurate, the k-th part of ε without any δ. Parts are rounded down, so that their sum never
exceeds the whole.

Worked number: of ε = 1 and δ = 10⁻⁶ each of 20 columns gets ρ = 0.00122, and its five quantiles are 55 rows off at most
(root mean square); at a twentieth of ε they would be 216 rows off.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpfrugal import parameters
from dpfrugal.budget.ledger import Ledger
from dpfrugal.budget.spending import Account
from dpfrugal.errors import ItemError, ItemTypeError, ParameterError
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.choices.answers import prepare
from dpfrugal.estimators.table.choices.group_answers import noisy_rows
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.choices.plan import Asked, plan_of
from dpfrugal.estimators.table.private_quantiles import draw_release, interval_rule, rows_of, source_name
from dpfrugal.estimators.table.release import TableRelease
from dpfrugal.estimators.table.rows.order_statistics import OrderStatistics
from dpfrugal.estimators.table.sources.table_schemas import has_no_types, many_times, numeric_columns, with_names
from dpfrugal.parameters import NanPolicy, Neighbours
from dpfrugal.privacy.guarantees import ZCDP, Guarantee, PureDP, checked_guarantee
from dpfrugal.privacy.zcdp_conversions import rho_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, kw_only=True)
class Description:
    """The releases of several columns, by name; ``guarantee`` covers all, ``share`` each one of them.

    >>> import dpfrugal as dpf, pyarrow as pa
    >>> table = pa.table({"age": [30] * 4_000, "visits": [2] * 4_000})
    >>> described = dpf.describe(table, dpf.PureDP(epsilon=1.0), quantiles=0.5)
    >>> described["age"].value, list(described.columns), described.split
    (30, ['age', 'visits'], 'ε=1 in all, ε=0.5 for each of 2 columns')
    """

    columns: Mapping[str, TableRelease]
    guarantee: Guarantee
    share: Guarantee
    left_out: tuple[str, ...] = ()  # columns that had their part, and too few numbers

    def __getitem__(self, column: str) -> TableRelease:
        return self.columns[column]

    @property
    def split(self) -> str:
        """How the guarantee is divided, in words."""
        number = len(self.columns) + len(self.left_out)
        if number == 1:
            return f"{self.guarantee} for one column"
        return f"{self.guarantee} in all, {self.share} for each of {number} columns"

    def __str__(self) -> str:
        return "\n".join([*(f"{name}: {release}" for name, release in self.columns.items()), self.split])

    def _repr_html_(self) -> str:
        from dpfrugal.estimators.display.html import columns_html

        return columns_html({name: release.answers() for name, release in self.columns.items()}, self.split)

    def plot(self, title: str = "") -> "Figure":
        """Draw a box per column with matplotlib: whiskers at the outermost quantiles; the figure is returned."""
        from dpfrugal.estimators.display.box_plots import box_plots

        confidence = next(iter(self.columns.values())).confidence
        answers = {name: release.answers() for name, release in self.columns.items()}
        return box_plots(answers, f"{title}: {self.split}" if title else self.split, confidence)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: one record per column, as ``TableRelease`` has it."""
        return {
            "guarantee": self.guarantee.to_record(),
            "share": self.share.to_record(),
            "left_out": list(self.left_out),
            "columns": {name: release.to_dict() for name, release in self.columns.items()},
        }


def describe(
    data: Any,
    guarantee: Guarantee,
    *,
    columns: Sequence[str] | None = None,
    quantiles: Sequence[float] = QUANTILES,
    neighbours: Neighbours = "replace",
    intervals: bool = False,
    confidence: float = 0.95,
    interval_of: IntervalOf = "population",
    nan_policy: NanPolicy = "raise",
    person: str | None = None,
    max_items_per_person: int = 1,
    memory: int | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
) -> Description:
    """Private quantiles of every column of numbers or times, or of those that ``columns`` names.

    ``data`` is a data frame of pandas or polars, an Arrow table or dataset, a DuckDB relation, or a file, a folder or a
    pattern. Which columns hold numbers is known from their types. A CSV file has none: unless columns are named, all of
    its header have their part, of which a noisy number of the cells that are numbers costs a tenth, and those with too
    few are ``left_out``; cells that are no numbers do not count then, whatever ``nan_policy`` is. All columns cost the
    one guarantee, in equal parts (``share``). The other parameters are those of ``private_quantiles``; without
    intervals the values have all that is left.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": [20, 30, 40] * 5_000, "name": ["x"] * 15_000, "height": [1.6, 1.7, 1.8] * 5_000})
    >>> found = describe(table, PureDP(epsilon=1.0))
    >>> list(found.columns), found["age"].values, found.split
    (['age', 'height'], (20, 20, 30, 40, 40), 'ε=1 in all, ε=0.5 for each of 2 columns')
    """
    checked = parameters.quantiles(quantiles)
    checked_guarantee(guarantee)
    data = many_times(data)
    untyped = columns is None and has_no_types(data)
    if untyped:
        data = with_names(data)
    names = _names(data, columns, person)
    asked = Asked(
        tuple(sorted(map(parameters.exact, checked))),
        guarantee,
        parameters.neighbours(neighbours),
        rows_per_person=parameters.max_items_per_person(max_items_per_person),
        intervals=interval_rule(intervals, confidence, interval_of),
        counts=untyped,
    )
    share = share_of(asked, len(names))
    plan = plan_of(replace(asked, guarantee=share))
    account = Account.opened(
        *(ledger, dataset, guarantee),
        by=describe.__name__,
        max_items_per_person=asked.rows_per_person,
        neighbours=neighbours,
        asked={"column": ", ".join(names), "quantiles": list(checked), "source": source_name(data)},
    )
    each = None if memory is None else max(1, parameters.integer("memory", memory, 1) // len(names))
    found = {}
    for name in names:
        policy: NanPolicy = "omit" if untyped else parameters.nan_policy(nan_policy)
        kind, rows, number = _rows(data, name, person, asked, policy, each)
        if not number and neighbours == "replace":
            raise ItemError("The data has no rows: there is no quantile to find.")
        prepare(rows, plan)
        found[name] = kind, rows, number
    account.before_noise()
    with account.owning_up():
        releases = {
            name: replace(draw_release(rows, number, plan, kind.base, kind, checked), has_persons=person is not None)
            for name, (kind, rows, number) in found.items()
        }
        if untyped:
            sizes = noisy_rows(np.array([rows.rows for _, rows, _ in found.values()]), plan)
            releases = {
                name: replace(releases[name], numbers=size)
                for name, size in zip(names, [] if sizes is None else sizes.tolist(), strict=True)
            }
    shown = {name: release for name, release in releases.items() if not (untyped and all(release.reasons))}
    left_out = tuple(name for name in names if name not in shown)
    return Description(columns=shown, guarantee=guarantee, share=share, left_out=left_out)


def share_of(asked: Asked, parts: int) -> Guarantee:
    """What each of so many equal parts of the guarantee is; their sum does not exceed it."""
    guarantee = asked.guarantee
    if parts == 1:
        return guarantee
    if guarantee.epsilon_delta is None or guarantee.epsilon_delta[1] == 0:
        return guarantee.of_size(_part(guarantee.size, parts))
    epsilon, delta = guarantee.epsilon_delta
    candidates = PureDP(epsilon=_part(epsilon, parts)), ZCDP(rho=_part(rho_for(epsilon, delta), parts))
    return min(candidates, key=lambda share: max(plan_of(replace(asked, guarantee=share)).errors))


def _part(size: float, parts: int) -> float:
    """The largest float of which so many are not more than ``size``."""
    part = size / parts
    while Fraction(part) * parts > Fraction(size):
        part = math.nextafter(part, 0.0)
    return part


def _names(data: Any, columns: Sequence[str] | None, person: str | None) -> list[str]:
    if columns is None:
        return [name for name in numeric_columns(data) if name != person]
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or len(set(names)) < len(names):
        raise ParameterError("columns must name at least one column, and none of them twice.")
    return names


def _rows(
    data: Any, name: str, person: str | None, asked: Asked, nan_policy: NanPolicy, memory: int | None
) -> tuple[Kind, OrderStatistics, int]:
    """A column by rank, with its type and the number of rows, whether or not they are missing."""
    try:
        read = rows_of(data, name, nan_policy, person, asked.rows_per_person, memory)
        return read.kind, read.ordered(None, None), read.number
    except (ItemError, ItemTypeError) as error:
        refusal = type(error)(f"{name}: {error}")
    raise refusal  # outside of the handler, so that it is one sentence
