"""What becomes of a window's rows: read, drawn from once, and kept as a record that any replay shows again.

A record holds what is released and nothing else. What a sink gets is always made of the record, also the first time.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfrugal.engines.spark.batch import released_table
from dpfrugal.engines.spark.stream_release import StreamRelease
from dpfrugal.engines.spark.stream_windows import PERSON, VALUE, Span, moment
from dpfrugal.estimators.keyed.state_record import arrow_bytes, arrow_table
from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.kinds import Kind
from dpfrugal.estimators.table.choices.answers import prepare, reaches_of
from dpfrugal.estimators.table.choices.group_answers import answer_groups
from dpfrugal.estimators.table.choices.pilot import ranks_of_pilot
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.group_table import group_table
from dpfrugal.estimators.table.private_quantiles import draw_release, rows_of
from dpfrugal.estimators.table.rows.grouped_rows import groups_of
from dpfrugal.parameters import NanPolicy
from dpfrugal.privacy.guarantees import ApproxDP
from dpfrugal.storage import json_values

Record = dict[str, Any]
Draw = Callable[[], Record]
Sink = Callable[[Any, int], None]


@dataclass(frozen=True)
class Shown:
    """A window that was released: its number, its ends, and what was drawn for it."""

    number: int
    span: Span
    record: Record = field(repr=False)


@dataclass(frozen=True)
class Answers(ABC):
    """What a stream releases of a window."""

    plan: Plan
    quantiles: tuple[float, ...]
    kind: Kind
    base: Base = field(repr=False)
    person: str | None
    max_items_per_person: int
    nan_policy: NanPolicy

    @abstractmethod
    def read(self, data: Any) -> Draw:
        """Read a window's rows, which draws nothing; what is given draws, once, and must be paid for before."""

    @abstractmethod
    def show(self, sink: Sink, session: Any, shown: Sequence[Shown], batch: int) -> None:
        """Give a batch's windows to the sink."""


@dataclass(frozen=True)
class ColumnAnswers(Answers):
    """Quantiles of all rows of a window."""

    def read(self, data: Any) -> Draw:
        """The rows around the ranks."""
        person = None if self.person is None else PERSON
        found = rows_of(data, VALUE, self.nan_policy, person, self.max_items_per_person)
        rows = found.ordered(self.base.low, self.base.high)
        prepare(rows, self.plan)

        def draw() -> Record:
            release = draw_release(rows, found.number, self.plan, self.base, self.kind, self.quantiles)
            ends = {"lower": release.lower, "upper": release.upper}
            codes = {name: None if each is None else [*map(self._code, each)] for name, each in ends.items()}
            return {"values": [*map(self._code, release.values)], "items": release.items, **codes}

        return draw

    def show(self, sink: Sink, session: Any, shown: Sequence[Shown], batch: int) -> None:
        """One release for each window, in the order of time."""
        for window in shown:
            sink(self._release(window), batch)

    def _release(self, window: Shown) -> StreamRelease:
        record, asked = window.record, self.plan.asked
        lower, upper = (record[name] for name in ("lower", "upper"))
        beyond = (-math.inf, math.inf) if self.kind.has_infinity else (None, None)
        return StreamRelease(
            values=tuple(map(self.kind.answer, record["values"])),
            lower=None if lower is None else tuple(beyond[0] if c is None else self.kind.answer(c) for c in lower),
            upper=None if upper is None else tuple(beyond[1] if c is None else self.kind.answer(c) for c in upper),
            quantiles=self.quantiles,
            guarantee=asked.guarantee,
            items=record["items"],
            max_items_per_person=self.max_items_per_person,
            neighbours=asked.neighbours,
            plan=self.plan,
            window=window.number,
            has_persons=self.person is not None,
            start=moment(window.span.start),
            end=moment(window.span.end),
        )

    def _code(self, answer: Any) -> int | None:
        """An answer as an integer; None for an end that so few rows cannot tell."""
        if answer is None or (not self.kind.base.of_doubles and isinstance(answer, float)):
            return None
        return int(self.kind.code(answer))


@dataclass(frozen=True)
class KeyedAnswers(Answers):
    """Quantiles for each key of a window."""

    by: tuple[str, ...]
    key_types: tuple[Any, ...]
    max_keys_per_person: int | None
    discover_keys: ApproxDP | None
    options: dict[str, Any]

    def read(self, data: Any) -> Draw:
        """The rows around the ranks of each key; where keys are discovered, they are read once these are known."""
        grouped = groups_of(
            data, VALUE, self.by, person=None if self.person is None else PERSON, nan_policy=self.nan_policy,
            max_items_per_person=self.max_items_per_person, max_keys_per_person=self.max_keys_per_person,
            discover_keys=self.discover_keys, **self.options,
        )  # fmt: skip
        grouped.prepare(reaches_of(self.plan), ranks_of_pilot(self.plan))

        def draw() -> Record:
            public = grouped.discover()
            public.prepare(reaches_of(self.plan), ranks_of_pilot(self.plan))
            found = answer_groups(public, self.plan, self.base, None)
            limits = self.max_items_per_person, self.max_keys_per_person
            table = group_table(public, self.plan, found, self.quantiles, self.discover_keys, *limits)
            return {"table": json_values.of_array(arrow_bytes(table))}

        return draw

    def show(self, sink: Sink, session: Any, shown: Sequence[Shown], batch: int) -> None:
        """One table of all windows of the batch, if it has any."""
        import pyarrow as pa

        if not shown:
            return
        tables = [self._table(window) for window in shown]
        sink(session.createDataFrame(pa.concat_tables(tables)), batch)

    def _table(self, window: Shown) -> Any:
        """The released table of one window, with its ends before the keys."""
        import pyarrow as pa

        table = released_table(arrow_table(json_values.array_of(window.record["table"], np.uint8)), self.by)
        for k, kind in enumerate(self.key_types):  # where no key is shown, none has stated a type
            if pa.types.is_null(table.column(k).type):
                table = table.set_column(k, table.column_names[k], table.column(k).cast(kind))
        for k, (name, at) in enumerate((("window_start", window.span.start), ("window_end", window.span.end))):
            if at is not None:
                table = table.add_column(k, name, pa.array([at] * table.num_rows, pa.timestamp("us", "UTC")))
        return table.replace_schema_metadata(None)
