"""Options that both window estimators have: what hints leave as answers, and how a checkpoint records the options."""

from contextlib import suppress
from typing import Any, Final

from dpfrugal.errors import ParameterError
from dpfrugal.estimators.table.base.base_measure import Base
from dpfrugal.estimators.table.base.kinds import FLOATS, INTEGERS, hinted
from dpfrugal.estimators.table.choices.intervals import IntervalRule
from dpfrugal.privacy.guarantees import Guarantee
from dpfrugal.storage import json_values

MOST_HELD: Final = 1 << 31


def bases_of(hints: tuple[Any, Any, int | None]) -> dict[str, Base]:
    """The answers that public hints leave, by type; integers are left out where the hints are for floats only."""
    bases = {FLOATS.name: hinted(FLOATS, *hints)}
    with suppress(ParameterError):
        bases[INTEGERS.name] = hinted(INTEGERS, *hints)
    return bases


def record_of_rule(rule: IntervalRule | None) -> list[Any] | None:
    """How intervals are made, as a checkpoint records it."""
    return None if rule is None else [json_values.of_float(rule.confidence), rule.of]


def record_of_hints(hints: tuple[Any, Any, int | None]) -> list[str | None]:
    """Hints, as a checkpoint records them."""
    return [str(hint) if hint is not None else None for hint in hints]


def recorded_options(parameters: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a window estimator that a checkpoint records for both of them."""
    rule = parameters["intervals"]
    low, high, decimals = json_values.list_of(parameters["hints"], 3)
    options = {
        "quantile": json_values.floats_of(parameters["quantiles"]).tolist(),
        "guarantee": Guarantee.of_record(parameters["guarantee"]),
        "intervals": rule is not None,
        "low": _hint_of(low),
        "high": _hint_of(high),
        "decimals": None if decimals is None else int(decimals),
    }
    if rule is not None:
        options |= {"confidence": json_values.float_of(rule[0]), "interval_of": rule[1]}
    same = ("neighbours", "max_items_per_person", "windows", "nan_policy")
    return options | {name: parameters[name] for name in same}


def _hint_of(record: str | None) -> float | int | None:
    """The hint that a checkpoint records."""
    if record is None:
        return None
    try:
        return int(record)
    except ValueError:
        return float(record)
