"""Standard input in periods: cut by count alone, whatever the blocks are in which it comes; by the clock at its end."""

import itertools
import os
import re
import signal
import threading
import time
from datetime import datetime
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpfrugal.cli.streams import stdin_periods
from dpfrugal.cli.streams.stdin_periods import End, Period, StdinPeriods
from dpfrugal.errors import ParameterError, TableError
from dpfrugal.inputs.line_formats import plain_lines
from dpfrugal.inputs.log_lines import LogLines


def piped(blocks: list[bytes], period: Period, waiting: int = 0) -> list[Any]:
    """All events of a pipe into which blocks are written one after the other, but for the silent ones."""
    reader, writer = os.pipe()
    stream = StdinPeriods(reader, LogLines(plain_lines(keyed=False)))
    found: list[Any] = []
    try:
        for block in blocks:
            os.write(writer, block)
        os.close(writer)
        found.extend(event for event in stream.events(period, waiting) if event is not None)
    finally:
        os.close(reader)
    return found


def windows(events: list[Any]) -> list[list[float]]:
    """The numbers of each period; the last one is open."""
    found: list[list[float]] = [[]]
    for event in events:
        if isinstance(event, End):
            found.append([])
        else:
            found[-1] += event.values.tolist()
    return found


@settings(max_examples=60, deadline=None)
@given(
    numbers=st.lists(st.integers(-999, 999), max_size=40),
    cuts=st.lists(st.integers(0, 200), max_size=6),
    length=st.integers(1, 12),
    waiting=st.integers(0, 11),
)
def test_periods__by_count_depend_on_no_block(numbers: list[int], cuts: list[int], length: int, waiting: int) -> None:
    """Period k has items k·length to (k+1)·length, those that wait in a checkpoint among the first of them."""
    assume(waiting < length)
    text = "".join(f"{number}\n" for number in numbers).encode()
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    blocks = [text[low:high] for low, high in itertools.pairwise(ends) if high > low]
    first = length - waiting
    wanted = [numbers[:first], *(numbers[at : at + length] for at in range(first, len(numbers), length))]
    if len(numbers) >= first and (len(numbers) - first) % length == 0:
        wanted.append([])
    assert windows(piped(blocks, Period(items=length), waiting)) == wanted


def test_periods__by_the_clock_end_while_nothing_comes() -> None:
    """Also those of which the first item comes later: a period ends at its time, not at the next item."""
    reader, writer = os.pipe()
    events = StdinPeriods(reader, LogLines(plain_lines(keyed=False))).events(Period.parse("100ms"))
    ends = []
    for event in events:
        if isinstance(event, End):
            ends.append(event.at)
            if len(ends) == 3:
                os.close(writer)
    os.close(reader)
    assert [later - sooner for sooner, later in itertools.pairwise(ends)] == pytest.approx([0.1] * 2, abs=1e-6)
    assert all(end <= time.time() + 1e-3 for end in ends)


def test_periods__a_bad_line_ends_them_after_what_came_before_it() -> None:
    found: list[Any] = []
    reader, writer = os.pipe()
    os.write(writer, b"1\n2\nthree\n4\n")
    events = StdinPeriods(reader, LogLines(plain_lines(keyed=False))).events(Period(items=1))
    with pytest.raises(TableError, match=r"Line 3 does not fit"):
        found.extend(event for event in events if event is not None)
    os.close(writer)
    os.close(reader)
    assert windows(found) == [[1.0], [2.0], []]


def test_periods__an_unreadable_input_is_a_sentence(tmp_path: Any) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)  # a folder
    with pytest.raises(TableError, match="standard input cannot be read"):
        list(StdinPeriods(descriptor, LogLines(plain_lines(keyed=False))).events(Period(items=1)))
    os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals__are_heard_between_two_events_and_given_back(number: signal.Signals) -> None:
    """The batch that is being worked on is finished: the signal ends the wait for the next one."""
    assert threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, signal.SIG_DFL) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    reader, writer = os.pipe()
    try:
        os.write(writer, b"1\n")
        events = StdinPeriods(reader, LogLines(plain_lines(keyed=False))).events(Period(items=10))
        assert next(event for event in events if event is not None).values.tolist() == [1.0]
        os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt):
            list(events)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        os.close(writer)
        os.close(reader)
        for each, handler in before.items():
            signal.signal(each, handler)


def test_signals__a_second_one_is_not_waited_for() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stdin_periods._ending_signals() as heard:
            os.kill(os.getpid(), signal.SIGINT)
            assert heard == [signal.SIGINT]
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_period__is_read_as_a_number_of_its_unit(number: int, unit: str) -> None:
    assert Period.parse(f" {number}{unit} ").seconds == pytest.approx(number * stdin_periods.SECONDS[unit])
    assert Period.parse(f"{number:_}").items == Period.parse(f"{number:,}").items == number


@pytest.mark.parametrize("text", ["", "0", "0s", "-1", "1.5", "1w", "s", "10 s x", "1e3"])
def test_period__that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=f"{re.escape(repr(text))} is neither"):
        Period.parse(text)


@given(st.floats(1.6e9, 2.0e9), st.sampled_from(["500ms", "10s", "1m", "7m", "1h"]))
def test_period__ends_at_a_multiple_of_its_length_within_its_length(moment: float, text: str) -> None:
    period = Period.parse(text)
    end, seconds = period.end_after(moment), period.seconds or 0.0
    assert moment < end <= moment + seconds + 1e-6
    offset = datetime.fromtimestamp(moment).astimezone().utcoffset()
    assert offset is not None
    since = (end + offset.total_seconds()) % seconds
    assert min(since, seconds - since) < 1e-5
