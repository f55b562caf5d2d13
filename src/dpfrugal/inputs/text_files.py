"""Columns of text tables: CSV and JSON Lines, plain or gzipped.

Where pyarrow gives up, the file is read once more, slowly, to name the line that is at fault. In a CSV of one column a
blank line is a missing item, as databases write it; and so is a first line that is a null, not a header.
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
    """A column of a CSV file, by its header; a file of bare numbers, one per line, needs none.

    What is beside it is text, as it stands there: whether all of it looks like a number is not known before the end.
    Where it is empty it is missing.
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
                    return _no_number(path, rows.line_num, name)
        return damaged(path, "CSV")

    return _text_column(path, name, open_reader, bad_line, "CSV", others, beside_item=_present)


def ndjson_column(path: Path, column: str | None, beside: tuple[str, ...] = ()) -> Column:
    """A field of JSON Lines: one object per line; a field that is absent is a missing item.

    What is beside it is of the type that it first has.
    """
    import pyarrow.json as pj

    def first_fields() -> dict[str, Any]:
        fields: dict[str, Any] = {}  # in order of appearance
        with _text(path) as file:
            for i, line in enumerate(itertools.islice(file, HEAD_LINES), start=1):
                record = json.loads(line, parse_int=lambda digits: 0) if line.strip() else {}
                if not isinstance(record, dict):
                    raise _no_object(path, i)
                for field, value in record.items():
                    fields[field] = value if fields.get(field) is None else fields[field]
        return fields

    fields = attempt(first_fields, _not_text(path, "JSON Lines"), UNREADABLE)
    name, *others = [chosen(path, list(fields), wanted) for wanted in (column, *beside)]
    types = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
    if wrong := [other for other in others if type(fields[other]) not in types]:
        raise TableError(f"{path}: {wrong[0]!r} must hold strings, integers or truth values to group by.")

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
                    return _no_object(path, i)
                item = record.get(name) if isinstance(record, dict) else ""
                if not (item is None or (isinstance(item, float) and abs(item) != float("inf"))):
                    return _no_number(path, i, name)
                for other in others:
                    if record.get(other) is not None and type(record[other]) is not _as_float(type(fields[other])):
                        return TableError(f"{path}: line {i} has another type of {other!r} than the first line.")
        return damaged(path, "JSON Lines")

    return _text_column(path, name, open_reader, bad_line, "JSON Lines", others)


def _as_float(kind: type) -> type:
    """How a JSON value of a kind is read where integers may be too long for an integer."""
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
    """A column of a text file; progress is counted in bytes of the file as it lies on disk."""

    def pick(batch: Any) -> Any:
        if not others:
            return batch.column(0)
        beside = [beside_item(batch.column(other)) for other in others]
        return pa.RecordBatch.from_arrays([batch.column(name), *beside], names=[name, *others])

    def batches() -> Iterator[tuple[Any, int]]:
        failed = False
        try:
            # pyarrow reads ahead in a thread of its own, even past an error. So the file is pyarrow's, not Python's,
            # which would abort a program that ends meanwhile; and nobody closes it but the last that holds it.
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
    """Texts, null where they are empty. Whether others, such as NA, are meant as missing cannot be known."""
    import pyarrow.compute as pc

    empty = pc.equal(texts, "")
    return pc.if_else(empty, pa.scalar(None, texts.type), texts) if pc.any(empty).as_py() else texts


def _text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _not_text(path: Path, kind: str) -> TableError:
    return TableError(f"{path}: this is no readable {kind} file in UTF-8; it may be damaged, compressed or encoded.")


def _no_number(path: Path, line: int, name: str) -> TableError:
    return TableError(f"{path}: line {line} has no number in column {name!r}; leave a missing one empty.")


def _no_object(path: Path, line: int) -> TableError:
    return TableError(f"{path}: line {line} is no JSON object; JSON Lines takes one object per line.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
