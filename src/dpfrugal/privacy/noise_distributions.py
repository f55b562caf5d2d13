"""The distributions of noise on integers: ``LAPLACE`` and ``GAUSSIAN``, with all that differs between them.

A guarantee names the one that keeps it (``Guarantee.noise``); nothing else asks which it is. A third one is a class
here, and is added to ``DISTRIBUTIONS``, by whose names ledgers record noise. Proofs: docs/proofs.md, Theorems 5 to 7
for the samplers, Theorem 14 for the losses.

Worked number: discrete Laplace noise of scale 2 has a variance of 7.8354, and reaches 6.4378 with probability 0.04.
"""

import math
from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpfrugal.privacy import discrete_gaussian
from dpfrugal.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from dpfrugal.privacy.guarantee_interface import Guarantee

FARTHEST: Final = 13  # in σ: the tail beyond has a probability below 1e-36
# The probabilities of ``unit``'s multiples from ``first`` on (whole or half), and that of an infinite loss.
LossesOfOne = tuple[float, float, NDArray[np.float64], float]


class NoiseDistribution(ABC):
    """A distribution on the integers, around 0, of one parameter: its ``scale``."""

    name: ClassVar[str]
    largest_composed: ClassVar[float]  # ε or ρ up to which losses are composed

    @abstractmethod
    def deviation(self, scale: float) -> float:
        """The standard deviation, by the formula for continuous noise."""

    @abstractmethod
    def variance(self, scale: float) -> float:
        """The variance of the integer noise."""

    @abstractmethod
    def mean_distance(self, scale: float) -> float:
        """The expectation of |noise|, by the formula for continuous noise."""

    @abstractmethod
    def alpha(self, scale: float, beta: float) -> float:
        """What |noise| reaches with probability β, by the formula for continuous noise."""

    @abstractmethod
    def exact_alpha(self, scale: float, beta: float) -> float:
        """The smallest whole number that the integer noise reaches with probability at most β."""

    @abstractmethod
    def paper_alpha(self, scale: float, beta: float) -> float:
        """α by the paper's formula."""

    @abstractmethod
    def distance(self, sensitivity: Sensitivity) -> float:
        """How far neighbours are apart in the norm that this noise hides."""

    @abstractmethod
    def size(self, distance: float) -> float:
        """The ε or the ρ of noise whose scale a neighbour's distance is this multiple of."""

    @abstractmethod
    def stated(self, guarantee: "Guarantee", rho: float | None) -> float | None:
        """The ε or the ρ that a guarantee with this noise stands for; ``rho`` is what its spend has besides."""

    @abstractmethod
    def losses(self, scale: float, shift: int) -> LossesOfOne:
        """The privacy losses of one integer that a neighbour moves by ``shift``."""

    @abstractmethod
    def sampler(self, opendp: Any, integers: Any, scale: float) -> Any:
        """OpenDP's measurement that adds this noise."""


class _DiscreteLaplace(NoiseDistribution):
    name: ClassVar[str] = "laplace"
    largest_composed: ClassVar[float] = 100.0

    def deviation(self, scale: float) -> float:
        """√2·b."""
        return scale * math.sqrt(2)

    def variance(self, scale: float) -> float:
        """2a/(1-a)², where a = e^(-1/b)."""
        if scale < 1e-3:  # the noise is 0 all but always
            return 0.0
        return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2

    def mean_distance(self, scale: float) -> float:
        """B."""
        return scale

    def alpha(self, scale: float, beta: float) -> float:
        """The paper's formula: ln(1/β)·b."""
        return scale * math.log(1 / beta)

    def exact_alpha(self, scale: float, beta: float) -> float:
        """From P[|X| ≥ k] = 2·exp(-k/b) / (1 + exp(-1/b)) for k ≥ 1."""
        return float(max(1, math.ceil(scale * math.log(2 / (beta * (1 + math.exp(-1 / scale)))))))

    def paper_alpha(self, scale: float, beta: float) -> float:
        """The same as ``alpha``."""
        return self.alpha(scale, beta)

    def distance(self, sensitivity: Sensitivity) -> float:
        """In L1."""
        return sensitivity.l1

    def size(self, distance: float) -> float:
        """ε."""
        return distance

    def stated(self, guarantee: "Guarantee", rho: float | None) -> float | None:
        """Its pure ε."""
        return guarantee.pure_epsilon

    def losses(self, scale: float, shift: int) -> LossesOfOne:
        """(|x - shift| - |x|) / b, where x has probability (1 - a) / (1 + a)·a^|x|, a = e^(-1/b): shift + 1 values."""
        a = math.exp(-1 / scale)
        between = -math.expm1(-1 / scale) * np.exp(-np.arange(shift - 1, 0, -1) / scale)
        chances = np.concatenate([[math.exp(-shift / scale)], between, [1.0]]) / (1 + a)
        return 2 / scale, -shift / 2, chances, 0.0

    def sampler(self, opendp: Any, integers: Any, scale: float) -> Any:
        """For an L1 distance between integers."""
        return opendp.make_laplace(integers, opendp.l1_distance(T="i64"), scale=scale)


class _DiscreteGaussian(NoiseDistribution):
    name: ClassVar[str] = "gaussian"
    largest_composed: ClassVar[float] = 50.0

    def deviation(self, scale: float) -> float:
        """σ."""
        return scale

    def variance(self, scale: float) -> float:
        """σ², which the discrete Gaussian does not exceed."""
        return scale**2

    def mean_distance(self, scale: float) -> float:
        """σ·√(2/π)."""
        return scale * math.sqrt(2 / math.pi)

    def alpha(self, scale: float, beta: float) -> float:
        """Both tails, by the normal quantile."""
        return scale * NormalDist().inv_cdf(1 - beta / 2)

    def exact_alpha(self, scale: float, beta: float) -> float:
        """From the exact tail."""
        return float(discrete_gaussian.two_sided_alpha(scale, beta))

    def paper_alpha(self, scale: float, beta: float) -> float:
        """The paper's equations 5 and 6, which bound one tail only: P[noise > alpha] ≤ beta."""
        return scale * NormalDist().inv_cdf(1 - beta)

    def distance(self, sensitivity: Sensitivity) -> float:
        """In L2."""
        return sensitivity.l2

    def size(self, distance: float) -> float:
        """ρ."""
        return distance * distance / 2

    def stated(self, guarantee: "Guarantee", rho: float | None) -> float | None:
        """The ρ that it implies; that of its spend where it implies none."""
        return rho if guarantee.implied_rho is None else guarantee.implied_rho

    def losses(self, scale: float, shift: int) -> LossesOfOne:
        """ln(p(x) / p(x - shift)) = (shift / σ²)·(shift / 2 - x), where x has the probability p(x) ∝ exp(-x² / 2σ²)."""
        farthest = math.ceil(FARTHEST * scale)
        # FARTHEST from the mean of either neighbour
        x = np.arange(farthest + shift, -farthest - 1, -1, dtype=np.float64)
        chances = np.exp(-x * x / (2 * scale * scale)) / discrete_gaussian.mass(scale)
        return shift / scale**2, -shift / 2 - farthest, chances, discrete_gaussian.tail(scale, farthest + 1)

    def sampler(self, opendp: Any, integers: Any, scale: float) -> Any:
        """For an L2 distance."""
        return opendp.make_gaussian(integers, opendp.l2_distance(T="f64"), scale=scale)


LAPLACE: Final = _DiscreteLaplace()
GAUSSIAN: Final = _DiscreteGaussian()
DISTRIBUTIONS: Final[dict[str, NoiseDistribution]] = {noise.name: noise for noise in (LAPLACE, GAUSSIAN)}
