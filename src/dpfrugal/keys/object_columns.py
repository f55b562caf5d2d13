"""Columns of Python objects in a pandas frame, brought to one fixed Arrow type.

Such a column has no type of its own. Arrow would choose one from what the rows hold (the time zone of the first one,
unsigned integers if one is large), and the type of keys is shown.
"""

from typing import Any

from dpfrugal.errors import ItemTypeError
from dpfrugal.keys.arrays import holds_objects, parts
from dpfrugal.keys.index import UNTYPED


def typed_frame(data: Any, names: list[str]) -> Any:
    """The frame with these columns of keys typed, where they hold objects; whatever is no pandas frame is as it was."""
    if not hasattr(data, "iloc") or not hasattr(data, "dtypes"):
        return data
    there = list(data.columns)
    untyped = [name for name in dict.fromkeys(names) if there.count(name) == 1 and holds_objects(data[name])]
    return data.assign(**{name: _typed(data[name]) for name in untyped}) if untyped else data


def _typed(column: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    (keys,) = parts(column)
    if isinstance(keys, list) or pa.types.is_uint64(getattr(keys, "dictionary", keys).type):
        raise ItemTypeError(UNTYPED)
    return pd.Series(pd.arrays.ArrowExtensionArray(keys), index=column.index)
