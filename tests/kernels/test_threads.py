"""Threads: parts of one piece of work at once."""

import threading
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest

from dpfrugal.kernels.threads import at_once, in_chunks


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_at_once__calls_every_part_once_and_the_first_in_this_thread(threads: int) -> None:
    parts: dict[int, int] = {}
    at_once(lambda k: parts.__setitem__(k, threading.get_ident()), threads)
    assert sorted(parts) == list(range(threads))
    assert parts[0] == threading.get_ident()
    assert all(ident != threading.get_ident() for k, ident in parts.items() if k)


def test_at_once__runs_its_parts_at_the_same_time() -> None:
    """They wait for each other: one after the other they would wait until the barrier breaks."""
    meeting = threading.Barrier(4, timeout=60)

    def work(k: int) -> None:
        meeting.wait()

    at_once(work, 4)
    assert not meeting.broken


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_at_once__raises_what_a_part_raises_when_all_have_ended(failing: int) -> None:
    ended = []

    def work(k: int) -> None:
        if k == failing:
            raise KeyboardInterrupt
        ended.append(k)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        at_once(work, 3)
    assert sorted(ended) == sorted({0, 1, 2} - {failing})
    assert threading.active_count() == before


def test_in_chunks__does_each_chunk_once_with_a_worker_for_each_thread() -> None:
    done, told, workers = np.zeros(1_003, dtype=np.int64), list[int](), list[object]()

    def worker() -> Callable[[int, int], None]:
        own = np.empty(10)  # room that no two threads may share
        workers.append(own)

        def work(first: int, last: int) -> None:
            own[: last - first] = first
            time.sleep(0.0005)
            assert (own[: last - first] == first).all()
            done[first:last] += 1

        return work

    with mock.patch("dpfrugal.kernels.threads.available", return_value=3):
        in_chunks(worker, 1_003, 10, told.append)
    assert (done == 1).all()
    assert len(workers) == 3
    assert told == sorted(told)
    assert told[-1] == 1_003
    in_chunks(worker, 0, 10, told.append)
    assert len(workers) == 3
