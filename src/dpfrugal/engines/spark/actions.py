"""Actions of Spark: what one gives, or a sentence; what Spark says of a failure may quote data, and is left behind."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.logger import PySparkLogger

from dpfrugal.inputs.dataframes import run

FAILED: Final = "data: the plan of the table fails when Spark runs it; run it by itself to see why."
LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def act(action: Callable[[], Any]) -> Any:
    """What an action gives."""
    with _quietly():
        return run(action, FAILED)


@contextmanager
def _quietly() -> Iterator[None]:
    """PySpark writes each failure to stderr before it raises it, Java's stack and values of rows included."""
    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
