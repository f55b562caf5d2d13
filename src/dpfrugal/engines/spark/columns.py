"""Columns of a Spark DataFrame, and how one that cannot be used is refused."""

from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812

from dpfrugal.engines.bin_counts import no_numbers, no_such_column
from dpfrugal.errors import ParameterTypeError, TableError

INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
FLOATS = (T.FloatType, T.DoubleType, T.DecimalType)  # as double


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
        raise no_such_column(column, df.columns)
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
        raise no_numbers(column, kind.simpleString())
    integers = isinstance(kind, INTEGERS)
    return reference(column).cast("bigint" if integers else "double"), integers


def partitions_of(df: Any) -> int:
    """About how many partitions Spark will make; what sits behind a shuffle is not run to find out."""
    plan = df._jdf.queryExecution()
    if "Exchange" in plan.executedPlan().toString():
        return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return max(1, int(plan.toRdd().getNumPartitions()))
