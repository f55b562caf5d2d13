"""Files that make one table: one file, those of a folder, those that a pattern names, or a list of these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from glob import glob
from os import PathLike
from pathlib import Path
from typing import Any

from dpfrugal.errors import TableError
from dpfrugal.inputs.file_source import LONGEST_PIPE, FileSource
from dpfrugal.inputs.files import Format, open_source

Name = str | PathLike[str]


@dataclass
class FileSet:
    """The files in the order of their names; how long and how old each is must be the same at each reading."""

    sources: list[FileSource]
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, names: Name | Sequence[Name], most_bytes: int = LONGEST_PIPE) -> "FileSet":
        """The files of one name or of several."""
        several = [names] if isinstance(names, str | PathLike) else names
        return cls([FileSource.of(path, most_bytes) for name in several for path in paths_of(str(name))])

    @property
    def again(self) -> bool:
        """Whether they can be read more than once without being held."""
        return all(source.again for source in self.sources)

    def arrays(
        self, column: str | None, file_format: Format | None = None, *, header: bool | None = None
    ) -> Iterator[Any]:
        """A column of all files, as arrays of Arrow of whatever type it has."""
        for source in self.sources:
            self._look(source)
            opened = open_source(source, column, file_format, header=header, any_type=True)
            yield from (batch for batch, _ in opened.batches)
            self._look(source)

    def batches(
        self, column: str, beside: tuple[str, ...], file_format: Format | None = None, *, header: bool | None = None
    ) -> Iterator[Any]:
        """A column of all files and those beside it, as record batches."""
        for source in self.sources:
            self._look(source)
            opened = open_source(source, column, file_format, beside, header=header, any_type=True)
            yield from (batch for batch, _ in opened.batches)
            self._look(source)

    def _look(self, source: FileSource) -> None:
        """Refuse a file that is not as it was."""
        if not source.again:
            return
        now = None
        try:
            stat = source.path.stat()
            now = stat.st_size, stat.st_mtime_ns
        except OSError:
            pass
        if now is None or self._seen.setdefault(source.path, now) != now:
            raise TableError(f"{source.path}: the file changed while it was read; try again when nothing writes to it.")


def paths_of(name: str) -> list[Path]:
    """A file, the files of a folder, or those that a pattern names; hidden ones are left out."""
    if "://" in name:
        raise TableError(f"{name}: this is an address, not a local file; open it with pyarrow.dataset or DuckDB.")
    path = Path(name)
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.is_file() and not each.name.startswith((".", "_")))
    elif any(letter in name for letter in "*?[") and not path.exists():
        found = sorted(Path(each) for each in glob(name, recursive=True) if not Path(each).is_dir())
    else:
        return [path]
    if not found:
        raise TableError(f"{name}: there are no files.")
    return found
