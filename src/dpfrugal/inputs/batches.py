"""Batches of a file on their way to an estimator: regrouped at public row numbers, and read ahead by a thread."""

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa


def regrouped(batches: Iterator[tuple[Any, int]], rows: int, ends: Sequence[int] = ()) -> Iterator[tuple[Any, int]]:
    """The same rows in tables that end after every ``rows`` rows, and at each of ``ends``.

    A reader cuts by bytes, so where its own batches end depends on the content of all rows.
    """

    def end_after(done: int) -> int:
        return min([(done // rows + 1) * rows, *(end for end in ends if end > done)])

    waiting: list[Any] = []
    done, held, made = 0, 0, 0
    for batch, advance in batches:
        first, made = 0, made + advance
        while done + held + len(batch) - first >= (end := end_after(done)):
            last = first + end - done - held
            yield pa.Table.from_batches([*waiting, batch.slice(first, last - first)]), made
            waiting, done, held, made, first = [], end, 0, 0, last
        waiting.append(batch.slice(first))
        held += len(batch) - first
    if held:
        yield pa.Table.from_batches(waiting), made


def read_ahead(
    batches: Iterator[tuple[Any, int]], most_waiting: int = 64, *, endless: bool = False
) -> Iterator[tuple[Any, int]]:
    """The same batches, read by a separate thread while earlier ones are processed.

    A caller that stops early waits until the thread has stopped reading, unless the input may be ``endless``.
    """
    waiting: queue.Queue[tuple[Any, int] | BaseException | None] = queue.Queue(most_waiting)
    abandoned = threading.Event()

    def hand_over(batch: tuple[Any, int] | BaseException | None) -> None:
        while not abandoned.is_set():
            with suppress(queue.Full):
                waiting.put(batch, timeout=0.1)
                break

    def read() -> None:
        try:
            for batch in batches:
                hand_over(batch)
                if abandoned.is_set():
                    return
        except BaseException as error:  # whatever ends the reading must end the caller's loop
            hand_over(error)
        else:
            hand_over(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (batch := waiting.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            yield batch
    finally:
        abandoned.set()
        if not endless:
            reader.join()
