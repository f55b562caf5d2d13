"""The experiment on the start of the walk: the first item, as in the authors' program, or a public constant.

Two neighbours are walked with the same coins: a stream, and the same one with its first item replaced. From a public
start they end at most 2 grid steps apart, which the noise is calibrated for; from the first item they do not.
"""

from typing import Final

import numpy as np

from dpfrugal.estimators.walk.frugal import Frugal1U
from dpfrugal.paper.cpu_time import ESTIMATORS, Clock
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import GRID
from dpfrugal.paper.results import ResultsFile
from dpfrugal.paper.settings import DECIMALS, NORMAL, START, STARTS, Scale
from dpfrugal.paper.task import Task

FIRST_ITEM, PUBLIC = "the first item", "a public constant"
KEY: Final = ("figure", "start", "items", "repetition")
VALUES: Final = ("seed", "steps_apart")
REPLACEMENT: Final = -1e6  # what the first item becomes
QUANTILE: Final = 0.99


def lengths(scale: Scale) -> list[int]:
    """A hundredth, a tenth and all of the default stream length."""
    return [scale.items // 100, scale.items // 10, scale.items]


def tasks(scale: Scale) -> list[Task]:
    """One per repetition."""
    return [
        Task(
            figure=STARTS,
            dataset=NORMAL,
            repetition=repetition,
            rows=tuple(
                {"figure": STARTS, "start": start, "items": items, "repetition": repetition}
                for items in lengths(scale)
                for start in (FIRST_ITEM, PUBLIC)
            ),
            work=scale.items,
            run=run,
        )
        for repetition in range(1, scale.repetitions + 1)
    ]


def run(task: Task, results: ResultsFile, clock: Clock) -> None:
    """Walk both neighbours from both starts and write how far apart they are at each length."""
    dataset = DATASETS[task.dataset]
    seed = dataset.seed(task.repetition)
    walks: dict[str, list[Frugal1U]] = {}
    for chunk in clock.chunks(dataset.stream(seed, [row["items"] for row in task.rows])):
        streams = [chunk, chunk]
        if not walks:
            streams = [chunk, np.concatenate([[REPLACEMENT], chunk[1:]])]
            walks = {
                FIRST_ITEM: [Frugal1U(QUANTILE, decimals=DECIMALS, start=s[0], coin_seed=seed) for s in streams],
                PUBLIC: [Frugal1U(QUANTILE, decimals=DECIMALS, start=START, coin_seed=seed) for _ in streams],
            }
        with clock.spent_on(ESTIMATORS):
            for pair in walks.values():
                for walk, items in zip(pair, streams, strict=True):
                    walk.update_many(items)
        for row in task.missing(results):
            if row["items"] == clock.items:
                one, other = (walk.estimate for walk in walks[row["start"]])
                results.append({**row, "seed": seed, "steps_apart": round(abs(one - other) * GRID.scale)})
