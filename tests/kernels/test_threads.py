"""Threads: parts of one piece of work at once."""

import threading

import pytest

from dpfrugal.kernels.threads import at_once


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
