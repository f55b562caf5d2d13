"""The release of many groups: a pyarrow.Table with a row per key and quantile, and its claim in the schema's metadata.

Everything in it is public: the keys were declared or discovered, values, ends and numbers of rows were drawn, and the
rest never depended on a row.
"""

import json
from typing import Any, Final

import numpy as np

from dpfrugal.estimators.keyed.release_table import total_cost
from dpfrugal.estimators.table.choices.group_answers import GroupAnswers
from dpfrugal.estimators.table.choices.plan import Plan
from dpfrugal.estimators.table.release import BEYOND, CAUTION, RELATIONS, unit_of
from dpfrugal.estimators.table.rows.engine_rows import EngineGroups
from dpfrugal.estimators.table.rows.grouped_rows import GroupedRows
from dpfrugal.parameters import exact
from dpfrugal.privacy.guarantees import ApproxDP

RESERVED: Final = ("key", "quantile", "value", "lower", "upper", "rows", "reason")


def group_table(
    grouped: GroupedRows | EngineGroups,
    plan: Plan,
    found: GroupAnswers,
    quantiles: tuple[float, ...],
    discover_keys: ApproxDP | None,
    max_items_per_person: int,
    max_keys_per_person: int | None,
    *,
    has_persons: bool = False,
) -> Any:
    """The table, with keys in their order and quantiles in the order in which they were asked for."""
    import pyarrow as pa

    order = [plan.quantiles.index(exact(q)) for q in quantiles]
    groups, kind = len(found.values), grouped.kind
    needed = np.array([plan.rows_needed[at] for at in order])
    small = ~found.bounded[:, order]
    if found.rows is not None:
        # Without intervals a noisy number that is large by chance must not pass for a large group.
        caution = 0.0 if plan.margins else CAUTION / float(plan.counts_slope)
        small |= found.rows[:, None] < needed[None, :] + caution
    missing = small.reshape(-1)
    beyond = ~missing & kind.beyond(found.values[:, order].reshape(-1))
    each = pa.array(np.repeat(np.arange(groups), len(quantiles)))
    columns = {name: column.take(each) for name, column in key_columns(grouped).items()}
    columns["quantile"] = pa.array(np.tile(np.array(quantiles, dtype=np.float64), groups))
    parts = {"value": found.values} | ({"lower": found.lower, "upper": found.upper} if plan.margins else {})
    for name in ("value", "lower", "upper"):
        codes = parts.get(name, np.zeros_like(found.values))[:, order].reshape(-1)
        absent = missing | beyond | kind.beyond(codes) if name in parts else np.ones_like(missing)
        columns[name] = kind.array(codes, absent)
    if found.rows is not None:
        columns["rows"] = pa.array(np.repeat(found.rows, len(quantiles)))
    reasons = [f"too few rows: about {rows:,} are needed at {plan.asked.guarantee}" for rows in needed.tolist()]
    labels = np.tile(np.arange(len(quantiles)), groups)
    labels[beyond] = len(reasons)
    columns["reason"] = pa.array([*reasons, BEYOND], pa.string()).take(pa.array(labels, mask=~(missing | beyond)))
    unit = unit_of(max_items_per_person, max_keys_per_person, has_persons=has_persons)
    metadata = claim(grouped, plan, discover_keys, unit)
    return pa.table(columns).replace_schema_metadata(metadata)


def key_columns(grouped: GroupedRows | EngineGroups) -> dict[str, Any]:
    """The columns of the keys under the names that they are shown by."""
    if len(grouped.key_columns) == 1:
        return {"key": next(iter(grouped.key_columns.values()))}
    return {f"key_{name}" if name in RESERVED else name: column for name, column in grouped.key_columns.items()}


def claim(grouped: GroupedRows | EngineGroups, plan: Plan, discover_keys: ApproxDP | None, unit: str) -> dict[str, str]:
    """What covers the table, and whose change it hides."""
    asked = plan.asked
    stated = {
        "guarantee": str(asked.guarantee),
        "guarantee_parameters": json.dumps(asked.guarantee.to_record()),
        "neighbours": RELATIONS[asked.neighbours] + (", value and key" if asked.neighbours == "replace" else ""),
        "unit": unit,
        "shares": json.dumps({part: float(share) for part, share in asked.shares.items()}),
        "total": str(asked.guarantee),
    }
    if discover_keys is not None:
        stated["discover_keys"] = str(discover_keys)
        if asked.guarantee.epsilon_delta is None:
            stated["total"] = f"{asked.guarantee} for values and {discover_keys} for which keys are shown"
        else:
            stated["total"] = str(total_cost(asked.guarantee, discover_keys))
    if asked.neighbours == "replace":
        stated["items"] = str(grouped.rows)
    if asked.intervals is not None:
        stated |= {"confidence": str(asked.intervals.confidence), "interval_of": asked.intervals.of}
    return stated
