"""Numba's disk cache of machine code, which no change of a source can outlive.

Numba by itself looks at the file of the cached function only. Here a cached function is also keyed by a digest of all
sources that it can be made of: those of the kernels, and those of its own package.
"""

import hashlib
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

from numba.core.caching import FunctionCache


@cache
def source_digest(package: str) -> str:
    """A digest of the sources of the kernels and of one more package; a few hundred microseconds."""
    digest = hashlib.sha256()
    for name in sorted({str(__package__), package}):
        for file in sorted(resources.files(name).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                digest.update(f"{name}/{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


class CodeCache(FunctionCache):  # type: ignore[misc]
    """The cache of one function. Where it is damaged or cannot be written, the function is compiled anew."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        package = function.__module__.rpartition(".")[0]
        self._cache_file._source_stamp = (self._cache_file._source_stamp, source_digest(package))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle raises almost anything
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code for a signature, if there is room."""
        with suppress(OSError):
            super().save_overload(sig, data)
