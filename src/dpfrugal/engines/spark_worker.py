"""What runs in Spark's Python workers, so that a task costs little more than its rows.

A worker collects garbage after every task, and looks at each object of pandas, numpy and the compiler again: 80 ms,
more than the rows of a micro-batch take. What has been loaded stays, so the first task of a kind puts it aside.
"""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
