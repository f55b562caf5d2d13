"""Results: one CSV file per figure, written row by row, and the settings they belong to.

A row is written by one call and synced to disk before the next, so an interrupt leaves whole rows only; a last line
that a crash cut short is dropped when the file is opened again. A row that exists is never computed again.
"""

import csv
import errno
import io
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dpfrugal.errors import ParameterError

FORMAT: Final = 1
Row = dict[str, str]
Key = tuple[str, ...]


class ResultsFile:
    """Rows of one kind. The key columns come first; no two rows have the same key."""

    def __init__(self, path: Path, key: tuple[str, ...], values: tuple[str, ...]) -> None:
        self._path, self._key, self._columns = path, key, (*key, *values)
        self._lock = threading.Lock()
        self._rows: dict[Key, Row] = {}
        self._load()

    def _load(self) -> None:
        whole = self._path.read_bytes() if self._path.exists() else b""
        if (end := whole.rfind(b"\n") + 1) < len(whole):
            os.truncate(self._path, end)
        lines = list(csv.reader(io.StringIO(whole[:end].decode("utf-8", errors="replace"))))
        if lines and (tuple(lines[0]) != self._columns or any(len(line) != len(self._columns) for line in lines)):
            raise ParameterError(f"{self._path} is not a results file of this version. Use --fresh to start over.")
        for line in lines[1:]:
            row = dict(zip(self._columns, line, strict=True))
            self._rows[self.key_of(row)] = row

    def key_of(self, row: Mapping[str, Any]) -> Key:
        """The key of a row, as text."""
        return tuple(_text(row.get(column)) for column in self._key)

    def __contains__(self, row: Mapping[str, Any]) -> bool:
        return self.key_of(row) in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(list(self._rows.values()))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row, unless one with its key exists."""
        texts = {column: _text(row.get(column)) for column in self._columns}
        with self._lock:
            if self.key_of(texts) in self._rows:
                return
            lines = [list(texts.values())] if self._rows else [list(self._columns), list(texts.values())]
            if not self._rows and self._path.exists():
                self._path.unlink()  # a header without rows
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                size, content = os.fstat(descriptor).st_size, _csv(lines)
                if os.write(descriptor, content) < len(content):
                    os.ftruncate(descriptor, size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._rows[self.key_of(texts)] = texts


def _text(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _csv(lines: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def open_folder(output: Path) -> Path:
    """The folder of the results inside the output folder, which must be writable."""
    folder = output / "results"
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise ParameterError(f"--output must be a folder that can be written to; {output}: {error.strerror}.") from None
    return folder


def claim_folder(folder: Path, settings: dict[str, Any], *, fresh: bool, files: list[str]) -> None:
    """Make sure that every result in ``folder`` has these settings; ``fresh`` removes ``files``, or all others."""
    settings = {"format": FORMAT, **settings}
    path = folder / "settings.json"
    found = _settings_in(path)
    if found != settings and (found is not None or any(folder.glob("*.csv"))):
        if not fresh:
            raise ParameterError(
                f"The results in {folder} are of another run ({_difference(found, settings)}). "
                "Use --fresh to start over, or another --output."
            )
        files = [file.name for file in folder.glob("*.csv")]
    if fresh:
        for name in files:
            (folder / name).unlink(missing_ok=True)
    if found != settings:
        write_whole(path, json.dumps(settings, indent=2).encode() + b"\n")


def _settings_in(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _difference(found: dict[str, Any] | None, wanted: dict[str, Any]) -> str:
    if not found:
        return "settings.json is missing or damaged"
    names = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    return "; ".join(f"{name} {_shown(found.get(name))} there, {_shown(wanted.get(name))} here" for name in names)


def _shown(value: Any) -> str:
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that it exists as a whole or not at all."""
    draft = path.with_name(path.name + ".part")
    draft.write_bytes(content)
    shutil.move(draft, path)
