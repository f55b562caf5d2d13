"""Running parts of one piece of work in several threads; compiled code and Arrow release the interpreter lock."""

import threading
from collections.abc import Callable
from typing import Final

# Fewer rows than this are not worth a second thread.
WORTH_A_THREAD: Final = 1 << 17


def at_once(work: Callable[[int], None], threads: int) -> None:
    """Call ``work`` with 0, 1, … in parallel, 0 in this thread; an exception is raised when all have ended."""
    failures: list[BaseException] = []

    def other(k: int) -> None:
        try:
            work(k)
        except BaseException as error:  # whatever it is must not end in the thread that met it
            failures.append(error)

    others = [threading.Thread(target=other, args=(k,)) for k in range(1, threads)]
    for thread in others:
        thread.start()
    try:
        work(0)
    finally:
        for thread in others:
            thread.join()
    if failures:
        raise failures[0]
