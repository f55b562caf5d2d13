"""Columns of CSV and JSON Lines files, plain or gzipped.

If pyarrow refuses a file, the file is read again, slowly, to name the line at fault. In a CSV file of one column a
blank line is a missing item, as databases write it, and so is a first line that is a null rather than a header.
"""

import csv
import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import pyarrow as pa

from dpfrugal.errors import TableError
from dpfrugal.inputs.columns import Column, attempt, chosen, damaged

BLOCK_BYTES = 1 << 20
HEAD_LINES = 1000
UNREADABLE = (csv.Error, UnicodeDecodeError, EOFError, zlib.error, json.JSONDecodeError, RecursionError)


def csv_column(path: Path, column: str | None, beside: tuple[str, ...] = ()) -> Column:
    """A column of a CSV file, named by its header; a file of bare numbers, one per line, needs no header.

    Columns beside it are read as text: whether all their cells are numbers is not known before the end. An empty cell
    is a missing one.
    """
    import pyarrow.csv as pc

    delimiter = "\t" if ".tsv" in path.suffixes else ","
    nulls = set(pc.ConvertOptions().null_values)

    def is_item(text: str) -> bool:
        return text in nulls or _is_number(text)

    def first_row() -> list[str]:
        with _text(path) as file:
            return next(csv.reader(file, delimiter=delimiter), [])

    header = attempt(first_row, _not_text(path, "CSV"), UNREADABLE) or [""]
    bare = len(header) == 1 and is_item(header[0])
    if bare and column is not None:
        raise TableError(f"{path}: the first line looks like data, not a header; leave out --column.")
    if not bare and any(_is_number(cell) for cell in header):
        raise TableError(f"{path}: the first line looks like data, not a header; write one above it.")
    if bare and beside:
        raise TableError(f"{path}: the first line looks like data, not a header; write one above it.")
    name = "value" if bare else chosen(path, header, column)
    others = [chosen(path, header, other) for other in beside]

    def open_reader(source: Any) -> Any:
        single = len(header) == 1
        types = {name: pa.float64()} | dict.fromkeys(others, pa.string())
        return pc.open_csv(
            source,
            read_options=pc.ReadOptions(block_size=BLOCK_BYTES, column_names=[name] if bare else None),
            parse_options=pc.ParseOptions(
                delimiter=delimiter, newlines_in_values=not single, ignore_empty_lines=not single
            ),
            convert_options=pc.ConvertOptions(column_types=types, include_columns=[name, *others]),
        )

    def bad_line() -> TableError:
        at = 0 if bare else header.index(name)
        with _text(path) as file:
            rows = csv.reader(file, delimiter=delimiter)
            for row in itertools.islice(rows, 0 if bare else 1, None):
                if row and len(row) != len(header):
                    return TableError(
                        f"{path}: line {rows.line_num} has {len(row)} fields, the first line has {len(header)}."
                    )
                if row and not is_item(row[at]):
                    return _no_number(path, rows.line_num, name, "a missing value must be an empty field")
        return damaged(path, "CSV")

    return _text_column(path, name, open_reader, bad_line, "CSV", others, beside_item=_present)


def ndjson_column(path: Path, column: str | None, beside: tuple[str, ...] = ()) -> Column:
    """A field of a JSON Lines file, one object per line; an absent field is a missing item.

    Fields beside it have the type of their first value.
    """
    import pyarrow.json as pj

    def first_fields() -> dict[str, Any]:
        fields: dict[str, Any] = {}  # in order of appearance
        with _text(path) as file:
            for i, line in enumerate(itertools.islice(file, HEAD_LINES), start=1):
                record = json.loads(line, parse_int=lambda digits: 0) if line.strip() else {}
                if not isinstance(record, dict):
                    raise _not_object(path, i)
                for field, value in record.items():
                    fields[field] = value if fields.get(field) is None else fields[field]
        return fields

    fields = attempt(first_fields, _not_text(path, "JSON Lines"), UNREADABLE)
    name, *others = [chosen(path, list(fields), wanted) for wanted in (column, *beside)]
    types = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
    if wrong := [other for other in others if type(fields[other]) not in types]:
        raise TableError(
            f"{path}: {wrong[0]!r} must hold strings, integers or truth values to be a column of keys or persons."
        )

    def open_reader(source: Any) -> Any:
        schema = pa.schema([(name, pa.float64()), *((other, types[type(fields[other])]) for other in others)])
        return pj.open_json(
            source,
            read_options=pj.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )

    def bad_line() -> TableError:
        with _text(path) as file:
            for i, line in enumerate(file, start=1):
                try:
                    record = json.loads(line, parse_int=float) if line.strip() else {}
                except (json.JSONDecodeError, RecursionError):
                    return _not_object(path, i)
                item = record.get(name) if isinstance(record, dict) else ""
                if not (item is None or (isinstance(item, float) and abs(item) != float("inf"))):
                    return _no_number(path, i, name, "a missing value must be null")
                for other in others:
                    if record.get(other) is not None and type(record[other]) is not _as_float(type(fields[other])):
                        return TableError(f"{path}: line {i} has another type of {other!r} than the first line.")
        return damaged(path, "JSON Lines")

    return _text_column(path, name, open_reader, bad_line, "JSON Lines", others)


def _as_float(kind: type) -> type:
    """The type of a JSON value when integers are read as floats, because they may be too long."""
    return float if kind is int else kind


def _text_column(
    path: Path,
    name: str,
    open_reader: Callable[[Any], Any],
    bad_line: Callable[[], TableError],
    kind: str,
    others: list[str],
    beside_item: Callable[[Any], Any] = lambda column: column,
) -> Column:
    """A column of a text file; progress is counted in bytes on disk."""

    def pick(batch: Any) -> Any:
        if not others:
            return batch.column(0)
        beside = [beside_item(batch.column(other)) for other in others]
        return pa.RecordBatch.from_arrays([batch.column(name), *beside], names=[name, *others])

    def batches() -> Iterator[tuple[Any, int]]:
        failed = False
        try:
            # pyarrow reads ahead in its own thread, even past an error. A Python file would then abort a program that
            # exits meanwhile; pyarrow's own file is closed by whoever holds it last.
            file = pa.OSFile(str(path))
            source = pa.input_stream(file, compression="gzip") if path.suffix.lower() == ".gz" else file
            before = 0
            with open_reader(source) as reader:
                for batch in reader:
                    yield pick(batch), file.tell() - before
                    before = file.tell()
        except (pa.ArrowException, OSError):
            failed = True
        if failed:
            raise attempt(bad_line, damaged(path, kind), UNREADABLE)

    return Column(name, path.stat().st_size, "bytes", batches())


def _present(texts: Any) -> Any:
    """The texts with empty ones as nulls. Whether others, such as NA, mean a missing value cannot be known."""
    import pyarrow.compute as pc

    empty = pc.equal(texts, "")
    return pc.if_else(empty, pa.scalar(None, texts.type), texts) if pc.any(empty).as_py() else texts


def _text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _not_text(path: Path, kind: str) -> TableError:
    return TableError(
        f"{path}: this is not a readable {kind} file in UTF-8; it may be damaged, compressed or in another encoding."
    )


def _no_number(path: Path, line: int, name: str, missing: str) -> TableError:
    return TableError(f"{path}: line {line}, column {name!r}: not a number ({missing}).")


def _not_object(path: Path, line: int) -> TableError:
    return TableError(f"{path}: line {line} is not a JSON object; JSON Lines has one object per line.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
