"""The columns of public keys, with the label of all other keys, or without any key."""

from typing import Any

from dpfrugal.errors import ParameterError
from dpfrugal.keys.columns import KeyColumns, typed
from dpfrugal.keys.index import UNDECLARED

Label = tuple[Any, ...]


def no_keys(index: KeyColumns) -> dict[str, Any]:
    """Columns without keys, and without types: these would say that some key is there."""
    import pyarrow as pa

    return {name: pa.nulls(0) for name in index.names}


def key_columns_with(columns: dict[str, Any], label: Label) -> dict[str, Any]:
    """The columns of the keys, and the label as one more key."""
    import pyarrow as pa

    labels = [typed(part, column.type) for part, column in zip(label, columns.values(), strict=True)]
    return {
        name: pa.concat_arrays([column, one]) if len(column) else one
        for (name, column), one in zip(columns.items(), labels, strict=True)
    }


def with_null_key(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns of the keys, and a null as one more key."""
    import pyarrow as pa

    return {name: pa.concat_arrays([column, pa.nulls(1, column.type)]) for name, column in columns.items()}


def refuse_declared(index: KeyColumns, label: Label | None) -> None:
    """Refuse a label that is one of the declared keys."""
    if label is not None and index.code(label) != UNDECLARED:
        raise ParameterError("other must not be one of keys.")
