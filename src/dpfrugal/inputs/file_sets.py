"""Files that make one table: one file, those of a folder, those that a pattern names, or a list of these."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
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
    """The files in the order of their names; how long and how old each is must be the same at each reading.

    ``file_format`` is that of all, where their names and first bytes do not tell it; ``header`` says whether CSV files
    have one, ``any_text`` whether their cells that are no numbers are missing ones. ``progress`` is called with the
    bytes and the rows that were read.
    """

    sources: list[FileSource]
    file_format: Format | None = None
    header: bool | None = None
    any_text: bool = False
    progress: Callable[[int, int], None] | None = field(default=None, repr=False)
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, names: "Name | Sequence[Name] | FileSet", most_bytes: int = LONGEST_PIPE) -> "FileSet":
        """The files of one name or of several."""
        if isinstance(names, FileSet):
            return names
        several = [names] if isinstance(names, str | PathLike) else names
        return cls([FileSource.of(path, most_bytes) for name in several for path in paths_of(str(name))])

    def of_any_text(self) -> "FileSet":
        """The same files with a header, whose cells that are no numbers are missing ones."""
        return replace(self, header=True, any_text=True)

    @property
    def again(self) -> bool:
        """Whether they can be read more than once without being held."""
        return all(source.again for source in self.sources)

    @property
    def name(self) -> str:
        """For people: that of the only file, or how many there are."""
        return self.sources[0].path.name if len(self.sources) == 1 else f"{len(self.sources)} files"

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(source.size for source in self.sources)

    def arrays(self, column: str | None, *, header: bool | None = None) -> Iterator[Any]:
        """A column of all files, as arrays of Arrow of whatever type it has."""
        return self._read(column, (), header)

    def batches(self, column: str, beside: tuple[str, ...], *, header: bool | None = None) -> Iterator[Any]:
        """A column of all files and those beside it, as record batches."""
        return self._read(column, beside, header)

    def _read(self, column: str | None, beside: tuple[str, ...], header: bool | None) -> Iterator[Any]:
        for source in self.sources:
            self._look(source)
            has_header = self.header if header is None else header
            opened = open_source(
                source, column, self.file_format, beside, header=has_header, any_type=True, any_text=self.any_text
            )
            for batch, advance in opened.batches:
                if self.progress is not None:
                    share = advance * source.size // max(opened.total, 1) if opened.unit == "rows" else advance
                    self.progress(share, len(batch))
                yield batch
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
