"""Several columns of a table, whatever holds it, as Arrow record batches.

The first batch is empty wherever a source knows the types of its columns: these are public, also where there are no
rows.
"""

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.sources.column_sources import NO_HEADER, source_of
from dpfrugal.inputs import dataframes
from dpfrugal.inputs.file_sets import FileSet
from dpfrugal.keys.arrays import holds_objects
from dpfrugal.keys.object_columns import typed_frame


def table_batches(
    data: Any, column: str, beside: list[str], shown: list[str], header: bool | None = None
) -> Iterator[Any]:
    """Record batches that have the column of values and the columns beside it (keys, persons).

    Columns beside it whose type will be ``shown`` get one that does not depend on what their rows hold.
    """
    import pyarrow as pa

    several = isinstance(data, list | tuple) and data and all(isinstance(each, str | PathLike) for each in data)
    if several or isinstance(data, str | PathLike | FileSet):
        others = tuple(name for name in beside if name != column)
        yield from FileSet.of(data).batches(column, others, header=header)
        return
    if header is not None:
        raise ParameterError(NO_HEADER)
    names = list(dict.fromkeys([column, *beside]))
    reader = dataframes.reader(_with_fixed_types(data, column, shown), names)
    yield pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in reader.schema], schema=reader.schema)
    yield from dataframes.batches(reader, names)


def read_once(data: Any) -> bool:
    """Whether a source is used up by reading it."""
    import pyarrow as pa

    return isinstance(data, pa.RecordBatchReader) or hasattr(data, "__next__")


def _with_fixed_types(data: Any, column: str, shown: list[str]) -> Any:
    """A pandas frame whose columns of objects have types that do not depend on what the rows hold."""
    data = typed_frame(data, shown)
    if not hasattr(data, "iloc") or list(data.columns).count(column) != 1 or not holds_objects(data[column]):
        return data
    import pandas as pd
    import pyarrow as pa

    arrays = list(source_of(data[column], None).read())
    numbers = all(isinstance(array, np.ndarray) for array in arrays)
    values = pa.array(np.concatenate(arrays)) if numbers else pa.chunked_array(arrays)
    return data.assign(**{column: pd.Series(pd.arrays.ArrowExtensionArray(values), index=data.index)})
