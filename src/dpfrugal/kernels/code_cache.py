"""Numba's disk cache of machine code, which no change of a source can outlive, and no damage either.

Numba by itself looks at the file of the cached function only. Here a cached function is also keyed by a digest of all
sources that it can be made of: those of the kernels, and those of its own package. Its files end with their SHA-256:
one that was damaged, or cut off by a full disk, is compiled anew.

The cache holds code, and numba reads it as a pickle: whoever can write it can run code here. So a folder that all may
write, or that belongs to somebody else, is not used.
"""

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

from numba.core.caching import FunctionCache, IndexDataCacheFile

SEAL: Final = 32
WRITABLE_BY_ALL: Final = 0o002


@cache
def source_digest(package: str) -> str:
    """A digest of the sources of the kernels and of one more package; a few hundred microseconds."""
    digest = hashlib.sha256()
    for name in sorted({str(__package__), package}):
        for path, source in _sources(resources.files(name), name):
            digest.update(f"{path}\0".encode() + source)
    return digest.hexdigest()


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """The sources in a folder and in those below it, each with its path, in the order of their names."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.is_dir():
            yield from _sources(file, f"{name}/{file.name}")
        elif file.name.endswith(".py"):
            yield f"{name}/{file.name}", file.read_bytes()


class SealedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one function, each followed by the SHA-256 of its content, which numba does not read."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        with super()._open_for_write(filepath) as file:
            written = io.BytesIO()
            yield written
            content = written.getvalue()
            file.write(content + hashlib.sha256(content).digest())

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        if not _is_whole(self._data_path(name)):
            raise FileNotFoundError
        return super()._load_data(name)


def _is_whole(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return False
    return hashlib.sha256(content[:-SEAL]).digest() == content[-SEAL:]


class CodeCache(FunctionCache):  # type: ignore[misc]
    """The cache of one function. Where it is damaged or cannot be written, the function is compiled anew."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        package = function.__module__.rpartition(".")[0]
        plain = vars(self)["_cache_file"]
        self._cache_file: Any = SealedFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=(plain._source_stamp, source_digest(package)),
        )
        if not is_own_folder(self._cache_path):
            self.disable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what was whole and yet is not what this numba reads raises almost anything
            with suppress(Exception):  # on a full disk it stays, and is compiled anew each time
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code for a signature, if there is room."""
        with suppress(Exception):
            super().save_overload(sig, data)


def is_own_folder(folder: str) -> bool:
    """Whether nobody else may put code there: it belongs to this user or to root, and not all may write it."""
    try:
        status = os.stat(folder)
    except OSError:
        return True  # not there yet: it will be made by this user
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & WRITABLE_BY_ALL
