"""The byte-shift pair: one longer cell moves the cuts of readers that cut by bytes, and nobody else's rows."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.dataset as ds

LONG = "x" * 65
CUT_BY_BYTES = pc.ReadOptions(block_size=1 << 12)
CSV_SOURCES: dict[str, Any] = {
    "pyarrow table": lambda path: pc.read_csv(path, read_options=CUT_BY_BYTES),
    "pyarrow reader": lambda path: pc.open_csv(path, read_options=CUT_BY_BYTES),
    "pandas arrow": lambda path: pc.read_csv(path, read_options=CUT_BY_BYTES).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas": pd.read_csv,
    "polars": pl.read_csv,
    "polars lazy": pl.scan_csv,
    "duckdb": lambda path: duckdb.read_csv(str(path)),
    "dataset": lambda path: ds.dataset(path, format="csv"),
    "file": str,
}


def byte_shift_pair(folder: Path) -> tuple[Path, Path]:
    """Two files that differ in one key, of person 0; values are row numbers."""
    rng = np.random.default_rng(3)
    keys, who = rng.choice(["a", "b", "c"], 4000), rng.integers(1, 300, 4000)
    keys[0], who[0] = "b", 0
    paths = []
    for name, first in (("short.csv", "b"), ("long.csv", LONG)):
        column = [first, *keys[1:].tolist()]
        pc.write_csv(pa.table({"key": column, "who": who, "x": np.arange(4000)}), folder / name)
        paths.append(folder / name)
    return paths[0], paths[1]
