"""What Spark's stages have written to shuffles, by Spark's own count."""

from typing import Any, Final

from py4j.protocol import Py4JJavaError

BEYOND: Final = 500  # stages that are looked for: those that Spark has planned and skipped have a number, and no count


def shuffled(spark: Any, first: int) -> tuple[int, int]:
    """How many records the stages since ``first`` have written to a shuffle; and the next stage."""
    store, records, after = spark.sparkContext._jsc.sc().statusStore(), 0, first
    for stage in range(first, first + BEYOND):
        try:
            records += store.lastStageAttempt(stage).shuffleWriteRecords()
        except Py4JJavaError:
            continue
        after = stage + 1
    return records, after
