"""Results summarised: matrices of relative errors for the tests, and one line per point for tables and plots."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpfrugal.paper.datasets import DATASETS
from dpfrugal.paper.noise_conventions import GRID, OWN_COUNTS, SENSITIVITIES, Convention, mean_noise
from dpfrugal.paper.rank_tests import Matrix
from dpfrugal.paper.results import Row
from dpfrugal.paper.settings import START, Algorithm, Setting

NUMBERS: Final = ("epsilon", "delta", "rho")


def counted(number: int, noun: str) -> str:
    """A number and what it counts.

    >>> counted(1, "job"), counted(2000, "step")
    ('1 job', '2,000 steps')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def setting_of(row: Row) -> Setting:
    """The setting that a row of a sweep belongs to."""
    numbers = {name: float(row[name]) if row[name] else None for name in NUMBERS}
    algorithm: Algorithm = row["algorithm"]  # type: ignore[assignment]
    return Setting(algorithm, row["dataset"], int(row["items"]), float(row["quantile"]), **numbers)


@dataclass(frozen=True)
class Point:
    """One point of a plot: a setting under one convention, over all its repetitions."""

    setting: Setting
    convention: Convention
    errors: tuple[float, ...]
    exact_lower: float
    exact_upper: float
    released: float

    @property
    def mean(self) -> float:
        """The paper's figure: the relative error, averaged."""
        return statistics.fmean(self.errors)

    @property
    def standard_error(self) -> float:
        """Of the mean; never larger than the mean, because no error is below 0."""
        return statistics.stdev(self.errors) / math.sqrt(len(self.errors)) if len(self.errors) > 1 else 0.0

    @property
    def noise_alone(self) -> float | None:
        """The relative error of the noise without that of the walk: E|noise| over the quantile."""
        if self.convention not in SENSITIVITIES:
            return None
        return mean_noise(self.setting.guarantee, self.convention) / abs(self.exact_lower)

    @property
    def can_converge(self) -> bool:
        """Whether the walk can reach the quantile from its start: it drifts up at most q steps per item, down 1-q."""
        if self.convention == OWN_COUNTS:
            return True
        way = (self.exact_lower - START) * GRID.scale
        pace = self.setting.quantile if way > 0 else 1 - self.setting.quantile
        return abs(way) <= pace * self.setting.items


def points_of(rows: Iterable[Row]) -> list[Point]:
    """The points of a sweep, in the order of algorithm, convention and setting in which they are plotted."""
    groups: dict[tuple[Convention, Setting], list[Row]] = defaultdict(list)
    for row in rows:
        groups[(row["convention"], setting_of(row))].append(row)  # type: ignore[index]

    def mean(rows: list[Row], column: str) -> float:
        return statistics.fmean(float(row[column]) for row in rows)

    return [
        Point(
            setting=setting,
            convention=convention,
            errors=tuple(float(row["relative_error"]) for row in sorted(group, key=lambda row: int(row["repetition"]))),
            exact_lower=mean(group, "exact_lower"),
            exact_upper=mean(group, "exact_upper"),
            released=mean(group, "released"),
        )
        for (convention, setting), group in sorted(groups.items(), key=lambda item: _place(*item[0]))
    ]


def _place(convention: str, setting: Setting) -> tuple[object, ...]:
    values = (setting.items, setting.quantile, *(getattr(setting, name) or 0.0 for name in NUMBERS))
    return ("LGρP".index(setting.algorithm[0]), convention, list(DATASETS).index(setting.dataset), *values)


def error_matrix(points: Iterable[Point]) -> Matrix:
    """Repetitions by settings: what the rank tests read. Only repetitions that every setting has."""
    columns = [point.errors for point in points]
    return np.array([column[: min(map(len, columns))] for column in columns]).T
