"""The compiler: numba, with a disk cache where one can be written; when to load it, and how without delay."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])

_loaded: set[object] = set()


def cached(function: Function) -> Function:
    """A compiled function, kept on disk; or only in memory, where no cache folder can be written."""
    from numba import njit

    from dpfrugal.kernels.code_cache import CodeCache

    compiled = njit(nogil=True)(function)
    with suppress(RuntimeError):  # "cannot cache function: no locator available"
        if not is_off():
            compiled._cache = CodeCache(function)
    return compiled  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """A compiled function that becomes part of each compiled function that calls it."""
    from numba import njit

    return njit(nogil=True, forceinline=True)(function)  # type: ignore[no-any-return]


def is_off() -> bool:
    """Whether functions run as they are written (NUMBA_DISABLE_JIT): slowly, and an interrupt can cut them in two."""
    from numba import config

    return bool(config.DISABLE_JIT)


def worth_loading(work: int, at_least: int) -> bool:
    """Whether to run compiled code: numba is loaded already, or there is enough work to repay loading it.

    Loading takes 0.3 to 0.8 s. Each caller measures its work in its own unit, and knows from how much on that pays.
    """
    return "numba" in sys.modules or work >= at_least


@contextmanager
def loading(what: object) -> Iterator[None]:
    """Keep the garbage collector still while the compiler loads: it would search its objects again and again.

    That is a sixth of the time of a process's first batch.
    """
    if what in _loaded or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _loaded.add(what)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that compiled code sees as one type, whether or not the caller's array may be written to."""
    view: NDArray[np.generic] = array.view()
    view.flags.writeable = False
    return view
