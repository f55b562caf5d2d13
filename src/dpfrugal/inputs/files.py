"""A column of numbers from a Parquet, CSV, JSON Lines or Arrow file, in batches of bounded size.

Other columns (keys, persons) can be read beside it. A file's format is detected from its first bytes, then from its
name; a pipe is text. pyarrow reads all formats; the text formats are in ``csv_and_json``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from dpfrugal.errors import TableError
from dpfrugal.inputs import csv_and_json
from dpfrugal.inputs.columns import Column, attempt, chosen, damaged
from dpfrugal.inputs.file_source import FileSource

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
BUFFER_BYTES = 1 << 20
# Bytes per string in a Parquet file, below which its strings are worth reading dictionary-encoded, and above which they
# must be: a few kilobytes of file may stand for gigabytes of repeated text.
FEW_BYTES, MANY_BYTES = 4, 64
LONGEST_CELL = 1 << 20
Beside = tuple[str, ...]


def open_column(
    path: Path,
    column: str | None = None,
    file_format: Format | None = None,
    beside: Beside = (),
    *,
    header: bool | None = None,
) -> Column:
    """The column of that name, which may be left out if the file has only one.

    With ``beside`` the batches are record batches: the column, then the columns beside it. ``header`` is for CSV files
    (``csv_and_json``).
    """
    return open_source(FileSource.of(path), column, file_format, beside, header=header)


def open_source(
    source: FileSource,
    column: str | None = None,
    file_format: Format | None = None,
    beside: Beside = (),
    *,
    header: bool | None = None,
    any_type: bool = False,
    any_text: bool = False,
) -> Column:
    """The same of a file that was found; ``any_type``: columns that hold no numbers are not refused, nor are times.

    ``any_text``: nor are cells of CSV files, which are then missing.
    """
    path = source.path
    if len({column, *beside}) < 1 + len(beside):
        raise TableError(f"{path}: --column, --by and --person must name different columns.")
    size, head = attempt(lambda: (source.size, source.head()), TableError(f"{path}: the file cannot be read."))
    if not size:
        raise TableError(f"{path}: the file is empty.")
    chosen_format = file_format or format_of(source, head)
    if chosen_format == "csv":
        times = any_type and not any_text
        return csv_and_json.csv_column(source, column, beside, header, any_text=any_text, times=times)
    if header is not None:
        raise TableError(f"{path}: header is for CSV files; this one is {chosen_format}.")
    if chosen_format == "ndjson":
        return csv_and_json.ndjson_column(source, column, beside, times=any_type)
    reader = _parquet if chosen_format == "parquet" else _arrow
    return reader(source, column, beside, any_type)


def format_of(source: FileSource, head: bytes) -> Format:
    """The format that the first bytes tell, or else the name."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    suffixes = source.suffixes
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    if not source.again or source.path.is_relative_to("/dev"):  # a name that says nothing
        return "csv"
    raise TableError(f"{source.path}: the name does not tell the format; use --format parquet, csv, ndjson or arrow.")


def _names(path: Path, schema: Any, kind: str) -> list[str]:
    """The names of the columns; in a damaged file they may not be text."""
    names: list[str] = attempt(lambda: schema.names, damaged(path, kind), (UnicodeDecodeError,))
    return names


def _numeric(path: Path, name: str, kind: pa.DataType) -> None:
    value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    if not any(check(value_kind) for check in is_number):
        raise TableError(f"{path}: column {name!r} is not numeric; it holds {kind}.")


def _batches(records: Iterator[Any], pick: Callable[[Any], Any], failure: TableError) -> Iterator[tuple[Any, int]]:
    """The picked columns of every record batch, with its number of rows."""
    while (picked := attempt(lambda: next(map(pick, records), None), failure)) is not None:
        yield picked, len(picked)


def _parquet(source: FileSource, column: str | None, beside: Beside, any_type: bool) -> Column:
    import pyarrow.parquet as pq

    path = source.path

    # With pre_buffer pyarrow holds whole row groups and takes twice the time on a local disk; without a buffer size it
    # holds each column of a row group as a whole.
    def opened(**options: Any) -> Any:
        return pq.ParquetFile(source.opened(), pre_buffer=False, buffer_size=BUFFER_BYTES, **options)

    file = attempt(opened, damaged(path, "Parquet"), (UnicodeDecodeError,))
    names = _names(path, file.schema_arrow, "Parquet")
    name, *others = [chosen(path, names, wanted) for wanted in (column, *beside)]
    if not any_type:
        _numeric(path, name, file.schema_arrow.field(name).type)
    for other in others:
        _of_bounded_cells(path, file, other)
    if encoded := [other for other in others if _is_dictionary_encoded(file, other)]:
        file = attempt(lambda: opened(read_dictionary=encoded), damaged(path, "Parquet"))
    # pyarrow's threads would gain nothing: one column is most of the work.
    records = file.iter_batches(batch_size=BATCH_ROWS, columns=[name, *others], use_threads=False)
    picked = _picker([name, *others])

    def pick(record: Any) -> Any:
        for other in others:
            _refuse_long_cells(path, other, record.column(other))
        return picked(record)

    batches = _batches(records, pick, damaged(path, "Parquet"))
    return Column(name, file.metadata.num_rows, "rows", batches)


def bounded_cells(source: FileSource, name: str) -> Iterator[Any]:
    """A column of a Parquet file, whatever its type, in batches; a cell that is too long is refused before the next."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source.opened(), pre_buffer=False, buffer_size=BUFFER_BYTES)
    _of_bounded_cells(source.path, file, name)
    encoded = _is_dictionary_encoded(file, name)
    if encoded:
        file = pq.ParquetFile(source.opened(), pre_buffer=False, buffer_size=BUFFER_BYTES, read_dictionary=[name])
    for record in file.iter_batches(batch_size=BATCH_ROWS, columns=[name], use_threads=False):
        cells = record.column(0)
        _refuse_long_cells(source.path, name, cells)
        yield cells.dictionary_decode() if encoded else cells


def _is_dictionary_encoded(file: Any, name: str) -> bool:
    """Whether a column of strings is stored as distinct strings and references to them, and best read as such."""
    if file.schema_arrow.field(name).type not in (pa.string(), pa.large_string()) or not file.num_row_groups:
        return False
    chunk = file.metadata.row_group(0).column(_position(file, name))
    few, many = FEW_BYTES * chunk.num_values, MANY_BYTES * chunk.num_values
    return bool(chunk.has_dictionary_page and not few <= chunk.total_uncompressed_size <= many)


def _position(file: Any, name: str) -> int:
    return [file.schema.column(i).path for i in range(len(file.schema))].index(name)


def _of_bounded_cells(path: Path, file: Any, name: str) -> None:
    """Refuse, before it is read, a column whose cells are too long on average."""
    if pa.types.is_nested(file.schema_arrow.field(name).type):
        return
    at = _position(file, name)
    for group in range(file.num_row_groups):
        chunk = file.metadata.row_group(group).column(at)
        if chunk.total_uncompressed_size > LONGEST_CELL * (chunk.num_values + 1):
            raise _long_cell(path, name)


def _refuse_long_cells(path: Path, name: str, cells: Any) -> None:
    import pyarrow.compute as pc

    values = cells.dictionary if pa.types.is_dictionary(cells.type) else cells
    if any(check(values.type) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)):
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is not None and longest > LONGEST_CELL:
            raise _long_cell(path, name)


def _long_cell(path: Path, name: str) -> TableError:
    return TableError(f"{path}: column {name!r} has a cell of more than {LONGEST_CELL:,} bytes, which is the limit.")


def _picker(names: list[str]) -> Callable[[Any], Any]:
    """Takes from a record batch the one column, or all columns that were asked for."""
    return lambda record: record.column(names[0]) if len(names) == 1 else record.select(names)


def _arrow(source: FileSource, column: str | None, beside: Beside, any_type: bool) -> Column:
    path = source.path

    def opened(fields: list[int] | None = None) -> tuple[Any, int, Iterator[Any]]:
        # Not mapped into memory: reading a file that is truncated meanwhile would end the process.
        file, options = source.opened(), pa.ipc.IpcReadOptions(included_fields=fields)
        try:
            reader = pa.ipc.open_file(file, options=options)
        except pa.ArrowInvalid:
            file.seek(0)
            reader = pa.ipc.open_stream(file, options=options)
            return reader.schema, 0, iter(reader)
        rows = getattr(reader, "count_rows", int)()  # for progress; before pyarrow 26 they are not known beforehand
        return reader.schema, rows, (reader.get_batch(i) for i in range(reader.num_record_batches))

    def pick(record: Any) -> Any:
        record.validate()
        return _picker([name, *others])(record)

    schema, _, _ = attempt(opened, damaged(path, "Arrow IPC"))
    names = _names(path, schema, "Arrow IPC")
    name, *others = [chosen(path, names, wanted) for wanted in (column, *beside)]
    if not any_type:
        _numeric(path, name, schema.field(name).type)
    wanted = sorted(map(names.index, (name, *others)))
    _, total, records = attempt(lambda: opened(wanted), damaged(path, "Arrow IPC"))
    return Column(name, total, "rows", _batches(records, pick, damaged(path, "Arrow IPC")))
