"""Files of declared keys: text with one key per line, or columns of a Parquet, Arrow or CSV file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import csv

from dpfrugal.errors import TableError
from dpfrugal.inputs.columns import attempt, chosen
from dpfrugal.inputs.file_source import FileSource
from dpfrugal.inputs.files import bounded_cells

FORMATS: Final = {b"PAR1": "parquet", b"ARROW1": "ipc"}  # by the first bytes of a file


def read_keys(path: Path, by: str | None, key_type: Any) -> Any:
    """The keys of a file as an Arrow array; lines of text become ``key_type``, that of the column ``by``."""
    if not path.exists() or path.is_dir():
        what = "this is a folder, not a file of keys" if path.is_dir() else "there is no such file of keys"
        raise TableError(f"{path}: {what}.")
    source = FileSource.of(path)  # a pipe is held
    unreadable = TableError(f"{path}: this is not a readable file of keys: text in UTF-8, Parquet or Arrow.")
    head = attempt(source.head, TableError(f"{path}: the file cannot be read."))
    if binary := next((FORMATS[magic] for magic in FORMATS if head.startswith(magic)), None):
        if not source.again:
            raise TableError(
                f"{path}: keys in a pipe are text, one per line; give a Parquet or Arrow file by its name."
            )
        found = attempt(lambda: ds.dataset(path, format=binary), unreadable)
        name = chosen(path, found.schema.names, by if by in found.schema.names else None)
        return attempt(lambda: _column(source, found, name), unreadable)
    lines = attempt(lambda: "".join(source.lines()).splitlines(), unreadable, (UnicodeDecodeError,))
    if path.suffix.lower() == ".csv" and lines[:1] == [by]:
        lines = lines[1:]
    if not lines:
        raise TableError(f"{path}: there are no keys in it.")
    if "" in lines:
        raise TableError(f"{path}: line {lines.index('') + 1} is blank; write one key per line.")
    key_type = key_type.value_type if pa.types.is_dictionary(key_type) else key_type
    if pa.types.is_string_view(key_type) or pa.types.is_null(key_type):
        key_type = pa.string()
    wrong = TableError(f"{path}: the keys must be {key_type}, as those of {by!r} are.")
    return attempt(lambda: pa.array(lines, pa.string()).cast(key_type), wrong)


def read_key_columns(path: Path, by: Sequence[str], types: Sequence[Any]) -> Any:
    """The keys of a file of several columns, as an Arrow table: CSV with a header, Parquet or Arrow."""
    if not path.is_file():
        raise TableError(f"{path}: there is no such file of keys.")
    source = FileSource.of(path)
    head = attempt(source.head, TableError(f"{path}: the file cannot be read."))
    unreadable = TableError(f"{path}: this is not a readable file of keys: CSV in UTF-8, Parquet or Arrow.")
    if binary := next((FORMATS[magic] for magic in FORMATS if head.startswith(magic)), None):
        found = attempt(lambda: ds.dataset(path, format=binary), unreadable)
        names = [chosen(path, found.schema.names, name) for name in by]
        columns = attempt(lambda: [_column(source, found, name) for name in names], unreadable)
    else:
        as_text = csv.ConvertOptions(column_types=dict.fromkeys(by, pa.string()), strings_can_be_null=False)
        keys = attempt(lambda: csv.read_csv(path, convert_options=as_text), unreadable)
        columns = [keys.column(chosen(path, keys.column_names, name)) for name in by]
    wrong = TableError(f"{path}: the keys must have the types of the columns of --by.")
    return attempt(
        lambda: pa.table([each.cast(kind) for each, kind in zip(columns, types, strict=True)], list(by)), wrong
    )


def _column(source: FileSource, found: Any, name: str) -> Any:
    """A column of a Parquet or Arrow file; of Parquet, where few bytes may stand for many, cell by cell in bounds."""
    kind = found.schema.field(name).type
    if found.format.default_extname != "parquet" or pa.types.is_nested(kind):
        return found.to_table(columns=[name]).column(0)
    cells = list(bounded_cells(source, name))
    return pa.chunked_array(cells, None if cells else kind)
