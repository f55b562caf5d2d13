"""Figure 1d: updates per second, beside ``numpy.sum`` over the same items in the same run.

The items are the paper's: normal, × 1000, truncated to integers. Batches are larger than the caches; each is summed,
walked and summed again, and the faster sum counts. Nothing else runs meanwhile.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U
from dpfrugal.paper.cpu_time import Clock
from dpfrugal.paper.datasets import CHUNK, DATASETS
from dpfrugal.paper.noise_conventions import GRID
from dpfrugal.paper.resources import machine
from dpfrugal.paper.results import ResultsFile
from dpfrugal.paper.settings import NORMAL, THROUGHPUT, Scale, default_setting
from dpfrugal.paper.task import Task

KEY: Final = ("figure", "dataset", "items", "repetition")
VALUES: Final = ("seed", "updates_per_second", "sums_per_second", "ratio", "machine")
BATCH: Final = 1 << 22  # 32 MiB of int64


def tasks(scale: Scale) -> list[Task]:
    """One per repetition: a stream of the greatest length, timed up to each of the four lengths."""
    return [
        Task(
            figure=THROUGHPUT,
            dataset=NORMAL,
            repetition=repetition,
            rows=tuple(
                {"figure": THROUGHPUT, "dataset": NORMAL, "items": items, "repetition": repetition}
                for items in scale.lengths
            ),
            work=scale.lengths[-1],
            run=run,
            alone=True,
        )
        for repetition in range(1, scale.repetitions + 1)
    ]


def run(task: Task, results: ResultsFile, clock: Clock) -> None:
    """Time the walk and the sum, batch by batch."""
    dataset = DATASETS[task.dataset]
    seed = dataset.seed(task.repetition)
    cuts = [row["items"] for row in task.rows]
    guarantee = default_setting("L", task.dataset, task.work).guarantee
    batch, filled, seen = np.zeros(min(BATCH, task.work), dtype=np.int64), 0, 0
    DPFrugal1U(0.99, guarantee, coin_seed=seed).update_many(batch[: 1 << 14])  # loads the compiler
    estimator = DPFrugal1U(0.99, guarantee, coin_seed=seed)
    walking, summing = 0.0, 0.0
    for chunk in clock.chunks(dataset.stream(seed, cuts)):
        batch[filled : filled + chunk.size] = np.floor(chunk * GRID.scale)
        filled += chunk.size
        if filled + CHUNK <= batch.size and clock.items not in cuts:  # there is room for one more
            continue
        first, walked, second = (seconds_of(act, batch[:filled]) for act in (np.sum, estimator.update_many, np.sum))
        walking, summing = walking + walked, summing + min(first, second)
        seen, filled = seen + filled, 0
        if seen in cuts:
            rates: dict[str, Any] = {"updates_per_second": seen / walking, "sums_per_second": seen / summing}
            results.append(
                {
                    **next(row for row in task.rows if row["items"] == seen),
                    "seed": seed,
                    **rates,
                    "ratio": summing / walking,
                    "machine": machine(),
                }
            )


def seconds_of(act: Callable[[NDArray[np.int64]], object], batch: NDArray[np.int64]) -> float:
    """How long ``act`` takes on a batch, by the clock."""
    begun = time.perf_counter()
    act(batch)
    return time.perf_counter() - begun
