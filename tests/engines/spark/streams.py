"""A stream of one file a micro-batch, and what its sink was given."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dpfrugal as dpf
from dpfrugal.engines import spark as dps

GUARANTEE = dpf.PureDP(epsilon=1.0)
ONCE: dict[str, Any] = {"trigger": {"availableNow": True}}


class Stream:
    """Runs over the same files, with a checkpoint in the same folder."""

    def __init__(self, spark: Any, folder: Path, tables: list[pa.Table]) -> None:
        self._spark, self.folder = spark, folder
        (folder / "in").mkdir(parents=True)
        for number, table in enumerate(tables):
            path = folder / "in" / f"{number:03}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_000_000 + number, 1_000_000 + number))  # Spark reads the oldest first
        self.schema = spark.read.parquet(str(folder / "in")).schema
        self.shown: list[tuple[int, Any]] = []

    @property
    def frame(self) -> Any:
        source = self._spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return source.parquet(str(self.folder / "in"))

    def _options(self, options: dict[str, Any], show: Any, dies_at: int | None) -> dict[str, Any]:
        def sink(found: Any, batch: int) -> None:
            self.shown.append((batch, show(found)))
            if batch == dies_at:
                raise RuntimeError("killed between the sink and Spark's commit")

        return {"checkpoint": self.folder / "check", "sink": sink, "guarantee": GUARANTEE, **ONCE, **options}

    def run(self, column: str = "x", quantiles: Any = 0.5, dies_at: int | None = None, **options: Any) -> "Stream":
        """Of all rows: the sink has been given releases."""
        given = self._options(options, lambda release: release, dies_at)
        dps.stream_private_quantiles(self.frame, column, quantiles, **given).awaitTermination()
        return self

    def run_by(self, column: str = "x", quantiles: Any = 0.5, dies_at: int | None = None, **options: Any) -> "Stream":
        """Per key: the sink has been given tables, here lists of rows."""
        given = self._options(options, lambda table: [row.asDict() for row in table.collect()], dies_at)
        dps.stream_quantiles_by(self.frame, column, quantiles, **{"by": "key", **given}).awaitTermination()
        return self
