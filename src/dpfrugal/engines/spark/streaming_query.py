"""A running stream: Spark's StreamingQuery, which ends in our own sentence where we refused something.

What a micro-batch raises goes through Java, and comes back as a ``StreamingQueryException`` with a stack trace. The
refusal is remembered before that, and raised to whoever waits for the query; the bridge to Java does not log it too.
"""

import inspect
import logging
from collections.abc import Callable
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming import StreamingQuery

from dpfrugal.errors import DPFrugalError, ParameterTypeError


class _Refusals(logging.Filter):
    """Leaves out what is raised to the caller."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown."""
        return not (record.exc_info and isinstance(record.exc_info[1], DPFrugalError))


REFUSALS = _Refusals()


class Query(StreamingQuery):  # type: ignore[misc]  # pyspark's types are not followed
    """A StreamingQuery, all of it; the waiting calls raise what was refused."""

    def __init__(self, writer: Any, take: Callable[[Any, int], None]) -> None:
        self._refusal: DPFrugalError | None = None
        logging.getLogger("py4j.clientserver").addFilter(REFUSALS)  # the same one is added once

        def remembering(batch: Any, batch_id: int) -> None:
            try:
                take(batch, batch_id)
            except DPFrugalError as error:
                self._refusal = error
                raise

        super().__init__(writer.foreachBatch(remembering).start()._jsq)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802 - Spark's name
        """Wait until the query ends, or so many seconds; raises what ended it."""
        ended: bool | None = self._told(lambda: super(Query, self).awaitTermination(timeout))
        return ended

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all that is there has been taken; raises what ended the query."""
        self._told(super().processAllAvailable)

    def exception(self) -> Exception | None:
        """What ended the query; None where nothing did."""
        ended: Exception | None = super().exception()
        return self._refusal if ended is not None and self._refusal is not None else ended

    def _told(self, wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        except StreamingQueryException:
            if self._refusal is None:
                raise
        raise self._refusal


def checked_sink(sink: Any, of: str) -> None:
    """Refuse what could not be called when the first release is there."""
    if not callable(sink):
        raise ParameterTypeError(f"sink must be a function of {of} and a batch id, not {type(sink).__name__}.")
    try:
        inspect.signature(sink).bind(None, 0)
        return
    except ValueError:  # one that is not written in Python
        return
    except TypeError:
        pass
    raise ParameterTypeError(f"sink must take two arguments, {of} and a batch id.")


def checked_trigger(trigger: Any) -> None:
    """Refuse what Spark's own trigger could not be asked with."""
    if trigger is not None and not isinstance(trigger, dict):
        raise ParameterTypeError(
            f'trigger must be a dictionary such as {{"processingTime": "10 seconds"}}, not {type(trigger).__name__}.'
        )
