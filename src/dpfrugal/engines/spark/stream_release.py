"""``StreamRelease``: private quantiles of one window of a Spark stream."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpfrugal.estimators.windows.window_release import WindowRelease


@dataclass(frozen=True, kw_only=True)
class StreamRelease(WindowRelease):
    """Released from the rows of one window; ``start`` and ``end`` are None where it is a micro-batch.

    >>> import tempfile, dpfrugal as dpf
    >>> from dpfrugal.engines.spark import StreamRelease, local_session, stream_private_quantiles
    >>> folder, spark, shown = tempfile.mkdtemp(), local_session(), []
    >>> rows = spark.range(9_000).selectExpr("7 AS ms")
    >>> rows.write.parquet(f"{folder}/in")
    >>> stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/in")
    >>> query = stream_private_quantiles(
    ...     stream,
    ...     "ms",
    ...     0.5,
    ...     dpf.PureDP(epsilon=1.0),
    ...     checkpoint=f"{folder}/checkpoint",
    ...     sink=lambda release, batch_id: shown.append(release),
    ...     trigger={"availableNow": True},
    ... )
    >>> query.awaitTermination()
    >>> isinstance(shown[0], StreamRelease), shown[0].value, shown[0].start  # a micro-batch has no times
    (True, 7, None)
    """

    start: datetime | None
    end: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with the window's number and its ends."""
        ends = {"start": self.start, "end": self.end}
        return super().to_dict() | {name: at and at.isoformat() for name, at in ends.items()}
