"""Polars: quantiles of a DataFrame or LazyFrame, whose rows stay there; windows of order statistics are read.

>>> import polars as pl, dpfrugal as dpf
>>> table = pl.LazyFrame({"ms": range(400_000)}).select(pl.col("ms") % 1000)
>>> r = dpf.private_quantiles(table, 0.5, dpf.PureDP(epsilon=1.0), column="ms")
>>> abs(r.value - 500) <= 1
True
"""

import math
import secrets
from typing import Any, Final

import numpy as np

from dpfrugal.engines import missing
from dpfrugal.engines.bracket_search import BracketedTable
from dpfrugal.estimators.table.base.codes import Codes
from dpfrugal.estimators.table.rows.engine_tables import (
    HASHES,
    Assigned,
    Columns,
    EngineTable,
    TableSource,
    Tallies,
)
from dpfrugal.estimators.table.rows.keyed_rows import sorted_in_groups
from dpfrugal.inputs import dataframes
from dpfrugal.inputs.arrow_arrays import chunked

try:
    import polars as pl
except ModuleNotFoundError:
    raise missing("polars") from None


def source_of(data: Any) -> TableSource | None:
    """A frame, lazy or not; None for anything else of Polars's."""
    return (
        _Frame(data.lazy(), held=isinstance(data, pl.DataFrame))
        if isinstance(data, pl.DataFrame | pl.LazyFrame)
        else None
    )


class _Frame(TableSource):
    groups_nulls = True

    def __init__(self, frame: Any, *, held: bool) -> None:
        self._frame, self._held = frame, held

    def open(self, columns: Columns) -> EngineTable:
        schema = dataframes.run(self._frame.collect_schema)
        dataframes.present(columns.names, list(schema.names()))
        empty = chunked(pl.Series([], dtype=schema[columns.value]))
        return PolarsTable(self._frame, schema, columns, empty.type, held=self._held)


def _collected(*frames: Any) -> list[Any]:
    """Several plans at once, as Arrow tables."""
    found: list[Any] = dataframes.run(
        lambda: [each.to_arrow() for each in pl.collect_all(list(frames), engine="streaming")]
    )
    return found


NUMBER: Final = pl.lit(0, pl.Int32).alias("number")  # of the only group


class PolarsTable(BracketedTable):
    """Columns of a frame: ``value``, ``key_0``, ``key_1``, …, and ``person``."""

    def __init__(self, frame: Any, schema: Any, columns: Columns, value_type: Any, *, held: bool) -> None:
        self._columns, self._value_type = columns, value_type
        self._seed = secrets.randbits(62)
        self._everyone: Any = None
        self._nulls = False  # whether rows whose key has a null are a group
        self._keys = [f"key_{k}" for k in range(len(columns.by))]
        named = [pl.col(columns.value).alias("value")]
        for key, name in zip(self._keys, columns.by, strict=True):
            own = pl.col(name).alias(key)
            # Categories of two frames are compared as the texts that they stand for.
            named.append(own.cast(pl.String) if schema[name] in (pl.Categorical, pl.Enum) else own)
        if columns.person is not None:
            named.append(pl.col(columns.person).alias("person"))
        self._rows = frame.select(named)
        value = pl.col("value")
        self._present = value.is_not_null()
        if schema[columns.value].is_float():
            self._present &= value.is_not_nan()
        # A frame that is in memory cannot change; what a plan gives may be others each time.
        # Sums of floats in another order differ in their last bits, so floats are hashed in single precision.
        hashed = value.cast(pl.Float32) if schema[columns.value].is_float() else value
        hashes = (hashed.hash() % HASHES).cast(pl.Int64)
        self._checksum = (pl.lit(0, pl.Int64) if held else hashes.sum()).alias("checksum")
        self._present_checksum = (pl.lit(0, pl.Int64) if held else hashes.filter(self._present).sum()).alias("checksum")
        self._distinct = 0  # keys that were counted

    @property
    def value_type(self) -> Any:
        """The Arrow type of the values."""
        return self._value_type

    def counts(self) -> Any:
        """The rows of each key."""
        nobodies = pl.lit(0) if self._columns.person is None else pl.col("person").is_null().sum()
        sums = [pl.len().alias("rows"), self._present.sum().alias("present"), nobodies.alias("nobodies")]
        sums.append(self._present_checksum)
        plan = self._rows.group_by(self._keys).agg(sums) if self._keys else self._rows.select(sums)
        (found,) = _collected(plan.with_columns(pl.col("rows", "present", "nobodies").cast(pl.Int64)))
        self._distinct = found.num_rows
        return found.rename_columns([*self._columns.by, "rows", "present", "nobodies", "checksum"])

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        """The rows of each group that count."""
        self._nulls = any(column.null_count for column in assigned.keys.columns)
        if self._columns.person is None:
            return Tallies.of(assigned, counts)
        self._everyone = pl.DataFrame(pl.from_arrow(assigned.keys.rename_columns([*self._keys, "group"]))).lazy()
        plan = self._joined(self._everyone.rename({"group": "number"})).group_by("number")
        (rows,) = _collected(plan.agg(pl.len().cast(pl.Int64).alias("rows"), self._checksum))
        return Tallies.placed(assigned.groups, rows, "number")

    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        """Counts and rows from one run of the plan."""
        table = brackets.rename_columns([*self._keys, *brackets.column_names[len(self._keys) :]])
        frame, value = pl.DataFrame(pl.from_arrow(table)), pl.col("value")
        # One group's bounds are constants; those of several are columns that are joined.
        bound = pl.col if self._keys else lambda name: pl.lit(frame[name]).first()
        ends = [(bound(f"low_{k}"), bound(f"high_{k}")) for k in range(quantiles)]
        least = [low.is_null() | (value >= low) for low, _ in ends]
        most = [high.is_null() | (value <= high) for _, high in ends]
        within = [low & high for low, high in zip(least, most, strict=True)]
        inside = pl.any_horizontal(*within) if within else pl.lit(True)
        share = float(np.max(frame["share"].to_numpy(), initial=0.0))
        rows = self._joined(frame.lazy(), share).filter(inside & (share > 0))
        if self._keys and share < 1:
            drawn = pl.int_range(pl.len()).hash(secrets.randbits(62)).cast(pl.Float64) * (share / 2.0**64)
            rows = rows.filter(drawn < pl.col("share"))
        rows = rows.group_by("number", "value").agg(pl.len().alias("times")) if by_value else rows
        rows = rows.select("number", "value", *(["times"] if by_value else []))
        if not counted:
            return None, *_collected(rows)
        sums = [pl.len().alias("rows"), self._checksum]
        for k in range(quantiles):
            sums += [(~least[k]).sum().alias(f"below_{k}"), most[k].sum().alias(f"upto_{k}")]
        joined = self._joined(frame.lazy())
        counts = joined.group_by("number").agg(sums) if self._keys else joined.select(NUMBER, *sums)
        found, counts = _collected(rows, counts)
        return counts, found

    def whole(self, keys: Any, groups: int) -> tuple[Tallies, Codes, Codes]:
        """All rows of some groups: where each key is a group of its own, Polars puts the rows of each together."""
        numbers = keys.column("number").to_numpy()
        if not self._keys or self._columns.person is not None or np.unique(numbers).size != numbers.size:
            return super().whole(keys, groups)
        frame = pl.DataFrame(pl.from_arrow(keys.rename_columns([*self._keys, "number"]))).lazy()
        rows = self._rows.filter(self._present)
        if numbers.size < self._distinct:  # rows of other keys are not put together
            rows = rows.join(frame.select(self._keys), on=self._keys, how="semi", nulls_equal=self._nulls)
        grouped = rows.group_by(self._keys).agg(pl.col("value"), pl.len().cast(pl.Int64).alias("rows"), self._checksum)
        joined = grouped.join(frame, on=self._keys, nulls_equal=self._nulls)
        (found,) = _collected(joined.select("number", "rows", "checksum", "value").sort("number"))
        tallies = Tallies.placed(groups, found, "number")
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(tallies.sizes)])
        return tallies, sorted_in_groups([part.flatten() for part in found.column("value").chunks], starts), starts

    def _joined(self, brackets: Any, share: float = 1.0) -> Any:
        """The rows that count, or about a share of them, with the brackets of their group."""
        rows = self._rows.filter(self._present)
        if self._columns.person is not None:
            rows = self._chosen(rows)
        if 0 < share < 1:
            every = math.floor(1 / share)
            rows = (rows if self._columns.person is not None else self._rows).gather_every(
                every, secrets.randbelow(every)
            )
            rows = rows.filter(self._present)
        return rows.join(brackets, on=self._keys, nulls_equal=self._nulls) if self._keys else rows.with_columns(NUMBER)

    def _chosen(self, rows: Any) -> Any:
        """Of each person so many rows, those with the smallest priorities; which they are depends on these rows only.

        Equal rows of a person are numbered, and a row's priority is a hash of it with its number and a secret seed: the
        same in every scan, whatever the order of rows.
        """
        limits, own = self._columns, ["person", *self._keys, "value"]
        if self._keys:
            rows = rows.join(self._everyone, on=self._keys, nulls_equal=self._nulls)
        else:
            rows = rows.join(self._everyone, how="cross")
        rows = rows.with_columns(copy=pl.int_range(pl.len()).over(own))
        rows = rows.with_columns(priority=pl.struct(*own, "copy").hash(self._seed))
        if limits.max_keys_per_person is None:
            kept = pl.col("priority").rank("ordinal").over("person") <= limits.max_items_per_person
            return rows.filter(kept).select(*self._keys, "value")
        rows = rows.with_columns(earliest=pl.struct(pl.col("priority").min().over("person", "group"), "group"))
        kept = pl.col("priority").rank("ordinal").over("person", "group") <= limits.max_items_per_person
        kept &= pl.col("earliest").rank("dense").over("person") <= limits.max_keys_per_person
        return rows.filter(kept).select(*self._keys, "value")
