"""The bytes of a file: a regular one, or a pipe, which is read once and held.

Text is decompressed by the name's last suffix, ``.gz`` or ``.zst``; that of a pipe by its first bytes. A line of text
has at most ``LONGEST_LINE`` bytes, so that no file, however small it is compressed, can fill the memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from dpfrugal.errors import TableError

BLOCK_BYTES: Final = 1 << 20  # what pyarrow parses at once: it refuses a line that does not fit
LONGEST_LINE: Final = BLOCK_BYTES
LONGEST_PIPE: Final = 1 << 30
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
MAGIC: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # the first bytes of what was compressed
BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True)
class FileSource:
    """A file by its name; ``content`` has the bytes of a pipe."""

    path: Path
    content: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, path: Path, most_bytes: int = LONGEST_PIPE) -> "FileSource":
        """A file, which must exist; what is no regular file is read now, up to so many bytes."""
        if not path.exists():
            raise TableError(f"{path}: there is no such file.")
        if path.is_dir():
            raise TableError(f"{path}: this is a folder, not a file.")
        if path.is_file():
            return cls(path)
        if path.is_block_device() or (path.is_char_device() and not _is_terminal(path)):
            raise TableError(f"{path}: this is a device, not a file.")
        content = None
        try:
            with path.open("rb") as file:
                content = file.read(most_bytes + 1)
        except OSError:
            pass
        if content is None:
            raise TableError(f"{path}: the file cannot be read.")
        if len(content) > most_bytes:
            raise TableError(f"{path}: a pipe is held, and may have {most_bytes:,} bytes at most; write it to a file.")
        return cls(path, content)

    @property
    def again(self) -> bool:
        """Whether the file can be opened anew to see the same bytes."""
        return self.content is None

    @property
    def size(self) -> int:
        """In bytes."""
        return self.path.stat().st_size if self.content is None else len(self.content)

    @property
    def suffixes(self) -> list[str]:
        """Those of the name that tell a format, in lower case."""
        return [suffix.lower() for suffix in self.path.suffixes if suffix.lower() not in COMPRESSIONS]

    def opened(self) -> Any:
        """A file of pyarrow's own; its threads may outlive a Python file at the exit of a program."""
        return pa.OSFile(str(self.path)) if self.content is None else pa.BufferReader(self.content)

    def decompressed(self, file: Any) -> Any:
        """The text of an open file, as a stream."""
        compression = COMPRESSIONS.get(self.path.suffix.lower())
        if compression is None and self.content is not None:  # a pipe has no name that tells it
            compression = next((MAGIC[magic] for magic in MAGIC if self.content.startswith(magic)), None)
        return file if compression is None else pa.input_stream(file, compression=compression)

    def head(self) -> bytes:
        """The first bytes, which tell the format."""
        with self.opened() as file:
            return bytes(file.read(8))

    def lines(self) -> Iterator[str]:
        """The lines of a text with their ends, in UTF-8; one that is too long is refused."""
        rest, number = b"", 0
        with self.opened() as file:
            stream = self.decompressed(file)
            while block := stream.read(BLOCK_BYTES // 16):
                *whole, rest = (rest + block).splitlines(keepends=True)
                if rest.endswith(b"\n"):
                    whole, rest = [*whole, rest], b""
                for line in whole:
                    number += 1
                    yield self._decoded(line, number)
                if len(rest) > LONGEST_LINE:
                    raise self._too_long(number + 1)
            if rest:
                yield self._decoded(rest, number + 1)

    def _decoded(self, line: bytes, number: int) -> str:
        if len(line) > LONGEST_LINE:
            raise self._too_long(number)
        text = line.decode()
        return text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text

    def _too_long(self, number: int) -> TableError:
        return TableError(f"{self.path}: line {number} is longer than {LONGEST_LINE:,} bytes, which is the limit.")


def _is_terminal(path: Path) -> bool:
    """Whether lines that are typed can be read from there, as from /dev/stdin."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.isatty()
    except OSError:
        return False
