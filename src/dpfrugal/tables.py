"""Tables: one column of a file, in batches of bounded size.

Parquet, CSV, JSON Lines and Arrow IPC, read through pyarrow; a file's kind is told by its first bytes, then by
its name. A missing or non-numeric column and a damaged file are reported in one sentence, a text line that is no number
by its line number. pyarrow's own messages quote what they could not read, so they are never passed on.
"""

import csv
import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO, cast

import pyarrow as pa

from dpfrugal.errors import TableError

Format = Literal["parquet", "csv", "ndjson", "arrow"]
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
}
BATCH_ROWS = 1 << 17
BLOCK_BYTES = 1 << 20
HEAD_LINES = 1000
UNREADABLE = (csv.Error, UnicodeDecodeError, OSError, EOFError, zlib.error)


@dataclass(frozen=True)
class Column:
    """A column of numbers: its size in some unit of progress (0: unknown), and its batches with their progress."""

    name: str
    total: int
    unit: Literal["rows", "bytes"]
    batches: Iterator[tuple[Any, int]]


def open_column(path: Path, column: str | None = None, file_format: Format | None = None) -> Column:
    """The column of that name; it may be left out where the file has only one."""
    if not path.exists():
        raise TableError(f"{path}: there is no such file.")
    if path.is_dir():
        raise TableError(f"{path}: this is a folder; name one file.")
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror}).") from None
    if not size:
        raise TableError(f"{path}: the file is empty.")
    readers: dict[Format, Callable[[Path, str | None], Column]] = {
        "parquet": _parquet,
        "csv": _csv,
        "ndjson": _ndjson,
        "arrow": _arrow,
    }
    return readers[file_format or _format_of(path, head)](path, column)


def _format_of(path: Path, head: bytes) -> Format:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    raise TableError(f"{path}: its kind cannot be told from its name; use --format parquet, csv, ndjson or arrow.")


def _chosen(path: Path, names: list[str], column: str | None) -> str:
    if column is None:
        if len(names) == 1:
            return names[0]
        raise TableError(f"{path}: choose a column with --column; there are {', '.join(names)}.")
    if column not in names:
        raise TableError(f"{path}: there is no column {column!r}; there are {', '.join(names)}.")
    return column


def _numeric(path: Path, name: str, kind: pa.DataType) -> None:
    value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if not any(check(value_kind) for check in is_number):
        raise TableError(f"{path}: column {name!r} is not numeric; it holds {kind}.")


def _damaged(path: Path, kind: str) -> TableError:
    return TableError(f"{path}: this is no readable {kind} file; it may be truncated or damaged.")


def _no_object(path: Path, line: int) -> TableError:
    return TableError(f"{path}: line {line} is no JSON object; JSON Lines takes one object per line.")


def _parquet(path: Path, column: str | None) -> Column:
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError):
        raise _damaged(path, "Parquet") from None
    name = _chosen(path, file.schema_arrow.names, column)
    _numeric(path, name, file.schema_arrow.field(name).type)

    def batches() -> Iterator[tuple[pa.Array, int]]:
        try:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=[name]):
                yield batch.column(0), batch.num_rows
        except (pa.ArrowException, OSError):
            raise _damaged(path, "Parquet") from None

    return Column(name, file.metadata.num_rows, "rows", batches())


def _arrow(path: Path, column: str | None) -> Column:
    try:
        source = pa.memory_map(str(path))
        try:
            reader = pa.ipc.open_file(source)
            total = reader.count_rows()
            records = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            source.seek(0)
            reader = pa.ipc.open_stream(source)
            total, records = 0, iter(reader)
    except (pa.ArrowException, OSError):
        raise _damaged(path, "Arrow IPC") from None
    name = _chosen(path, reader.schema.names, column)
    _numeric(path, name, reader.schema.field(name).type)

    def batches() -> Iterator[tuple[pa.Array, int]]:
        try:
            for record in records:
                record.validate()
                yield record.column(name), record.num_rows
        except (pa.ArrowException, OSError):
            raise _damaged(path, "Arrow IPC") from None

    return Column(name, total, "rows", batches())


def _csv(path: Path, column: str | None) -> Column:
    import pyarrow.csv as pc

    delimiter = "\t" if ".tsv" in path.suffixes else ","
    with _text(path) as file:
        try:
            header = next(csv.reader(file, delimiter=delimiter), [])
        except UNREADABLE:
            raise _damaged(path, "CSV") from None
    bare = column is None and len(header) == 1 and _is_number(header[0])  # numbers, one per line, and no header
    name = "value" if bare else _chosen(path, header, column)

    def open_reader(source: Any) -> Any:
        return pc.open_csv(
            source,
            read_options=pc.ReadOptions(block_size=BLOCK_BYTES, column_names=[name] if bare else None),
            parse_options=pc.ParseOptions(delimiter=delimiter, newlines_in_values=not bare),
            convert_options=pc.ConvertOptions(column_types={name: pa.float64()}, include_columns=[name]),
        )

    def bad_line() -> TableError:
        with _text(path) as file:
            rows = csv.reader(file, delimiter=delimiter)
            at, nulls = header.index(name) if not bare else 0, set(pc.ConvertOptions().null_values)
            try:
                for i, row in enumerate(rows):
                    if (
                        (i or bare)
                        and row
                        and (len(row) != len(header) or not (row[at] in nulls or _is_number(row[at])))
                    ):
                        return TableError(f"{path}: line {rows.line_num} has no number in column {name!r}.")
            except UNREADABLE:
                pass
        return _damaged(path, "CSV")

    return _text_column(path, name, open_reader, bad_line)


def _ndjson(path: Path, column: str | None) -> Column:
    import pyarrow.json as pj

    names: dict[str, None] = {}  # in order of appearance
    with _text(path) as file:
        try:
            for i, line in enumerate(itertools.islice(file, HEAD_LINES), start=1):
                record = json.loads(line) if line.strip() else {}
                if not isinstance(record, dict):
                    raise _no_object(path, i)
                names |= dict.fromkeys(record)
        except (json.JSONDecodeError, *UNREADABLE):
            raise _damaged(path, "JSON Lines") from None
    name = _chosen(path, list(names), column)

    def open_reader(source: Any) -> Any:
        return pj.open_json(
            source,
            read_options=pj.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([(name, pa.float64())]), unexpected_field_behavior="ignore"
            ),
        )

    def bad_line() -> TableError:
        with _text(path) as file:
            i = 0
            try:
                for i, line in enumerate(file, start=1):
                    record = json.loads(line) if line.strip() else {}
                    item = record.get(name) if isinstance(record, dict) else ""
                    if not (item is None or (isinstance(item, int | float) and not isinstance(item, bool))):
                        return TableError(f"{path}: line {i} has no number in column {name!r}.")
            except json.JSONDecodeError:
                return _no_object(path, i)
            except UNREADABLE:
                pass
        return _damaged(path, "JSON Lines")

    return _text_column(path, name, open_reader, bad_line)


def _text_column(
    path: Path, name: str, open_reader: Callable[[Any], Any], bad_line: Callable[[], TableError]
) -> Column:
    """A column of a text file; progress is counted in bytes of the file as it lies on disk."""

    def batches() -> Iterator[tuple[pa.Array, int]]:
        with path.open("rb") as file:
            compressed = path.suffix.lower() == ".gz"
            source = pa.input_stream(file, compression="gzip") if compressed else file
            before = 0
            try:
                for batch in open_reader(source):
                    yield batch.column(0), file.tell() - before
                    before = file.tell()
            except (pa.ArrowException, OSError):
                raise bad_line() from None

    return Column(name, path.stat().st_size, "bytes", batches())


def _text(path: Path) -> TextIO:
    if path.suffix.lower() == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8", newline=""))
    return path.open(encoding="utf-8-sig", newline="")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
