"""What runs in Spark's Python workers, so that a task costs little more than its rows.

A worker collects garbage after every task, and looks at each object of pandas, numpy and the compiler again: 80 ms,
more than the rows of a micro-batch take. What has been loaded stays, so the first task of a kind puts it aside. A
worker that lacks a module cannot say so in a sentence; the driver does.
"""

import gc
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dpfrugal.errors import TableError

_settled: set[type] = set()


@dataclass(frozen=True)
class InWorker:
    """A function of Arrow batches, as ``mapInArrow`` takes one."""

    work: Callable[[Iterator[Any]], Iterator[Any]]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """All that the function yields."""
        yield from self.work(batches)
        if type(self.work) not in _settled:
            _settled.add(type(self.work))
            gc.collect()
            gc.freeze()


def run(action: Any) -> Any:
    """What an action gives; an executor that lacks a module, or is lost with rows on it, is reported in a sentence."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return action()
    except (PySparkException, Py4JJavaError) as error:
        if lacking := re.search(r"ModuleNotFoundError: No module named '(\w+)", str(error)):
            said = (
                f"An executor's Python has no module {lacking[1]}: install dpfrugal[spark] there, or set "
                "PYSPARK_PYTHON to one that has it before the session is made, or ship an environment (spark.archives)."
            )
        elif "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND" in str(error):
            said = (
                "An executor was lost between two rounds, with rows that it held; nothing was released. Run it again."
            )
        else:
            raise
    raise TableError(said)
