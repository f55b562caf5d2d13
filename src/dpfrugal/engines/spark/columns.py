"""Columns of a Spark DataFrame: how one that cannot be used is refused, and how Spark counts one between edges.

Counting is Spark SQL only: a tree of comparisons gives each row its bin, and the rows of each bin are counted. Spark
compiles both, and no Python runs on the executors. An integer is compared with integers, exactly.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812

from dpfrugal.errors import ParameterTypeError, TableError
from dpfrugal.estimators.segments.counting import limits_of

INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FLOATS = (T.FloatType, T.DoubleType, T.DecimalType)  # as double
KEPT, MISSING = -2, -1  # bins of rows that are sampled, and of items that are missing


def checked_frame(df: Any, *, streaming: bool) -> Any:
    """``df``, if it is a DataFrame of the right kind."""
    if not hasattr(df, "isStreaming") or not hasattr(df, "schema"):
        kind = type(df)
        raise ParameterTypeError(f"df must be a Spark DataFrame, not {kind.__module__}.{kind.__name__}.")
    if not hasattr(df, "_jdf"):
        raise ParameterTypeError(
            "df belongs to Spark Connect, which shows no plans and no files; use a classic session."
        )
    if df.isStreaming and not streaming:
        raise ParameterTypeError("df is a streaming DataFrame; use stream_private_quantiles or stream_quantiles_by.")
    if streaming and not df.isStreaming:
        raise ParameterTypeError("df is not a streaming DataFrame; use private_quantiles or quantiles_by.")
    return df


def field(df: Any, column: str) -> T.StructField:
    """The column's name and type, if there is one of that name."""
    if not isinstance(column, str):
        raise ParameterTypeError(f"A column is given by its name, not {type(column).__name__}.")
    found = [field for field in df.schema.fields if field.name == column]
    if not found:
        raise TableError(f"There is no column {column!r}; there are {', '.join(map(repr, df.columns))}.")
    if len(found) > 1:
        raise TableError(f"There are {len(found)} columns {column!r}; rename all but one.")
    return found[0]


def reference(column: str) -> Any:
    """The column of that very name, dots and all."""
    return F.col("`" + column.replace("`", "``") + "`")


def item(df: Any, column: str) -> tuple[Any, bool]:
    """The column as an expression of numbers, and whether they are integers."""
    kind = field(df, column).dataType
    if not isinstance(kind, INTEGERS + FLOATS):
        raise TableError(f"The column {column!r} must hold numbers; it holds {kind.simpleString()}.")
    integers = isinstance(kind, INTEGERS)
    return reference(column).cast("bigint" if integers else "double"), integers


def place(edges: NDArray[np.float64], *, integers: bool) -> str:
    """The bin of the column ``item`` in SQL: a tree of comparisons, or ``MISSING``.

    As a text it reaches Java at once; as expressions, in more than a thousand calls that take 0.3 s.
    """
    kind = "BIGINT" if integers else "DOUBLE"
    limits = limits_of(edges, np.dtype(np.int64 if integers else np.float64)).tolist()
    least = int(np.count_nonzero(edges <= -(2.0**63))) if integers else 0  # no integer lies below these

    def tree(first: int, last: int) -> str:
        if first == last:
            return str(first)
        k = (first + last) // 2
        return f"CASE WHEN item <= CAST('{limits[k]!r}' AS {kind}) THEN {tree(first, k)} ELSE {tree(k + 1, last)} END"

    missing = "item IS NULL" if integers else "item IS NULL OR isnan(item)"
    return f"CASE WHEN {missing} THEN {MISSING} ELSE {tree(least, len(limits))} END"


def bins_of(found: dict[int, int], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts by bin as an array."""
    return np.array([found.get(k, 0) for k in range(edges.size + 1)], dtype=np.int64)


def partitions_of(df: Any) -> int:
    """About how many partitions Spark will make; what sits behind a shuffle is not run to find out."""
    plan = df._jdf.queryExecution()
    if "Exchange" in plan.executedPlan().toString():
        return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return max(1, int(plan.toRdd().getNumPartitions()))
