"""Whatever exports an array or a stream of Arrow, as an array of Arrow in chunks."""

from typing import Any

from dpfrugal.errors import ItemTypeError


def chunked(items: Any) -> Any:
    """The same as a ``pyarrow.ChunkedArray``; a type that Arrow does not have, such as Polars's Int128, is refused."""
    import pyarrow as pa

    if isinstance(items, pa.ChunkedArray):
        return items
    try:
        return pa.chunked_array(items if hasattr(items, "__arrow_c_stream__") else [pa.array(items)])
    except pa.ArrowException:  # its message may quote data
        pass
    of_type = getattr(items, "dtype", type(items).__name__)
    raise ItemTypeError(f"Arrow has no type for {of_type}: cast it to numbers of 64 bits.")
