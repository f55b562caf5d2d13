"""Many lines of one JSON object each, read together by Arrow where each is what it is by itself.

A name with dots, such as ``http.duration_ms``, is that of a field or leads into objects: ``field_of`` says how.
"""

import json
import re
from typing import Any, Final

from dpfrugal.inputs.log_lines import LogRows

# So few lines are read sooner than Arrow is.
FEW_OBJECTS: Final = 50
# What may be an ASCII character in another guise.
ESCAPED: Final = re.compile(rb"\\(?:u00[2-7]|/)")


def field_of(found: dict[str, Any], name: str) -> Any:
    """The field with this name; a name with dots also leads into objects, where there is no such field."""
    if name in found:
        return found[name]
    first, dot, rest = name.partition(".")
    if not dot or not isinstance(inner := found[first], dict):
        raise KeyError(name)
    return field_of(inner, rest)


def rows_of_objects(text: bytes, value: str, key: str | None, person: str | None) -> LogRows | None:
    """The rows of lines that are one JSON object each, with a number and with text; None where one may not be that.

    The first line says where the fields are, and whether keys and persons are text or whole numbers. Each line must
    begin and end with a brace: then no object reaches over a line, as a comma would have to stand between, and as many
    rows as lines are one in each.
    """
    lines = text.count(b"\n")
    whole = text[:1] == b"{" and text[-2:] == b"}\n" and text.count(b"}\n{") == lines - 1
    if lines < FEW_OBJECTS or not whole:
        return None
    names = [name for name in (value, key, person) if name is not None]
    try:
        places = _places(text, names)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    import pyarrow as pa
    import pyarrow.json

    try:
        text.decode()
        table = pa.json.read_json(
            pa.BufferReader(text),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=pa.schema([*_type_of(places)]), unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    columns = [_column(table, path) for path, _ in places]
    if len(table) != lines or any(column.null_count for column in columns):
        return None
    several = (column.cast(pa.string()) for column in columns[1:])
    keys, persons = (None if name is None else next(several) for name in (key, person))
    return LogRows(columns[0].to_numpy(), keys, persons)


def _places(text: bytes, names: list[str]) -> list[tuple[list[str], str]]:
    """Where the first line has each field, and which type: float, int or text; an error where another line may differ.

    A field of the whole name comes first in every line, so where all lines have it nothing else counts. One within
    objects counts where no line has a shorter way: none of the names of those occurs.
    """
    first = json.loads(text[: text.index(b"\n")])
    places = []
    for at, name in enumerate(names):
        found = field_of(first, name)
        if at and (isinstance(found, bool) or not isinstance(found, str | int)):
            raise TypeError("neither text nor a whole number")
        path = [name] if name in first else name.split(".")
        if len(path) > 1:
            shorter = (".".join(path[depth:]) for depth in range(len(path) - 1))
            if not name.isascii() or ESCAPED.search(text) or any(f'"{each}"'.encode() in text for each in shorter):
                raise ValueError("another line may have the field in another place")
        places.append((path, "float" if not at else "text" if isinstance(found, str) else "int"))
    if len({tuple(path) for path, _ in places}) < len(places):
        raise ValueError("one field is two columns")
    return places


def _type_of(places: list[tuple[list[str], str]]) -> list[Any]:
    """The fields of a schema that has these places."""
    import pyarrow as pa

    types = {"float": pa.float64(), "int": pa.int64(), "text": pa.string()}
    fields = []
    for name in dict.fromkeys(path[0] for path, _ in places):
        here = [(path[1:], kind) for path, kind in places if path[0] == name]
        if not all(path for path, _ in here):
            if len(here) > 1:
                raise pa.ArrowInvalid("a field and an object have one name")
            fields.append(pa.field(name, types[here[0][1]]))
        else:
            fields.append(pa.field(name, pa.struct(_type_of(here))))
    return fields


def _column(table: Any, path: list[str]) -> Any:
    """The values at a place; null where there is no such object."""
    import pyarrow.compute as pc

    column = table.column(path[0]).combine_chunks()
    return pc.struct_field(column, path[1:]) if len(path) > 1 else column
