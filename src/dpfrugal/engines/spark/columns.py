"""Columns of a Spark DataFrame, and how one that cannot be used is refused."""

from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812

from dpfrugal import parameters
from dpfrugal.errors import ItemTypeError, ParameterTypeError
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.rows.engine_tables import kind_of
from dpfrugal.inputs import dataframes

BATCH, STREAM = "use private_quantiles or quantiles_by", "use stream_private_quantiles or stream_quantiles_by"


def checked_frame(df: Any, *, streaming: bool) -> Any:
    """``df``, if it is a DataFrame of the right kind."""
    if not hasattr(df, "isStreaming") or not hasattr(df, "schema"):
        kind = type(df)
        raise ParameterTypeError(f"df must be a Spark DataFrame, not {kind.__module__}.{kind.__name__}.")
    if df.isStreaming and not streaming:
        raise ParameterTypeError(f"df is a streaming DataFrame; {STREAM}.")
    if streaming and not df.isStreaming:
        raise ParameterTypeError(f"df is not a streaming DataFrame; {BATCH}.")
    if streaming and not hasattr(df, "_jdf"):
        raise ParameterTypeError("df belongs to Spark Connect, which shows no checkpoint files; use a classic session.")
    return df


def type_of(df: Any, column: str) -> Any:
    """The type of the column, if there is one of that name."""
    parameters.column("column", column)
    dataframes.present([column], list(df.columns))
    return next(field.dataType for field in df.schema.fields if field.name == column)


def reference(column: str) -> Any:
    """The column of that very name, dots and all."""
    return F.col("`" + column.replace("`", "``") + "`")


def arrow_type(kind: Any) -> Any:
    """The Arrow type in which Spark hands over a column of this type."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind, timezone="UTC")
    except PySparkException:
        pass
    raise ItemTypeError(f"data must be numbers, dates, timestamps or durations; the column is {kind.simpleString()}.")


def kind_of_values(df: Any, column: str) -> Kind:
    """What answers the column has; refused where it has none."""
    import pyarrow as pa

    return kind_of(pa.nulls(0, arrow_type(type_of(df, column))))


def checked_time(df: Any, column: str) -> str:
    """The column of times by which a stream is cut into windows."""
    kind = type_of(df, column)
    if not isinstance(kind, T.TimestampType):
        raise ParameterTypeError(f"time must be a column of type timestamp; {column!r} is {kind.simpleString()}.")
    return column
