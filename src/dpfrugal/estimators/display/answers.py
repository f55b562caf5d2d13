"""What there is to show of a release or of a table of releases: a value with its interval for each quantile.

Everything here is public. An answer that may come from far outside of its rows has a reason in place of a number.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfrugal.errors import ParameterError

NOT_KEYS = ("quantile", "value", "lower", "upper", "rows", "reason", "alpha", "items")


@dataclass(frozen=True)
class Answer:
    """One quantile: its value and the ends of its interval, None where they are not known; ``key`` names its group."""

    quantile: float
    value: Any
    lower: Any
    upper: Any
    reason: str | None = None
    key: str = ""


def is_table_of_releases(table: Any) -> bool:
    """Whether a pyarrow.Table is one that this library released, by the claim in its metadata."""
    metadata = table.schema.metadata or {}
    return b"guarantee" in metadata and {"quantile", "value"} <= set(table.column_names)


def answers_of_table(table: Any) -> list[Answer]:
    """A table of releases, row by row; its keys are the columns before ``quantile``."""
    if not is_table_of_releases(table):
        raise ParameterError("table must be a pyarrow.Table as quantiles_by or release returns it, with its metadata.")
    names = table.column_names
    columns = {name: values_of_column(table[name]) for name in names if name in NOT_KEYS}
    keys = zip(*(texts_of_column(table[name]) for name in key_names(table)), strict=True)
    values, nothing = columns["value"], [None] * table.num_rows
    if "alpha" in columns:
        ends = [(None, None) if value is None else (value - a, value + a) for value, a in
                zip(values, columns["alpha"], strict=True)]  # fmt: skip
    else:
        ends = list(zip(columns.get("lower", nothing), columns.get("upper", nothing), strict=True))
    reasons = columns.get("reason", nothing)
    rows = zip(columns["quantile"], values, ends, reasons, keys, strict=True)
    return [Answer(q, value, low, high, reason, ", ".join(key)) for q, value, (low, high), reason, key in rows]


def key_names(table: Any) -> list[str]:
    """The columns that name a group, which come before ``quantile``."""
    names: list[str] = table.column_names
    return names[: names.index("quantile")]


def texts_of_column(column: Any) -> list[str]:
    """Keys as text; a null key is a dash."""
    return ["–" if each is None else str(each) for each in values_of_column(column)]


def values_of_column(column: Any) -> list[Any]:
    """Numbers, text and decimals as Python has them, times as numpy's, which know nanoseconds; None where null."""
    import pyarrow as pa

    if not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)):
        values: list[Any] = column.to_pylist()
        return values
    times = column.to_numpy()
    return [None if np.isnat(each) else each for each in times]


def known_end(end: Any) -> Any:
    """An end of an interval that is a place on an axis; None where it is unbounded."""
    if end is None or (isinstance(end, float) and not math.isfinite(end)):
        return None
    return end


def quantiles_shown(answers: Sequence[Answer]) -> list[float]:
    """The quantiles that there are answers for, ascending."""
    return sorted({each.quantile for each in answers})
