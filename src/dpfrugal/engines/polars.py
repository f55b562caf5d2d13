"""Polars: private quantiles of a DataFrame or LazyFrame, counted by Polars; a LazyFrame is streamed, never held.

>>> import polars as pl, dpfrugal as dpf
>>> from dpfrugal.engines import polars as dpp
>>> table = pl.LazyFrame({"ms": range(400_000)}).select(pl.col("ms") % 1000)
>>> r = dpp.private_quantiles(table, "ms", 0.5, dpf.PureDP(epsilon=1.0))
>>> abs(r.value - 500) < 30
True
"""

import secrets
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfrugal.engines import two_scans
from dpfrugal.engines.bin_counts import MISSING, SAMPLED, bin_limits, counts_of_bins, no_numbers, no_such_column
from dpfrugal.engines.two_scans import Counts, Options, Sample
from dpfrugal.errors import ParameterTypeError
from dpfrugal.estimators.releases import SegmentRelease
from dpfrugal.privacy.guarantees import Guarantee


def private_quantiles(
    table: Any, column: str, quantiles: float | Sequence[float], guarantee: Guarantee, **options: Unpack[Options]
) -> SegmentRelease:
    """Private quantiles of one column of a Polars frame; the options are those of ``PrivateQuantile``."""
    return two_scans.private_quantiles(_Rows(table, column), quantiles, guarantee, options)


def counts(table: Any, column: str, edges: NDArray[np.float64]) -> Counts:
    """How many items of the column lie between the edges."""
    return _Rows(table, column).counts(edges)


class _Rows:
    """A column, and which of its rows are sampled: those whose position hashes below a cut."""

    def __init__(self, table: Any, column: str) -> None:
        if not isinstance(table, pl.DataFrame | pl.LazyFrame):
            raise ParameterTypeError(
                f"table must be a polars.DataFrame or a polars.LazyFrame, not {type(table).__name__}."
            )
        kinds = table.lazy().collect_schema()
        if column not in kinds:
            raise no_such_column(column, kinds)
        kind = kinds[column]
        if not kind.is_numeric():
            raise no_numbers(column, kind)
        self._integers = kind.is_integer() and kind not in (pl.UInt64, pl.Int128, pl.UInt128)
        item = pl.col(column).cast(pl.Int64 if self._integers else pl.Float64).alias("item")
        salt = secrets.randbits(62)
        self._items = table.lazy().select(item)
        self._numbered = self._items.with_row_index("row").with_columns(place=pl.col("row").hash(salt))
        self._numbered = self._numbered.with_columns(mark=pl.struct("row", "item").hash(salt))
        self._kept = pl.lit(value=False)

    def sample(self, wanted: int) -> Sample:
        rows = int(self._items.select(pl.len()).collect(engine="streaming").item())
        self._kept = pl.col("place") <= pl.lit(min(2**64 - 1, int(2**64 * wanted / max(rows, 1))), dtype=pl.UInt64)
        found = self._numbered.filter(self._kept).collect(engine="streaming").sort("place", "row")
        mark = int(np.bitwise_xor.reduce(found["mark"].to_numpy())) if found.height else 0
        return Sample(found["item"], found.height, rows, mark)

    def rest(self, edges: NDArray[np.float64]) -> Counts:
        return self._counted(self._numbered.with_columns(kept=self._kept), edges)

    def counts(self, edges: NDArray[np.float64]) -> Counts:
        return self._counted(self._items.with_columns(kept=False, mark=pl.lit(0, dtype=pl.UInt64)), edges)

    def _counted(self, table: Any, edges: NDArray[np.float64]) -> Counts:
        """One scan: each row's bin by a binary search among the limits, and the rows of each bin."""
        limits, lowest = bin_limits(edges, integers=self._integers)
        item, limit = pl.col("item"), pl.lit(pl.Series(limits[lowest:]))
        missing = item.is_null() if self._integers else item.is_null() | item.is_nan()
        own = pl.lit(lowest)
        if limits[lowest:].size:
            own = limit.search_sorted(item, side="left").cast(pl.Int64) + lowest
        own = pl.when("kept").then(SAMPLED).when(missing).then(MISSING).otherwise(own)
        found = table.select(own.alias("bin"), "mark").group_by("bin")
        return counts_of_bins(
            found.agg(pl.len(), pl.col("mark").bitwise_xor()).collect(engine="streaming").rows(), edges
        )
