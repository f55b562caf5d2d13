"""Which bin an item lies in, and how many lie in each: what engines that count a column between edges share.

``bin_in_sql`` is a tree of comparisons that Spark and DuckDB compile. An integer is compared with integers, exactly.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.engines.two_scans import Counts
from dpfrugal.errors import TableError
from dpfrugal.estimators.segments.counting import limits_of

SAMPLED: Final = -2  # the bin of rows that the first scan has taken
MISSING: Final = -1  # the bin of NaN and null


def bin_limits(edges: NDArray[np.float64], *, integers: bool) -> tuple[NDArray[Any], int]:
    """The largest number below each edge, and how many of the first bins no item can lie in."""
    limits = limits_of(edges, np.dtype(np.int64 if integers else np.float64))
    return limits, int(np.count_nonzero(edges <= -(2.0**63))) if integers else 0


def bin_in_sql(edges: NDArray[np.float64], *, integers: bool) -> str:
    """The bin of the column ``item`` in SQL: a tree of comparisons, or ``MISSING``.

    As a text it reaches Spark's Java at once; as expressions, in more than a thousand calls that take 0.3 s.
    """
    limits, lowest = bin_limits(edges, integers=integers)
    texts, kind = [repr(limit) for limit in limits.tolist()], "BIGINT" if integers else "DOUBLE"

    def tree(first: int, last: int) -> str:
        if first == last:
            return str(first)
        k = (first + last) // 2
        return f"CASE WHEN item <= CAST('{texts[k]}' AS {kind}) THEN {tree(first, k)} ELSE {tree(k + 1, last)} END"

    missing = "item IS NULL" if integers else "item IS NULL OR isnan(item)"
    return f"CASE WHEN {missing} THEN {MISSING} ELSE {tree(lowest, len(texts))} END"


def counts_of_bins(rows: Iterable[Any], edges: NDArray[np.float64]) -> Counts:
    """Rows of bin, count and fingerprint, as an engine grouped them."""
    found = {row[0]: (row[1], row[2]) for row in rows}
    bins = np.array([found.get(k, (0, 0))[0] for k in range(edges.size + 1)], dtype=np.int64)
    return Counts(bins, found.get(MISSING, (0, 0))[0], found.get(SAMPLED, (0, 0))[1])


def no_such_column(column: str, names: Iterable[str]) -> TableError:
    """What is said of a column that is not there; names of columns are public."""
    return TableError(f"There is no column {column!r}; there are {', '.join(map(repr, names))}.")


def no_numbers(column: str, kind: Any) -> TableError:
    """What is said of a column that does not hold numbers."""
    return TableError(f"The column {column!r} must hold numbers; it holds {kind}.")
