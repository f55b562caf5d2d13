"""A column of a table as codes, and codes as answers of the column's own type.

Floats, integers to 64 bits, decimals, dates, timestamps and durations are read; a row that is missing (a null, NaN or
NaT) is refused or left out. The type of a column is public; a list of numbers has none, and counts as one of floats.
Messages name types and parameters, never a value.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from glob import glob
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.errors import ItemError, ItemTypeError, ParameterError, ParameterTypeError, TableError
from dpfrugal.estimators.table.base_measure import Base, Regions, base_of_decimals, base_of_doubles, base_of_integers
from dpfrugal.estimators.table.codes import Codes, codes_of, doubles_of
from dpfrugal.parameters import NanPolicy, integer

MOST_DECIMALS: Final = 15
LEAST, MOST = -(2**63), 2**63 - 1
# How many of a unit of time make the next larger ones: answers lie more often on whole seconds, minutes, hours, days.
PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Kind:
    """A type of column: its name, the base of its answers, and how codes and values become each other."""

    name: str
    base: Base
    answer: Callable[[int], Any] = field(compare=False)
    code: Callable[[Any], Fraction] = field(compare=False)  # of a hint; between two codes for one that is no value


@dataclass(frozen=True)
class Column:
    """The rows of a column as codes, raw, and how many there are with those that are missing."""

    kind: Kind
    codes: Codes = field(repr=False)
    rows: int = field(repr=False)


def _float_code(hint: Any) -> Fraction:
    return Fraction(int(codes_of(np.array([float(hint)]))[0]))


def _float_answer(code: int) -> float:
    return float(doubles_of(np.array([code], dtype=np.int64))[0])


FLOATS: Final = Kind("float", base_of_doubles(), _float_answer, _float_code)
INTEGERS: Final = Kind("integer", base_of_integers(), int, Fraction)
UNSIGNED: Final = Kind(
    "uint64", base_of_integers(zero=LEAST), lambda code: code - LEAST, lambda hint: Fraction(hint) + LEAST
)


def _decimals(scale: int) -> Kind:
    """Fixed-point numbers: integers in units of 10^-scale."""
    exact = Context(prec=40)
    return Kind(
        f"decimal with {scale} places",
        base_of_integers(),
        lambda code: Decimal(code).scaleb(-scale, context=exact),
        lambda hint: Fraction(hint) * Fraction(10) ** scale,
    )


def _times(name: str, unit: str, kind: Any) -> Kind:
    """Timestamps or durations in a unit, or dates; NaT is no answer."""
    if unit == "D":
        base = base_of_integers(-(2**31), 2**31 - 1)
    else:
        second = PER_SECOND[unit]
        steps = [step for step in (second, 60 * second, 3600 * second, 86400 * second) if step > 1]
        base = base_of_integers(LEAST + 1, MOST, steps=steps)
    return Kind(
        name,
        base,
        lambda code: kind(code, unit),
        lambda hint: Fraction(int(kind(hint, unit).astype(np.int64))),
    )


def read_column(data: Any, column: str | None, nan_policy: NanPolicy) -> Column:
    """One column of whatever the caller has."""
    parts = [_part(array) for array in _arrays(data, column)]
    kinds = {kind.name: kind for kind, _, _ in parts if kind is not None}
    kind = next(iter(kinds.values()), INTEGERS)
    if len(kinds) > 1:
        if kinds.keys() - {"float", "integer"}:
            raise ItemTypeError(f"data must be of one type; it has {' and '.join(sorted(kinds))}.")
        kind = FLOATS
    several = [_as_floats(of, codes) if len(kinds) > 1 else codes for of, codes, _ in parts]
    codes = np.concatenate([np.zeros(0, dtype=np.int64), *several])
    missing = sum(number for _, _, number in parts)
    if missing and nan_policy == "raise":
        raise ItemError('The data has NaN or null rows; clean it, or use nan_policy="omit".')
    return Column(kind, codes, int(codes.size) + missing)


def _as_floats(kind: Kind | None, codes: Codes) -> Codes:
    return codes if kind is not INTEGERS else codes_of(codes.astype(np.float64))


def _arrays(data: Any, column: str | None) -> Iterator[Any]:
    """Arrays of numpy or Arrow, in any number."""
    import pyarrow as pa

    from dpfrugal.inputs import dataframes, files

    if isinstance(data, str | PathLike):
        for path in _paths(str(data)):
            yield from (batch for batch, _ in files.open_column(path, column).batches)
    elif column is not None:
        if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a lazy frame of polars
            names = data.collect_schema().names()
            if column not in names:
                raise TableError(f"data: there is no column {column!r}; there are {', '.join(map(repr, names))}.")
            data = data.select(column).collect()
        elif hasattr(data, "scanner"):  # a dataset of Arrow
            if column not in data.schema.names:
                raise TableError(
                    f"data: there is no column {column!r}; there are {', '.join(map(repr, data.schema.names))}."
                )
            data = data.scanner(columns=[column]).to_reader()
        for batch in dataframes.batches(data, [column]):
            yield batch.column(batch.schema.names.index(column))
    elif isinstance(data, pa.ChunkedArray):
        yield from data.chunks or [pa.array([], data.type)]
    elif isinstance(data, pa.Array):
        yield data
    else:
        yield from _of_python(data)


def _of_python(data: Any) -> Iterator[Any]:
    import pyarrow as pa

    if isinstance(data, np.ndarray) or isinstance(getattr(data, "dtype", None), np.dtype):
        array = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
        if array.ndim != 1:
            raise ItemError(f"data must be one-dimensional, or have a column=; this array has {array.ndim} dimensions.")
        if array.dtype.kind in "Mm":
            yield pa.array(array)
        elif array.dtype.kind in "iuf":
            yield array
        elif array.dtype.kind == "O":
            yield from _of_python(array.tolist())
        else:
            raise ItemTypeError(f"data must be numbers or times; this array holds {array.dtype.type.__name__}.")
    elif hasattr(data, "columns") or hasattr(data, "column_names"):
        raise ParameterError("column must name a column of the table; it was not given.")
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.chunked_array(data).chunks
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.array(data)
    elif isinstance(data, Iterator):
        raise ParameterTypeError(f"data must be held or read again; {type(data).__name__} can be read once: list() it.")
    elif isinstance(data, Iterable) and not isinstance(data, bytes | dict):
        yield from _of_list(list(data))
    else:
        raise ParameterTypeError(f"data must be a column of numbers or times, or a table; not {type(data).__name__}.")


def _of_list(items: list[Any]) -> Iterator[Any]:
    """Times, or numbers, which count as floats: a list states no type, and rows must not choose one."""
    import pyarrow as pa

    from dpfrugal.inputs.numbers import chunks

    kinds = {type(item) for item in items if item is not None}
    if any(kind.__module__ == "datetime" for kind in kinds):
        array = None
        if len(kinds) == 1:
            with suppress(pa.ArrowException, TypeError, ValueError):
                array = pa.array(items)
        if array is None:
            raise ItemTypeError("data must be of one type: numbers, dates, timestamps or durations.")
        yield array
        return
    yield np.zeros(0)
    for chunk in chunks(items):
        values = chunk.values.astype(np.float64)
        yield values if chunk.missing is None else np.where(chunk.missing, np.nan, values)


def _paths(name: str) -> list[Path]:
    """A file, the files of a folder, or those that a pattern names."""
    path = Path(name)
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.is_file() and not each.name.startswith((".", "_")))
    elif any(letter in name for letter in "*?[") and not path.exists():
        found = sorted(Path(each) for each in glob(name, recursive=True))
    else:
        return [path]
    if not found:
        raise TableError(f"{name}: there are no files.")
    return found


Part = tuple[Kind | None, Codes, int]


def _part(array: Any) -> Part:
    """The kind of an array (None for one of nulls only), the codes of its rows, and how many are missing."""
    import pyarrow as pa

    if isinstance(array, np.ndarray):
        return _of_numpy(array, 0)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _part(array.dictionary_decode())
    if pa.types.is_null(kind):
        return None, np.zeros(0, dtype=np.int64), len(array)
    missing, array = array.null_count, array.drop_null() if array.null_count else array
    if pa.types.is_floating(kind):
        return _of_numpy(array.cast(pa.float64()).to_numpy(zero_copy_only=False), missing)
    if pa.types.is_integer(kind):
        return _of_numpy(array.to_numpy(zero_copy_only=False), missing)
    if pa.types.is_decimal(kind):
        if kind.bit_width > 128:
            return _of_numpy(array.cast(pa.float64()).to_numpy(zero_copy_only=False), missing)
        return _decimals(kind.scale), _unscaled(array.cast(pa.decimal128(38, kind.scale))), missing
    if pa.types.is_date32(kind):
        days = array.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
        return _times("date", "D", np.datetime64), days, missing
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date64(kind):
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        scalar = np.timedelta64 if pa.types.is_duration(kind) else np.datetime64
        codes = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return _times(str(kind), unit, scalar), np.maximum(codes, LEAST + 1), missing
    raise ItemTypeError(f"data must be numbers, dates, timestamps or durations; the column holds {array.type}.")


def _of_numpy(array: NDArray[Any], missing: int) -> Part:
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = array.astype(np.float64)
        there = ~np.isnan(values)
        number = int(np.count_nonzero(there))
        return FLOATS, codes_of(values if number == values.size else values[there]), missing + values.size - number
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        return UNSIGNED, (array.astype(np.uint64) ^ np.uint64(2**63)).view(np.int64), missing
    return INTEGERS, array.astype(np.int64), missing


def _unscaled(array: Any) -> Codes:
    """The integers of 128-bit decimals, saturated at 64 bits."""
    words = np.frombuffer(array.buffers()[1], dtype=np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = words[:, 0], words[:, 1]
    return np.where(high == low >> 63, low, np.where(high < 0, LEAST, MOST))


def hinted(kind: Kind, low: Any, high: Any, decimals: int | None) -> Base:
    """The base of a column's answers, with public hints: between which values they lie, with how many decimals."""
    base = kind.base
    if decimals is not None:
        if not base.of_doubles:
            raise ParameterError(f"decimals is for columns of floats; this column is {kind.name}.")
        base = base_of_decimals(integer("decimals", decimals, 0, MOST_DECIMALS))
    first, last = (_hint(kind, name, value) for name, value in (("low", low), ("high", high)))
    least = base.low if first is None else max(base.low, math.ceil(first))
    most = base.high if last is None else min(base.high, math.floor(last))
    if least > most or not Regions(base.components, least, np.zeros(0, dtype=np.int64), most).exact(0):
        raise ParameterError(f"low and high must leave something to answer; between {low} and {high} there is nothing.")
    return base.within(None if first is None else least, None if last is None else most)


def _hint(kind: Kind, name: str, value: Any) -> Fraction | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool) or value != value:
            raise ValueError
        return kind.code(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        pass
    raise ParameterTypeError(f"{name} must be a value of the column, which is {kind.name}; {value!r} is not.")
