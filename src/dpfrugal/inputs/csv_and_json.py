"""Columns of CSV and JSON Lines files, plain, gzipped or compressed with Zstandard.

A CSV file has a header if the caller names a column, or says so (``header=True``); otherwise it is one bare column of
numbers. The rule looks at no cell, as a cell may be data. For the same reason the cells of a first line are shown as
the names there are only if the caller has said that it is a header, or if another named column is among them. Columns
are divided by tabs in a ``.tsv`` file, else by the first of comma, semicolon and tab that divides the header line into
cells among which the named columns are. Where semicolons divide them, a number may have a decimal comma, as programs
write it where the comma is the decimal mark; ``1,234.5`` and ``1,234,567`` are refused there.

A column is of floats, however whole its numbers look, or where its first cell is a date or a timestamp in ISO 8601, of
these (``times``). All its cells must be of that kind, so no row by itself can choose the type of an answer: it can only
have the file refused.

If pyarrow refuses a file, the file is read again, slowly, to name the line at fault. In a CSV file of one column a
blank line is a missing item, as databases write it.
"""

import csv
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpfrugal.errors import TableError
from dpfrugal.inputs.columns import Column, attempt, chosen, damaged
from dpfrugal.inputs.file_source import BLOCK_BYTES, LONGEST_LINE, FileSource

# A cell may be as long as a line; Python's own limit of 131,072 letters, of the whole process, is only ever raised.
csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))

HEAD_LINES = 1000
TIME = re.compile(r"\s*\d{1,4}[-/.:]\d{1,2}([-/.:]\d{1,4})?")
LENGTH_OF_DATE = len("2026-03-01")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(?P<zone>Z|[+-]\d{2}(:?\d{2})?)?")
NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
UNREADABLE = (csv.Error, UnicodeDecodeError, EOFError, zlib.error, json.JSONDecodeError, RecursionError)


def csv_column(
    source: FileSource,
    column: str | None,
    beside: tuple[str, ...] = (),
    header: bool | None = None,
    *,
    any_text: bool = False,
    times: bool = False,
) -> Column:
    """A column of a CSV file, named by its header; a file of bare numbers, one per line, has none.

    With ``any_text`` a cell that is no number is a missing one; with ``times`` a column may be of times.

    Columns beside it are read as text: whether all their cells are numbers is not known before the end. An empty cell
    is a missing one.
    """
    import pyarrow.csv as pc

    path = source.path
    named = [name for name in (column, *beside) if name is not None]
    if named and header is False:
        raise TableError(f"{path}: a file without a header has no column {named[0]!r}; leave out --column.")
    if bare := not (named or header):
        names, delimiter, name, others = ["value"], ",", "value", []
    else:
        names, delimiter = _header(source, named)
        if header or any(each in names for each in named):
            name, *others = [chosen(path, names, wanted) for wanted in (column, *beside)]
        else:
            raise TableError(
                f"{path}: there is no column {named[0]!r} in its first line, which must be the header; "
                "header=True shows its names."
            )
    nulls = set(pc.ConvertOptions().null_values)
    single, at = len(names) == 1, names.index(name)

    def first_cell() -> str:
        rows = itertools.islice(csv.reader(source.lines(), delimiter=delimiter), 0 if bare else 1, None)
        return next((row[at] for row in rows if len(row) > at and row[at] not in nulls), "")

    first = attempt(first_cell, _not_text(path, "CSV"), UNREADABLE) if times else ""
    item_type = pa.string() if any_text else _time_type(first) or pa.float64()
    with_commas = delimiter == ";" and item_type in (pa.string(), pa.float64())
    item = _numbers if any_text else _times_of(item_type, sorted(nulls))
    if with_commas:
        item = _with_decimal_points(item or _cast_to(pa.float64(), sorted(nulls)))

    def open_reader(stream: Any) -> Any:
        types = {name: pa.float64() if item is None else pa.string()} | dict.fromkeys(others, pa.string())
        return pc.open_csv(
            stream,
            read_options=pc.ReadOptions(block_size=BLOCK_BYTES, column_names=[name] if bare else None),
            parse_options=pc.ParseOptions(
                delimiter=delimiter, newlines_in_values=not single, ignore_empty_lines=not single
            ),
            convert_options=pc.ConvertOptions(column_types=types, include_columns=[name, *others]),
        )

    def bad_line() -> TableError:
        rows = csv.reader(source.lines(), delimiter=delimiter)
        for row in itertools.islice(rows, 0 if bare else 1, None):
            line = rows.line_num
            if bare and len(row) > 1:
                return TableError(f"{path}: line {line} has {len(row)} fields; choose a column with --column.")
            if row and len(row) != len(names):
                return TableError(f"{path}: line {line} has {len(row)} fields, the first line has {len(names)}.")
            cell = row[at].replace(",", ".", 1) if row and with_commas else row[at] if row else ""
            if row and not (any_text or cell in nulls or _is_of(item_type, cell)):
                is_header = "; if it is a header, name the column" if bare and line == 1 else ""
                return _no_item(path, line, name, item_type, f"a missing value must be an empty field{is_header}")
        return damaged(path, "CSV")

    return _text_column(source, name, open_reader, bad_line, "CSV", others, item=item, beside_item=_present)


def header_of(source: FileSource, *, stated: bool = True) -> list[str]:
    """The names in the first line of a CSV file, which is a header by the rule that only such files have names.

    Unless the caller has ``stated`` that it is one, a first line that holds a number or a time, as that of a file
    without a header would wherever it holds any, is refused: cells must not be shown as names.
    """
    names, _ = _header(source, [])
    if not stated and any(_is_number(name) or TIME.match(name) for name in names):
        raise TableError(
            f"{source.path}: the first line looks like data, not like the names of columns: name the columns to "
            "describe, or give the file a header."
        )
    if any(names.count(name) > 1 or not name for name in names):
        raise TableError(f"{source.path}: the first line must name each column, and none of them twice.")
    return names


def _header(source: FileSource, named: list[str]) -> tuple[list[str], str]:
    """The cells of the first line, and what divides them."""

    def divided(delimiter: str) -> list[str]:
        return next(csv.reader(source.lines(), delimiter=delimiter), []) or [""]

    def cells() -> tuple[list[str], str]:
        allowed = ["\t"] if ".tsv" in source.suffixes else [",", ";", "\t"]
        found = [(divided(delimiter), delimiter) for delimiter in allowed]
        return max(found, key=lambda each: sum(name in each[0] for name in named) if named else len(each[0]))

    result: tuple[list[str], str] = attempt(cells, _not_text(source.path, "CSV"), UNREADABLE)
    return result


def ndjson_column(
    source: FileSource, column: str | None, beside: tuple[str, ...] = (), *, times: bool = False
) -> Column:
    """A field of a JSON Lines file, one object per line; an absent field is a missing item.

    Fields beside it have the type of their first value; with ``times`` the field may be of times.
    """
    import pyarrow.json as pj

    path = source.path

    def first_fields() -> dict[str, Any]:
        fields: dict[str, Any] = {}  # in order of appearance
        for i, line in enumerate(itertools.islice(source.lines(), HEAD_LINES), start=1):
            record = json.loads(line, parse_int=lambda digits: 0) if line.strip() else {}
            if not isinstance(record, dict):
                raise _not_object(path, i)
            for field, value in record.items():
                fields[field] = value if fields.get(field) is None else fields[field]
        return fields

    fields = attempt(first_fields, _not_text(path, "JSON Lines"), UNREADABLE)
    name, *others = [chosen(path, list(fields), wanted) for wanted in (column, *beside)]
    first = fields[name] if times and isinstance(fields[name], str) else ""
    item_type = _time_type(first) or pa.float64()
    types = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
    if wrong := [other for other in others if type(fields[other]) not in types]:
        raise TableError(
            f"{path}: {wrong[0]!r} must hold strings, integers or truth values to be a column of keys or persons."
        )

    def open_reader(stream: Any) -> Any:
        text_type = item_type if item_type == pa.float64() else pa.string()
        schema = pa.schema([(name, text_type), *((other, types[type(fields[other])]) for other in others)])
        return pj.open_json(
            stream,
            read_options=pj.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )

    def bad_line() -> TableError:
        for i, line in enumerate(source.lines(), start=1):
            try:
                record = json.loads(line, parse_int=float) if line.strip() else {}
            except (json.JSONDecodeError, RecursionError):
                return _not_object(path, i)
            item = record.get(name) if isinstance(record, dict) else ""
            if not (item is None or _is_json_item(item_type, item)):
                return _no_item(path, i, name, item_type, "a missing value must be null")
            for other in others:
                if record.get(other) is not None and type(record[other]) is not _as_float(type(fields[other])):
                    return TableError(f"{path}: line {i} has another type of {other!r} than the first line.")
        return damaged(path, "JSON Lines")

    return _text_column(source, name, open_reader, bad_line, "JSON Lines", others, item=_times_of(item_type, []))


def _as_float(kind: type) -> type:
    """The type of a JSON value when integers are read as floats, because they may be too long."""
    return float if kind is int else kind


def _text_column(
    source: FileSource,
    name: str,
    open_reader: Callable[[Any], Any],
    bad_line: Callable[[], TableError],
    kind: str,
    others: list[str],
    item: Callable[[Any], Any] | None = None,
    beside_item: Callable[[Any], Any] = lambda column: column,
) -> Column:
    """A column of a text file; progress is counted in bytes on disk."""

    def pick(batch: Any) -> Any:
        items = batch.column(name) if item is None else item(batch.column(name))
        if not others:
            return items
        beside = [beside_item(batch.column(other)) for other in others]
        return pa.RecordBatch.from_arrays([items, *beside], names=[name, *others])

    def batches() -> Iterator[tuple[Any, int]]:
        failed = False
        try:
            # pyarrow reads ahead in its own thread, even past an error. A Python file would then abort a program that
            # exits meanwhile; pyarrow's own file is closed by whoever holds it last.
            file = source.opened()
            before = 0
            stream = source.decompressed(file)  # held: a stream that is collected closes the file
            with open_reader(stream) as reader:
                for batch in reader:
                    now = file.tell()  # once: another thread reads on
                    yield pick(batch), now - before
                    before = now
        except (pa.ArrowException, OSError):
            failed = True
        if failed:
            raise attempt(bad_line, damaged(source.path, kind), UNREADABLE)

    return Column(name, source.size, "bytes", batches())


def _present(texts: Any) -> Any:
    """The texts with empty ones as nulls. Whether others, such as NA, mean a missing value cannot be known."""
    import pyarrow.compute as pc

    empty = pc.equal(texts, "")
    return pc.if_else(empty, pa.scalar(None, texts.type), texts) if pc.any(empty).as_py() else texts


def _numbers(texts: Any) -> Any:
    """The texts as numbers, and nulls for those that are none."""
    import pyarrow.compute as pc

    numbers = pc.if_else(pc.match_substring_regex(texts, NUMBER), texts, pa.scalar(None, texts.type))
    return numbers.cast(pa.float64())


def _with_decimal_points(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same of texts whose first comma is a decimal point."""
    import pyarrow.compute as pc

    return lambda texts: item(pc.replace_substring(texts, ",", ".", max_replacements=1))


def _cast_to(kind: Any, nulls: list[str]) -> Callable[[Any], Any]:
    """How texts become items of this type, as a reader of CSV does it; Arrow's error where one is none."""
    import pyarrow.compute as pc

    def items(texts: Any) -> Any:
        trimmed = pc.ascii_trim_whitespace(texts)
        return pc.if_else(pc.is_in(trimmed, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), trimmed).cast(
            kind
        )

    return items


def _not_text(path: Path, kind: str) -> TableError:
    return TableError(
        f"{path}: this is not a readable {kind} file in UTF-8; it may be damaged, compressed or in another encoding."
    )


def _no_item(path: Path, line: int, name: str, kind: Any, missing: str) -> TableError:
    time = "date" if kind == pa.date32() else "timestamp"
    wanted = "number" if kind == pa.float64() else f"{time} in the form of the first one"
    return TableError(f"{path}: line {line}, column {name!r}: not a {wanted} ({missing}).")


def _not_object(path: Path, line: int) -> TableError:
    return TableError(f"{path}: line {line} is not a JSON object; JSON Lines has one object per line.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _time_type(text: str) -> Any:
    """The type of a column of times, by its first cell; None where that is no time."""
    if DATE.fullmatch(text):
        return pa.date32()
    found = TIMESTAMP.fullmatch(text)
    return found and pa.timestamp("us", "UTC" if found["zone"] else None)


def _times_of(kind: Any, nulls: list[str]) -> Callable[[Any], Any] | None:
    """How texts become times of this type, if it is one; Arrow's error where one is not in the form of the others."""
    import pyarrow.compute as pc

    def times(texts: Any) -> Any:
        present = pc.if_else(pc.is_in(texts, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), texts)
        if kind != pa.date32() and pc.any(pc.less_equal(pc.utf8_length(present), LENGTH_OF_DATE)).as_py():
            raise pa.ArrowInvalid("a date among timestamps")  # Arrow would read it as one of midnight
        return present.cast(kind)

    return None if kind == pa.float64() else times


def _is_of(kind: Any, text: str) -> bool:
    """Whether a cell is a number, or a time of this type."""
    if kind == pa.float64():
        return _is_number(text)
    try:
        date.fromisoformat(text) if kind == pa.date32() else datetime.fromisoformat(text)
    except ValueError:
        return False
    return bool(_time_type(text) == kind)


def _is_json_item(kind: Any, item: Any) -> bool:
    if kind == pa.float64():
        return isinstance(item, float) and abs(item) != float("inf")
    return isinstance(item, str) and _is_of(kind, item)
