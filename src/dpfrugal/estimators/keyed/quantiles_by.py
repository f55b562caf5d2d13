"""A private quantile per group of a data frame: pandas, polars, DuckDB, Arrow, or whatever exports Arrow.

>>> import dpfrugal as dpf, pyarrow as pa
>>> flights = pa.table({"carrier": ["AA", "UA"] * 5_000, "delay": [10, 20] * 5_000})
>>> table = quantiles_by(flights, "delay", 0.9, dpf.PureDP(epsilon=1.0), by="carrier", keys=["AA", "UA", "DL"])
>>> table.column_names, table["key"].to_pylist()
(['key', 'quantile', 'value', 'alpha'], ['AA', 'UA', 'DL'])
"""

from collections.abc import Sequence
from typing import Any

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.keyed.coded_rows import ROWS_AT_ONCE
from dpfrugal.estimators.keyed.keyed_dp_frugal import KeyedDPFrugal1U
from dpfrugal.inputs.dataframes import batches
from dpfrugal.parameters import integer
from dpfrugal.privacy.guarantees import Guarantee


def quantiles_by(
    data: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    by: str,
    person: str | None = None,
    rounds: int = 1,
    **options: Any,
) -> Any:
    """A private quantile of ``column`` for each key of the column ``by``: a table of key, quantile, value and alpha.

    ``options`` are those of ``KeyedDPFrugal1U``: ``keys`` or ``discover_keys`` must be among them, and ``decimals``,
    ``start`` and ``max_items_per_person`` often are. ``person`` names a column of ids, by which the bounds per person
    are enforced. The data are read in batches, as Arrow; in the order they are in, which must not carry a trend.
    ``rounds`` is how many releases there are, after equal numbers of rows, of which the last is returned: steps adapt
    where quantiles are far from the start. All of them cost the one guarantee.
    """
    integer("rounds", rounds, 1)
    estimator = KeyedDPFrugal1U(quantiles, guarantee, **options)
    names = {"column": column, "by": by} | ({} if person is None else {"person": person})
    for parameter, name in names.items():
        if not isinstance(name, str):
            raise ParameterTypeError(f"{parameter} must be the name of a column, not {type(name).__name__}.")
    from dpfrugal.inputs.batches import regrouped

    rows = _rows(data) if rounds > 1 else 0
    ends = [rows * done // rounds for done in range(1, rounds)]
    read = ((batch, 0) for batch in batches(data, list(dict.fromkeys(names.values()))))
    # When to release, and which of a person's rows are taken, must not depend on what other rows hold.
    for batch, _ in read if person is None and rounds == 1 else regrouped(read, ROWS_AT_ONCE, ends):
        estimator.update_many(
            batch.column(by), batch.column(column), person=None if person is None else batch.column(person)
        )
        if estimator.items in ends:
            estimator.release()
    return estimator.release()


def _rows(data: Any) -> int:
    """How many rows there are, if that is known beforehand: when to release must not depend on when they come."""
    try:
        return len(data)
    except TypeError:
        pass
    raise ParameterError("rounds is for data that say how many rows they have; collect them first.")
