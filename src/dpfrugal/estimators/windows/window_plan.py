"""``WindowPlan``: what is public about every window alike; no item changes it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from dpfrugal import parameters
from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, Kind, hinted
from dpfrugal.estimators.table.choices.intervals import IntervalOf
from dpfrugal.estimators.table.choices.plan import Asked, Plan, plan_of
from dpfrugal.estimators.table.private_quantiles import interval_rule
from dpfrugal.estimators.windows.window_items import Batch
from dpfrugal.estimators.windows.window_kinds import common
from dpfrugal.estimators.windows.window_options import MOST_HELD, bases_of, record_of_hints, record_of_rule
from dpfrugal.parameters import NanPolicy, Neighbours
from dpfrugal.privacy.guarantees import Guarantee, checked_guarantee
from dpfrugal.storage import json_values

Hints = tuple[Any, Any, int | None]


@dataclass(frozen=True)
class WindowPlan:
    """Checked options, and what they share of the guarantee; ``bases`` are the answers of each type met so far."""

    quantiles: tuple[float, ...]
    guarantee: Guarantee
    neighbours: Neighbours
    nan_policy: NanPolicy
    hold: int | None
    windows: int | None
    hints: Hints
    plan: Plan
    bases: dict[str, Base] = field(repr=False)

    @classmethod
    def of(
        cls,
        quantile: Any,
        guarantee: Guarantee,
        *,
        rows_per_person: int,
        hold: int | None,
        sampled: Literal["table", "groups"] | None,
        neighbours: Neighbours,
        intervals: bool,
        confidence: float,
        interval_of: IntervalOf,
        windows: int | None,
        nan_policy: NanPolicy,
        hints: Hints,
        grouped: bool = False,
        counts: bool = False,
    ) -> "WindowPlan":
        """Check what was asked for, and plan every window alike."""
        quantiles = parameters.quantiles(quantile)
        guarantee = checked_guarantee(guarantee)
        neighbours = parameters.neighbours(neighbours)
        nan_policy = parameters.nan_policy(nan_policy)
        hold = None if hold is None else parameters.integer("hold", hold, 1, MOST_HELD)
        windows = None if windows is None else parameters.integer("windows", windows, 1, 10**9)
        rule = interval_rule(intervals, confidence, interval_of)
        if rule is not None and rule.of == "table" and hold is not None:
            raise ParameterError('interval_of="table" needs every item of a window: add hold=None.')
        bases = bases_of(hints)
        asked = Asked(
            tuple(sorted(map(parameters.exact, quantiles))),
            guarantee,
            neighbours,
            grouped=grouped,
            rows_per_person=rows_per_person,
            intervals=rule,
            counts=parameters.truth("counts", counts),
            sampled=None if hold is None else sampled,
            windows=windows or 1,
        )
        return cls(quantiles, guarantee, neighbours, nan_policy, hold, windows, hints, plan_of(asked), bases)

    def base(self, kind: Kind) -> Base:
        """The answers that hints leave among those of a type; an error where they are none of it."""
        if kind.name not in self.bases:
            self.bases[kind.name] = hinted(kind, *self.hints)
        return self.bases[kind.name]

    def kind_with(self, batch: Batch, before: Kind | None) -> Kind | None:
        """The type of answers with one more batch; integers stay what they are where hints allow it."""
        if batch.kind is None or not batch.codes.size:  # it states no type
            return before
        kind = FLOATS if batch.kind is INTEGERS and INTEGERS.name not in self.bases else batch.kind
        self.base(kind)
        return common(before, kind)

    def record(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "quantiles": json_values.packed(self.quantiles),
            "guarantee": self.guarantee.to_record(),
            "hold": self.hold,
            "neighbours": self.neighbours,
            "intervals": record_of_rule(self.plan.asked.intervals),
            "hints": record_of_hints(self.hints),
            "windows": self.windows,
            "nan_policy": self.nan_policy,
        }
