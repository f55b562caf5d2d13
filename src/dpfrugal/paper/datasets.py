"""D1 to D8, the paper's Table 1: streams that are never held in memory and do not depend on how they are cut.

Chunk ``k`` of a stream is drawn by numpy's SFC64 from ``SeedSequence(seed, spawn_key=(number, k))``: two streams with
one seed agree up to the end of the shorter one, and a chunk needs no other chunk. All draws are float64, by numpy's
ziggurat for normal and exponential variates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CHUNK: Final = 1 << 18  # two megabytes: it stays in a core's cache until every estimator has seen it
GENERATOR: Final = "numpy SFC64 per chunk of 2^18 items"


@dataclass(frozen=True)
class Dataset:
    """One row of the paper's Table 1."""

    number: int
    distribution: str
    parameters: str
    draw: Callable[[np.random.Generator, int], Floats]

    @property
    def name(self) -> str:
        """D1 to D8."""
        return f"D{self.number}"

    def seed(self, repetition: int) -> int:
        """The seed of a repetition, for its items and its coins: 15 for D5's first, the same for every algorithm."""
        return 10 * repetition + self.number

    def stream(self, seed: int, cuts: Sequence[int]) -> Iterator[Floats]:
        """The items up to the last cut; a chunk ends at every cut."""
        position, ends = 0, sorted(set(cuts))
        while ends:
            index = position // CHUNK
            spring = np.random.SeedSequence(seed, spawn_key=(self.number, index))
            chunk = self.draw(np.random.Generator(np.random.SFC64(spring)), CHUNK)
            first = index * CHUNK
            while ends and position < first + CHUNK:
                end = min(ends[0], first + CHUNK)
                yield chunk[position - first : end - first]
                position = end
                if position == ends[0]:
                    ends.pop(0)


DATASETS: Final = {
    dataset.name: dataset
    for dataset in (
        Dataset(1, "uniform", "[0, 1000]", lambda rng, size: rng.uniform(0.0, 1000.0, size)),
        Dataset(2, "chi-squared", "5 degrees of freedom", lambda rng, size: rng.chisquare(5.0, size)),
        Dataset(3, "exponential", "rate 0.5", lambda rng, size: rng.exponential(2.0, size)),
        Dataset(4, "lognormal", "μ = 1, σ = 1.5", lambda rng, size: rng.lognormal(1.0, 1.5, size)),
        Dataset(5, "normal", "μ = 50, σ = 2", lambda rng, size: rng.normal(50.0, 2.0, size)),
        Dataset(6, "Cauchy", "location 10000, scale 1250", lambda rng, size: 1e4 + 1250 * rng.standard_cauchy(size)),
        Dataset(7, "extreme value", "location 20, scale 2", lambda rng, size: rng.gumbel(20.0, 2.0, size)),
        Dataset(8, "gamma", "shape 2, scale 4", lambda rng, size: rng.gamma(2.0, 4.0, size)),
    )
}
