"""Keys: whatever the caller has, as parts that a table can look up.

Lists of hashable objects, numpy arrays, pandas and polars Series, Arrow arrays, dictionary-encoded or not. A key is an
integer, a string, bytes, a truth value, a date, a timestamp, or another hashable object. Floating-point numbers are
refused: which of them are equal is a matter of rounding. A list has no type of its own, so its rows do not choose one:
dates become date32, timestamps are in microseconds, those with a time zone in UTC. Nothing here looks at a key except
to convert it; messages name kinds, never keys.
"""

import datetime
import numbers
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError
from dpfrugal.inputs.arrow_arrays import chunked

Kind = Literal[
    "integers", "strings", "bytes", "truth values", "dates", "timestamps", "timestamps with a time zone", "objects"
]
ALLOWED: Final = "keys must be integers, strings, bytes, truth values, dates, timestamps or other hashable objects"
NO_FLOATS: Final = "keys must not be floating-point numbers, whose equality is a matter of rounding"
NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True)
class Strings:
    """Strings of bytes in Arrow's own memory: string i is ``data[offsets[i] : offsets[i + 1]]``."""

    offsets: NDArray[Any]
    data: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """How many there are."""
        return self.offsets.size - 1

    @property
    def longest(self) -> int:
        """The length of the longest of them."""
        return int(np.diff(self.offsets).max(initial=0))


@dataclass(frozen=True)
class Views:
    """Strings as Arrow's views: four numbers each, of which the first is the length.

    A string of at most twelve bytes stands in the others; of a longer one they are its first bytes, its buffer and
    where it begins there.
    """

    array: Any
    numbers: NDArray[np.uint32]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.numbers)

    def buffer(self, number: int) -> NDArray[np.uint8]:
        """The bytes of one buffer of long strings."""
        return np.frombuffer(self.array.buffers()[2 + number], dtype=np.uint8)

    def plain(self, rows: slice) -> Strings:
        """Some of the strings by offsets: a copy."""
        return strings_of(self.array.slice(rows.start, rows.stop - rows.start))


def kind_of(arrow_type: Any) -> Kind | None:
    """What keys of an Arrow type are; None where they are all null."""
    import pyarrow as pa

    t = pa.types
    if t.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if t.is_null(arrow_type):
        return None
    if t.is_integer(arrow_type):
        return "integers"
    if t.is_string(arrow_type) or t.is_large_string(arrow_type) or t.is_string_view(arrow_type):
        return "strings"
    binary = (t.is_binary, t.is_large_binary, t.is_binary_view, t.is_fixed_size_binary)
    if any(check(arrow_type) for check in binary):
        return "bytes"
    if t.is_boolean(arrow_type):
        return "truth values"
    if t.is_date(arrow_type):
        return "dates"
    if t.is_timestamp(arrow_type):
        return "timestamps" if arrow_type.tz is None else "timestamps with a time zone"
    if t.is_floating(arrow_type) or t.is_decimal(arrow_type):
        raise ItemTypeError(f"{NO_FLOATS}; these are {arrow_type}. Cast them to integers or strings.")
    raise ItemTypeError(f"{ALLOWED}; these are {arrow_type}.")


def parts(batch: Any) -> Iterator[Any]:
    """The batch in order, as Arrow arrays; or as lists, where Arrow has no type for what the batch holds."""
    import pyarrow as pa

    if isinstance(batch, str | bytes | bytearray | Mapping):
        raise ItemTypeError(f"keys must be a batch of keys, not {type(batch).__name__}.")
    if isinstance(batch, pa.Array):
        yield batch
    elif isinstance(batch, pa.ChunkedArray):
        yield from batch.chunks
    elif holds_objects(batch) and hasattr(batch.dtype, "categories"):
        yield _of_categories(batch)
    elif isinstance(getattr(batch, "dtype", None), np.dtype) and hasattr(batch, "to_numpy"):  # pandas on numpy
        yield _of_numpy(np.asarray(batch.to_numpy()))
    elif isinstance(batch, np.ndarray):
        yield _of_numpy(batch)
    elif hasattr(batch, "__arrow_c_stream__") and not hasattr(batch, "columns"):
        yield from chunked(batch).chunks
    elif hasattr(batch, "columns"):
        raise ItemError("keys must be one-dimensional; choose one column of the table.")
    elif isinstance(batch, Iterable):
        yield _of_list(list(batch))
    else:
        raise ItemTypeError(f"keys must be a batch of keys, not {type(batch).__name__}.")


def has_type(batch: Any) -> bool:
    """Whether the type of the keys is that of their container, not a guess from what they are."""
    import pyarrow as pa

    if isinstance(getattr(batch, "dtype", None), np.dtype) or holds_objects(batch):
        return not holds_objects(batch)
    return isinstance(batch, pa.Array | pa.ChunkedArray) or hasattr(batch, "__arrow_c_stream__")


def holds_objects(batch: Any) -> bool:
    """Whether an array or a Series has no type of its own: it holds Python objects, or categories that are objects."""
    dtype = getattr(batch, "dtype", None)
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _of_categories(batch: Any) -> Any:
    """Pandas' categories that are objects, as a dictionary of one fixed type."""
    import pyarrow as pa

    codes: NDArray[Any] = np.asarray(getattr(batch, "cat", batch).codes)
    entries = _of_list(list(batch.dtype.categories))
    if isinstance(entries, list):
        return [entries[code] if code >= 0 else None for code in codes.tolist()]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), entries)


def _of_numpy(array: NDArray[Any]) -> Any:
    import pyarrow as pa

    if array.ndim != 1:
        raise ItemError(f"keys must be one-dimensional; this array has {array.ndim} dimensions.")
    if isinstance(array, np.ma.MaskedArray):
        return pa.array(np.ascontiguousarray(array.data), mask=np.ma.getmaskarray(array))
    if array.dtype.kind == "O":
        return _of_list(array.tolist())
    if array.dtype.kind == "f":
        raise ItemTypeError(f"{NO_FLOATS}; these are {array.dtype}. Cast them to integers or strings.")
    if array.dtype.kind not in "iubSUTM":
        raise ItemTypeError(f"{ALLOWED}; this array holds {array.dtype.type.__name__}.")
    native = array.dtype.newbyteorder("=")
    return attempted(lambda: pa.array(np.ascontiguousarray(array, dtype=native)))


def is_null(key: Any) -> bool:
    """Whether an object stands for a missing key: None, NaN, pandas' NA and NaT."""
    return key is None or type(key).__name__ in ("NAType", "NaTType") or (isinstance(key, float) and key != key)


def _of_list(keys: list[Any]) -> Any:
    import pyarrow as pa

    kinds = set(map(type, keys))
    if any(issubclass(kind, float) or kind.__name__ in ("NAType", "NaTType") for kind in kinds):
        keys = [None if is_null(key) else key for key in keys]
        kinds = set(map(type, keys))
    kinds.discard(type(None))
    if not kinds:
        return pa.nulls(len(keys))

    def all_are(*bases: type) -> bool:
        return all(issubclass(kind, bases) for kind in kinds)

    if any(issubclass(kind, float | np.floating) for kind in kinds):
        raise ItemTypeError(f"{NO_FLOATS}. Cast them to integers or strings.")
    if all_are(bool, np.bool_):
        return attempted(lambda: pa.array(keys, pa.bool_()))
    if all_are(numbers.Integral) and bool not in kinds:
        return _of_integers(keys)
    for base, arrow_type in ((str, pa.large_string()), (bytes, pa.large_binary())):
        if all_are(base):
            return attempted(lambda chosen=arrow_type: pa.array(keys, chosen))
    if all_are(datetime.datetime):
        return _of_datetimes(keys)
    if all_are(datetime.date) and not any(issubclass(kind, datetime.datetime) for kind in kinds):
        return attempted(lambda: pa.array(keys, pa.date32()))
    return keys


def _of_datetimes(keys: list[Any]) -> Any:
    """Timestamps of one fixed type. Arrow by itself takes the time zone of the first row, and would show it."""
    import pyarrow as pa

    aware = {key.utcoffset() is not None for key in keys if key is not None}
    if len(aware) > 1:
        raise ItemTypeError("keys must all be timestamps with a time zone, or all without one; these are mixed.")
    return attempted(lambda: pa.array(keys, pa.timestamp("us", "UTC" if True in aware else None)))


def _of_integers(keys: list[Any]) -> Any:
    import pyarrow as pa

    for width in (pa.int64(), pa.uint64()):
        try:
            return pa.array(keys, width)
        except (pa.ArrowException, OverflowError):
            continue
    return keys


def attempted(convert: Any) -> Any:
    """What ``convert`` gives, or a sentence: Arrow's own messages quote what they could not convert."""
    import pyarrow as pa

    try:
        return convert()
    except (pa.ArrowException, UnicodeError, OverflowError, ValueError, TypeError):
        pass
    raise ItemTypeError(f"{ALLOWED}, all of one kind; these cannot be read as such.")


def null_rows(array: Any) -> NDArray[np.bool_] | None:
    """Which rows of an Arrow array are null, by themselves or by their entry of a dictionary; None: no row is."""
    found = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    dictionary = getattr(array, "dictionary", None)
    if dictionary is None or not dictionary.null_count:
        return found
    used = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
    entries: NDArray[np.bool_] = dictionary.is_null().to_numpy(zero_copy_only=False)[used]
    return entries if found is None else entries | found


def in_order(part: Any) -> Any:
    """The same keys, decoded: a dictionary's order is not that of its rows."""
    return without_views(part.dictionary).take(part.indices) if hasattr(part, "dictionary") else part


def without_views(array: Any) -> Any:
    """The same strings by offsets: Arrow cannot filter views, and keys are added from one buffer."""
    import pyarrow as pa

    wide = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    if array.type not in wide:
        return array
    try:
        return array.cast(wide[array.type])
    except pa.ArrowException:  # its message has the length of all keys
        pass
    raise ItemError("The keys of this batch do not fit into memory; use smaller batches.")


def views_of(array: Any) -> Views | None:
    """An Arrow array of strings or bytes without nulls as its views, if it has any."""
    import pyarrow as pa

    if not len(array) or not (pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type)):
        return None
    numbers = np.frombuffer(array.buffers()[1], dtype=np.uint32).reshape(-1, 4)
    return Views(array, numbers[array.offset : array.offset + len(array)])


def strings_of(array: Any) -> Strings:
    """An Arrow array of strings or bytes without nulls; copied only where Arrow keeps no offsets."""
    import pyarrow as pa

    t = pa.types
    array = array.cast(pa.large_binary()) if t.is_fixed_size_binary(array.type) else without_views(array)
    if not len(array):
        return Strings(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))
    _, offsets, data = array.buffers()
    width = np.int64 if t.is_large_string(array.type) or t.is_large_binary(array.type) else np.int32
    places = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    return Strings(places, np.frombuffer(data or b"", dtype=np.uint8))
