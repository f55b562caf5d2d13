"""The compiler: numba, with its disk cache where one can be written, and how it is loaded without delay."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])

_loaded: set[object] = set()


def cached(function: Function) -> Function:
    """A compiled function, kept on disk; or only in memory, where no cache folder can be written."""
    from numba import njit

    try:
        return njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # "cannot cache function: no locator available"
        return njit(nogil=True)(function)  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """A compiled function that becomes part of each compiled function that calls it."""
    from numba import njit

    return njit(nogil=True, forceinline=True)(function)  # type: ignore[no-any-return]


def is_off() -> bool:
    """Whether functions run as they are written (NUMBA_DISABLE_JIT): slowly, and an interrupt can cut them in two."""
    from numba import config

    return bool(config.DISABLE_JIT)


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
