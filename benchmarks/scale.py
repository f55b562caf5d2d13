"""How often a table is scanned and how many rows reach the driver, for any size: the search on rows that are not there.

Row k of a group has the value k, so what a scan would answer is arithmetic, and a table of 10^12 rows costs no more
than the rows that a scan returns of it. Everything else is the engines' own code (``engines/bracket_search.py``).

    python -m benchmarks.scale
"""

from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import dpfrugal as dpf
from dpfrugal.engines.bracket_search import BracketedTable
from dpfrugal.estimators.table.rows.engine_tables import Assigned, Columns, EngineTable, TableSource, Tallies

SIZES = [(10**7, 1), (10**9, 1), (10**12, 1), (10**7, 1_000), (10**9, 1_000), (10**12, 1_000)]
QUANTILES = [0.5, 0.99]


class Numbers(BracketedTable):
    """So many rows of so many keys, that are not there."""

    def __init__(self, rows: int, keys: int) -> None:
        self.rows, self.keys, self.scans, self.collected = rows // keys, keys, 0, 0
        self.chance, self.counter = np.random.default_rng(1), self

    @property
    def value_type(self) -> Any:
        """Integers."""
        return pa.int64()

    def counts(self) -> Any:
        """The rows of each key."""
        self.counter.scans += 1
        keys = {"key": np.arange(self.keys)} if self.keys > 1 else {}
        rows = np.full(self.keys, self.rows)
        return pa.table({**keys, "rows": rows, "present": rows, "nobodies": 0 * rows, "checksum": 0 * rows})

    def tallies(self, assigned: Assigned, counts: Any) -> Tallies:
        """The rows of each group that count."""
        return Tallies.of(assigned, counts)

    def scan(self, brackets: Any, quantiles: int, *, counted: bool, by_value: bool) -> tuple[Any, Any]:
        """What lies in brackets of row numbers, each row once."""
        self.counter.scans += 1
        numbers, share = (brackets.column(name).to_numpy() for name in ("number", "share"))
        low = [brackets.column(f"low_{k}").fill_null(0).to_numpy() for k in range(quantiles)]
        high = [brackets.column(f"high_{k}").fill_null(self.rows - 1).to_numpy() for k in range(quantiles)]
        found = []
        for at, number in enumerate(numbers):
            parts = []
            for first, last in sorted((low[k][at], high[k][at]) for k in range(quantiles)):
                start = max(first, parts[-1][1] + 1) if parts else first
                if start <= last:
                    parts.append((start, last))
            for first, last in parts if share[at] else ():
                size = last - first + 1
                times = size if share[at] >= 1 else self.chance.binomial(size, share[at])
                rows = np.arange(first, last + 1) if times == size else self.chance.integers(first, last + 1, times)
                found.append((np.full(rows.size, number, dtype=np.int32), rows))
        columns = [np.concatenate([part[k] for part in found]) if found else np.zeros(0, np.int64) for k in range(2)]
        self.counter.collected += columns[1].size
        rows_found = pa.table({"number": columns[0].astype(np.int32), "value": columns[1].astype(np.int64)})
        if by_value:
            rows_found = rows_found.append_column("times", pa.array(np.ones(rows_found.num_rows, dtype=np.int64)))
        if not counted:
            return None, rows_found
        told = {"number": numbers, "rows": np.full(numbers.size, self.rows)}
        told["checksum"] = 0 * told["rows"]
        told |= {f"below_{k}": low[k] for k in range(quantiles)} | {f"upto_{k}": high[k] + 1 for k in range(quantiles)}
        return pa.table(told), rows_found


class Source(TableSource):
    """The table as the front doors take one."""

    def __init__(self, table: Numbers) -> None:
        self._table = table

    def open(self, columns: Columns) -> EngineTable:
        """Its only column; without keys all rows together, whose scans count too."""
        if columns.by or self._table.keys == 1:
            return self._table
        whole = Numbers(self._table.rows * self._table.keys, 1)
        whole.counter = self._table
        return whole


def main() -> None:
    """A table."""
    shown = Table("rows", "keys", "quantiles", "scans", "rows to the driver", "rows off")
    for rows, keys in SIZES:
        table, guarantee = Numbers(rows, keys), dpf.PureDP(epsilon=1.0)
        if keys == 1:
            values = dpf.private_quantiles(Source(table), QUANTILES, guarantee, column="x").values
            off = max(abs(value - q * rows) for q, value in zip(QUANTILES, values, strict=True))
        else:
            answers = dpf.quantiles_by(Source(table), "x", 0.5, guarantee, by="key", keys=np.arange(keys))
            off = float(np.abs(answers.column("value").to_numpy() - 0.5 * table.rows).mean())
        asked = "0.5, 0.99" if keys == 1 else "0.5"
        shown.add_row(f"{rows:.0e}", f"{keys:,}", asked, str(table.scans), f"{table.collected:,}", f"{off:.1f}")
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
