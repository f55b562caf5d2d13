"""Private quantiles of a Spark DataFrame: the front doors of tables, and keys and answers as DataFrames."""

from collections.abc import Sequence
from typing import Any, Final

from dpfrugal.engines.spark.columns import checked_frame, reference
from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.estimators.table.group_table import RESERVED
from dpfrugal.estimators.table.private_quantiles import private_quantiles as quantiles_of_table
from dpfrugal.estimators.table.quantiles_by import quantiles_by as quantiles_of_groups
from dpfrugal.estimators.table.release import TableRelease
from dpfrugal.privacy.guarantees import Guarantee

OTHERS: Final = {*RESERVED, "window_start", "window_end"} - {"key"}


def private_quantiles(
    df: Any, column: str, quantiles: float | Sequence[float], guarantee: Guarantee, **options: Any
) -> TableRelease:
    """``dpf.private_quantiles(df, quantiles, guarantee, column=column, …)``, whose options it takes.

    >>> import dpfrugal as dpf
    >>> from dpfrugal.engines.spark import local_session, private_quantiles
    >>> df = local_session().range(9_000).selectExpr("7 AS ms")
    >>> private_quantiles(df, "ms", 0.5, dpf.PureDP(epsilon=1.0)).value
    7
    """
    checked_frame(df, streaming=False)
    release: TableRelease = quantiles_of_table(df, quantiles, guarantee, column=column, **options)
    return release


def quantiles_by(
    df: Any,
    column: str,
    quantiles: float | Sequence[float],
    guarantee: Guarantee,
    *,
    by: str | Sequence[str],
    keys: Any = None,
    **options: Any,
) -> Any:
    """``dpf.quantiles_by``, whose options it takes, with a DataFrame for an answer; ``keys`` may be one, too.

    It holds released values, under the names of the key columns: computing it again draws nothing.

    >>> import dpfrugal as dpf
    >>> from dpfrugal.engines.spark import local_session, quantiles_by
    >>> df = local_session().range(9_000).selectExpr("id % 2 AS route", "7 AS ms")
    >>> table = quantiles_by(df, "ms", 0.5, dpf.PureDP(epsilon=1.0), by="route", keys=[0, 1])
    >>> [(row.route, row.value) for row in table.collect()]
    [(0, 7), (1, 7)]
    """
    checked_frame(df, streaming=False)
    names = [by] if isinstance(by, str) else list(by)
    keys = fetched_keys(keys, names)
    table = quantiles_of_groups(df, column, quantiles, guarantee, by=by, keys=keys, **options)
    return df.sparkSession.createDataFrame(released_table(table, names))


def fetched_keys(keys: Any, names: list[str]) -> Any:
    """The declared keys as whatever ``dpf.quantiles_by`` takes: those of a DataFrame are fetched."""
    if not hasattr(keys, "isStreaming"):
        return keys
    if keys.isStreaming:
        raise ParameterTypeError("keys must not be a streaming DataFrame: keys are declared once.")
    if len(names) == len(keys.columns) == 1:
        return keys.toArrow().column(0)
    if missing := [name for name in names if name not in keys.columns]:
        raise ParameterError(f"keys has no column {missing[0]!r}; it must have those of by.")
    found = keys.select(*map(reference, names)).toArrow()
    return found.column(0) if len(names) == 1 else found


def released_table(table: Any, by: Sequence[str]) -> Any:
    """A table of released values whose key columns have their own names, in types that Spark takes."""
    import pyarrow as pa

    names = [f"key_{name}" if name in OTHERS else name for name in by]
    columns = [_for_spark(column) for column in table.columns]
    return pa.table(columns, names=[*names, *table.column_names[len(names) :]])


def _for_spark(column: Any) -> Any:
    """Texts and bytes in the types that Spark takes."""
    import pyarrow as pa

    if pa.types.is_large_string(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_large_binary(column.type) else column
