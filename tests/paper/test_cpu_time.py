"""Processor seconds by the kind of work: each goes to one part, and a run that is asked to stop does."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from dpfrugal.paper.cpu_time import ESTIMATORS, GENERATION, NOISE, PARTS, Clock, Stopped


def chunks(*sizes: int) -> Iterator[np.ndarray]:
    for size in sizes:
        yield np.zeros(size)


def test_clock__counts_items_and_tells_of_work() -> None:
    told: list[int] = []
    clock = Clock(told.append, lambda: False)
    seen: list[int] = []
    for chunk in clock.chunks(chunks(3, 4, 5)):
        assert clock.items == sum(seen) + chunk.size, "the items of the chunk that is worked on are counted"
        assert told == seen, "work is told of when it is done"
        seen.append(chunk.size)
    assert told == seen == [3, 4, 5]


def test_clock__adds_up_the_processor_time_of_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"at": 10.0}
    monkeypatch.setattr(time, "thread_time", lambda: now["at"])
    clock = Clock(lambda _: None, lambda: False)
    for part, seconds in ((ESTIMATORS, 2.0), (NOISE, 0.5), (ESTIMATORS, 1.0)):
        with clock.spent_on(part):
            now["at"] += seconds
        now["at"] += 100.0  # in between
    with pytest.raises(ValueError, match="ends early"), clock.spent_on(NOISE):  # noqa: PT012 - time passes before
        now["at"] += 0.25
        raise ValueError("ends early")
    assert clock.seconds == {part: {ESTIMATORS: 3.0, NOISE: 0.75}.get(part, 0.0) for part in PARTS}
    assert clock.row(figure="1a") == {
        "figure": "1a", "items": 0, "generation_seconds": 0.0, "exact_seconds": 0.0, "estimators_seconds": 3.0,
        "noise_seconds": 0.75,
    }  # fmt: skip


def test_clock__stops_between_two_chunks() -> None:
    stop = [False]
    clock = Clock(lambda _: None, lambda: stop[0])
    stream = clock.chunks(chunks(3, 4))
    assert next(stream).size == 3
    stop[0] = True
    with pytest.raises(Stopped):
        next(stream)
    assert clock.items == 3
    assert clock.seconds[GENERATION] >= 0
