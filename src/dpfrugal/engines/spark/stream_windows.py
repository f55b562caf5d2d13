"""Windows of a Spark stream: those of event time that Spark has closed, or each micro-batch by itself.

Of an open window Spark's own state holds how many rows have each key, person and value, spread over the executors by
all of these: no key's rows come together. A window that its watermark has passed comes out once, with its batch, and a
replayed batch brings the same ones. Which windows there are, and when one ends, is public: a function of times alone.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from pyspark.sql import functions as F  # noqa: N812

from dpfrugal.engines.bracket_search import FEW
from dpfrugal.engines.spark.actions import act
from dpfrugal.engines.spark.columns import arrow_type, checked_time, reference, type_of
from dpfrugal.errors import ParameterError, ParameterTypeError

START, END, VALUE, PERSON, TIMES = (f"dpfrugal_{name}" for name in ("start", "end", "value", "person", "times"))
AT_ONCE: Final = 1 << 20  # rows of small windows that are collected together
STEP: Final = 1 << 16  # equal rows that one row of a plan becomes at once
UNITS: Final = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week")
LENGTH: Final = re.compile(rf"\s*\d+ +({'|'.join(UNITS)})s?(\s+\d+ +({'|'.join(UNITS)})s?)*\s*")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MOST_EMPTY: Final = 10_000  # windows without rows between two others that are released too


@dataclass(frozen=True)
class Span:
    """From when to when a window is, in microseconds since 1970; None where it is a micro-batch."""

    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Ended:
    """A window that has ended: its rows, as an Arrow table or, where they are many, as a DataFrame."""

    span: Span
    rows: int
    data: Any


@dataclass(frozen=True)
class Windows:
    """How a stream is cut into windows, and the columns that count."""

    value: str
    by: tuple[str, ...]
    person: str | None
    time: str | None
    length: str | None
    watermark: str
    empty: Any = field(repr=False)  # an Arrow table of these columns without rows

    def of(self, df: Any) -> Any:
        """The stream whose micro-batches have the rows of windows that have ended."""
        columns = [reference(self.value).alias(VALUE), *(reference(name).alias(name) for name in self.by)]
        columns += [] if self.person is None else [reference(self.person).alias(PERSON)]
        if self.time is None:
            return df.select(*columns)
        timed = df.select(reference(self.time).alias(START), *columns).withWatermark(START, self.watermark)
        own = [reference(name) for name in (VALUE, *self.by, *([] if self.person is None else [PERSON]))]
        counted = timed.groupBy(F.window(START, self.length).alias(END), *own).agg(F.count(F.lit(1)).alias(TIMES))
        ends = {"start": START, "end": END}
        spans = [F.unix_micros(f"{END}.{end}").alias(name) for end, name in ends.items()]
        return counted.select(*spans, *own, TIMES)

    @contextmanager
    def ended(self, batch: Any) -> Iterator[Iterator[Ended]]:
        """The windows of a micro-batch in the order of time, held by the executors meanwhile."""
        held = batch.persist()
        try:
            yield self._ended(held)
        finally:
            held.unpersist()

    def pass_over(self, batch: Any) -> None:
        """Let Spark's state go on past a batch that was released from before: it does so by running it."""
        if self.time is not None:
            act(batch.count)

    def _ended(self, held: Any) -> Iterator[Ended]:
        if self.time is None:
            rows = act(held.count)
            yield Ended(Span(), rows, act(held.toArrow) if rows <= FEW else held)
            return
        sizes = act(held.groupBy(START, END).agg(F.sum(TIMES).alias(TIMES)).orderBy(START).toArrow)
        small: list[tuple[Span, int]] = []
        for start, end, rows in zip(*(column.to_pylist() for column in sizes.columns), strict=True):
            if rows > FEW or sum(each for _, each in small) + rows > AT_ONCE:
                yield from self._collected(held, small)
                small = []
            if rows > FEW:
                yield Ended(Span(start, end), rows, self._repeated(held.where(F.col(START) == start)))
            else:
                small.append((Span(start, end), rows))
        yield from self._collected(held, small)

    def _collected(self, held: Any, spans: list[tuple[Span, int]]) -> Iterator[Ended]:
        """Windows of few rows."""
        import pyarrow as pa

        if not spans:
            return
        within = F.col(START).between(spans[0][0].start, spans[-1][0].start)
        table = act(held.where(within).toArrow)
        starts, times = (table.column(name).to_numpy() for name in (START, TIMES))
        rows = table.drop_columns([START, END, TIMES])
        for span, number in spans:
            places = np.flatnonzero(starts == span.start)
            yield Ended(span, number, rows.take(pa.array(np.repeat(places, times[places]))))

    def _repeated(self, counted: Any) -> Any:
        """Each row as often as it came, in steps: a value may have come a thousand million times."""
        chunked = counted.withColumn("dpfrugal_chunk", F.expr(f"explode(sequence(0L, ({TIMES} - 1) div {STEP}))"))
        most = f"least({STEP}L, {TIMES} - dpfrugal_chunk * {STEP})"
        copies = chunked.withColumn("dpfrugal_copy", F.expr(f"explode(sequence(1L, {most}))"))
        return copies.drop(START, END, TIMES, "dpfrugal_chunk", "dpfrugal_copy")


def windows_of(
    df: Any,
    value: str,
    by: tuple[str, ...],
    person: str | None,
    time: str | None,
    length: str | None,
    watermark: str | None,
) -> Windows:
    """How to cut a stream, from what a caller has said."""
    import pyarrow as pa

    columns = {VALUE: value, **{name: name for name in by}, **({} if person is None else {PERSON: person})}
    empty = pa.table({name: pa.nulls(0, arrow_type(type_of(df, column))) for name, column in columns.items()})
    if time is None:
        for name, given in (("window", length), ("watermark", watermark)):
            if given is not None:
                raise ParameterError(f"{name} needs time=, the column of the rows' times.")
        return Windows(value, by, person, None, None, "", empty)
    if length is None:
        raise ParameterError('time needs window=, the length of the windows, such as "1 minute".')
    if not any(map(int, re.findall(r"\d+", checked_length("window", length)))):
        raise ParameterError(f"window must be longer than nothing; {length!r} is not.")
    late = checked_length("watermark", "0 seconds" if watermark is None else watermark)
    return Windows(value, by, person, checked_time(df, time), length, late, empty)


def checked_length(name: str, text: Any) -> str:
    """A length of time as Spark reads one."""
    if not isinstance(text, str):
        raise ParameterTypeError(f'{name} must be a text such as "1 minute", not {type(text).__name__}.')
    if LENGTH.fullmatch(text) is None:
        raise ParameterError(f'{name} must be a length of time such as "90 seconds" or "1 hour"; {text!r} is not.')
    return text


def between(before: Span | None, after: Span) -> Iterator[Span]:
    """The windows between two of them."""
    if before is None or before.end is None or after.start is None or after.end is None:
        return
    length = after.end - after.start
    if (after.start - before.end) // length > MOST_EMPTY:
        raise ParameterError(
            f'time: more than {MOST_EMPTY:,} windows without rows are between two others; neighbours="add-remove" '
            "would release each."
        )
    for start in range(before.end, after.start, length):
        yield Span(start, start + length)


def moment(micros: int | None) -> datetime | None:
    """The time of an end of a window."""
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
