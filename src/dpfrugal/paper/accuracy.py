"""The paper's (α, β)-accuracy: α as printed, by its formula and for both tails, and how often noise reaches each.

The paper defines accuracy by |error| ≥ α, but its α for Gaussian noise bounds one tail only: noise reaches it twice as
often as β says. The experiment draws noise and counts.
"""

from dataclasses import dataclass
from typing import Final

from dpfrugal.paper.cpu_time import NOISE, Clock, Stopped
from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import (
    AS_PUBLISHED,
    CONVENTIONS,
    GRID,
    ON_GRID,
    STEPS_MOVED,
    Convention,
    noise_steps,
)
from dpfrugal.paper.results import ResultsFile
from dpfrugal.paper.settings import ACCURACY, ALGORITHMS, NORMAL, Algorithm, Scale, default_setting
from dpfrugal.paper.task import Task

BETA: Final = 0.04
PRINTED: Final[dict[Algorithm, float]] = {"L": 6.4, "G": 9.1, "ρ": 2.4}
KEY: Final = ("figure", "algorithm", "convention", "alpha_kind", "repetition")
VALUES: Final = ("alpha", "draws", "reached")
# The α that are counted: the paper's own with noise as published; the two-sided and the exact one on the grid.
KINDS: Final[dict[Convention, tuple[str, ...]]] = {
    AS_PUBLISHED: ("printed", "formula", "two_sided"),
    ON_GRID: ("two_sided", "whole"),
}
DRAWS_AT_ONCE: Final = 1000
ITEMS_PER_DRAW: Final = 1000  # a draw by OpenDP takes as long as a thousand items


@dataclass(frozen=True)
class Alphas:
    """α for the defaults, in the unit of the noise; ``whole`` is exact for discrete noise in whole steps."""

    printed: float
    formula: float
    two_sided: float
    whole: float


def alphas(algorithm: Algorithm) -> Alphas:
    """The four α of an algorithm at ε = 1, δ = 0.04, ρ = 1 and β = 0.04."""
    guarantee = default_setting(algorithm, NORMAL, 1).guarantee
    return Alphas(
        printed=PRINTED[algorithm],
        formula=guarantee.paper_alpha(BETA, STEPS_MOVED),
        two_sided=guarantee.alpha(BETA, STEPS_MOVED),
        whole=guarantee.alpha(BETA, STEPS_MOVED, exact=True),
    )


def draws_per_repetition(scale: Scale) -> int:
    """20,000 at the paper's scale, and never under a thousand."""
    return min(max(scale.items // 500, DRAWS_AT_ONCE), 20_000)


def tasks(scale: Scale) -> list[Task]:
    """One per repetition; the noise is the same whatever the data, so there is no stream."""
    draws = draws_per_repetition(scale)
    rows = [
        {"figure": ACCURACY, "algorithm": algorithm, "convention": convention, "alpha_kind": kind}
        for algorithm in ALGORITHMS
        for convention in CONVENTIONS
        for kind in KINDS[convention]
    ]
    return [
        Task(
            figure=ACCURACY,
            dataset=DATASETS[NORMAL].name,
            repetition=repetition,
            rows=tuple({**row, "repetition": repetition, "draws": draws} for row in rows),
            work=draws * len(ALGORITHMS) * len(CONVENTIONS) * ITEMS_PER_DRAW,
            run=run,
        )
        for repetition in range(1, scale.repetitions + 1)
    ]


def run(task: Task, results: ResultsFile, clock: Clock) -> None:
    """Draw the noise of each algorithm and count how often it reaches each α."""
    draws = task.rows[0]["draws"]
    for algorithm in ALGORITHMS:
        for convention in CONVENTIONS:
            owed = [
                row
                for row in task.missing(results)
                if row["algorithm"] == algorithm and row["convention"] == convention
            ]
            if not owed:
                clock.worked(draws * ITEMS_PER_DRAW)
                continue
            sizes = noise_sizes(algorithm, convention, draws, clock)
            for row in owed:
                alpha = getattr(alphas(algorithm), row["alpha_kind"])
                results.append({**row, "alpha": alpha, "reached": sum(size >= alpha for size in sizes)})


def noise_sizes(algorithm: Algorithm, convention: Convention, draws: int, clock: Clock) -> list[float]:
    """|noise|, in data units as published and in grid steps on the grid."""
    guarantee = default_setting(algorithm, NORMAL, 1).guarantee
    unit = GRID.scale if convention == AS_PUBLISHED else 1
    sizes: list[float] = []
    while len(sizes) < draws:
        if clock.stopping():
            raise Stopped
        wanted = min(DRAWS_AT_ONCE, draws - len(sizes))
        with clock.spent_on(NOISE):
            sizes += [abs(step) / unit for step in noise_steps(wanted, guarantee, convention)]
        clock.worked(wanted * ITEMS_PER_DRAW)
    return sizes
