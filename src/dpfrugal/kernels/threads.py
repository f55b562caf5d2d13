"""Running parts of one piece of work in several threads; compiled code and Arrow release the interpreter lock."""

import os
import threading
from collections.abc import Callable
from typing import Final

# Fewer rows than this are not worth a second thread.
WORTH_A_THREAD: Final = 1 << 17
# More than this share the memory's bandwidth without gain.
MOST_AVAILABLE: Final = 8


def available() -> int:
    """How many threads this process may run at once, up to ``MOST_AVAILABLE``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_AVAILABLE)


def in_shares(work: Callable[[slice], None], rows: int, threads: int) -> None:
    """Call ``work`` with slices that cover the rows, one for each thread; with one slice where there are few rows."""
    threads = threads if rows >= WORTH_A_THREAD else 1
    share = -(-rows // threads)
    at_once(lambda k: work(slice(k * share, min((k + 1) * share, rows))), threads)


def in_chunks(
    worker: Callable[[], Callable[[int, int], None]],
    rows: int,
    each: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Call what ``worker`` gives, once in each thread, with the first and one more than the last row of each chunk.

    ``progress`` is called with about the number of rows that are done, by one thread at a time.
    """
    chunks, lock, done = range(0, rows, each), threading.Lock(), 0
    threads = min(available(), len(chunks))

    def run(k: int) -> None:
        nonlocal done
        work = worker()
        for first in chunks[k::threads]:
            last = min(first + each, rows)
            work(first, last)
            if progress is not None:
                with lock:
                    done = min(done + each, rows)
                    progress(done)

    if threads:
        at_once(run, threads)


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
