"""DuckDB: private quantiles of a relation, counted by DuckDB.

>>> import duckdb, dpfrugal as dpf
>>> from dpfrugal.engines import duckdb as dpd
>>> table = duckdb.sql("SELECT range % 1000 AS ms FROM range(400_000)")
>>> r = dpd.private_quantiles(table, "ms", 0.5, dpf.PureDP(epsilon=1.0))
>>> abs(r.value - 500) < 30
True
"""

import secrets
from collections.abc import Sequence
from typing import Any, Unpack

import duckdb
import numpy as np
from numpy.typing import NDArray

from dpfrugal.engines import two_scans
from dpfrugal.engines.bin_counts import SAMPLED, bin_in_sql, counts_of_bins, no_numbers, no_such_column
from dpfrugal.engines.two_scans import Counts, Options, Sample
from dpfrugal.errors import ParameterTypeError
from dpfrugal.estimators.releases import SegmentRelease
from dpfrugal.privacy.guarantees import Guarantee

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FLOATS = ("FLOAT", "DOUBLE", "DECIMAL", "HUGEINT", "UBIGINT")  # as DOUBLE


def private_quantiles(
    table: Any, column: str, quantiles: float | Sequence[float], guarantee: Guarantee, **options: Unpack[Options]
) -> SegmentRelease:
    """Private quantiles of one column of a DuckDB relation; the options are those of ``PrivateQuantile``."""
    return two_scans.private_quantiles(_Rows(table, column), quantiles, guarantee, options)


def counts(table: Any, column: str, edges: NDArray[np.float64]) -> Counts:
    """How many items of the column lie between the edges."""
    return _Rows(table, column).counts(edges)


class _Rows:
    """A column, and which of its rows are sampled: those whose position hashes below a cut."""

    def __init__(self, table: Any, column: str) -> None:
        if not isinstance(table, duckdb.DuckDBPyRelation):
            raise ParameterTypeError(
                "table must be a DuckDB relation, such as duckdb.sql(...) or duckdb.read_parquet(...) gives, "
                f"not {type(table).__name__}."
            )
        kinds = dict(zip(table.columns, map(str, table.types), strict=True))
        if column not in kinds:
            raise no_such_column(column, kinds)
        kind = kinds[column].split("(")[0]
        if kind not in INTEGERS + FLOATS:
            raise no_numbers(column, kind)
        self._integers = kind in INTEGERS
        name = '"' + column.replace('"', '""') + '"'
        item = f"CAST({name} AS {'BIGINT' if self._integers else 'DOUBLE'})"
        self._items = table.project(f"{item} AS item")
        salt = secrets.randbits(62)
        self._numbered = self._items.project(f"item, hash(row_number() OVER (), {salt}::BIGINT) AS place")
        self._kept = "false"

    def sample(self, wanted: int) -> Sample:
        rows = self._items.aggregate("count(*)").fetchall()[0][0]
        cut = min(2**64 - 1, int(2**64 * wanted / max(rows, 1)))
        self._kept = f"place <= {cut}::UBIGINT"
        kept = self._numbered.filter(self._kept)
        found = kept.project("item, place, hash(place, item) AS mark").order("place").to_arrow_table()
        marks = found.column("mark").to_numpy()
        mark = int(np.bitwise_xor.reduce(marks)) if marks.size else 0
        return Sample(found.column("item"), found.num_rows, rows, mark)

    def rest(self, edges: NDArray[np.float64]) -> Counts:
        return self._counted(self._numbered.project(f"item, {self._kept} AS kept, hash(place, item) AS mark"), edges)

    def counts(self, edges: NDArray[np.float64]) -> Counts:
        return self._counted(self._items.project("item, false AS kept, 0::UBIGINT AS mark"), edges)

    def _counted(self, table: Any, edges: NDArray[np.float64]) -> Counts:
        """One scan: each row's bin by a tree of comparisons, and the rows of each bin."""
        own = f"CASE WHEN kept THEN {SAMPLED} ELSE {bin_in_sql(edges, integers=self._integers)} END AS bin"
        found = table.project(f"{own}, mark").aggregate("bin, count(*), bit_xor(mark)", "bin")
        return counts_of_bins(found.fetchall(), edges)
