"""What is promised: ``PureDP``, ``ApproxDP``, ``ZCDP``. Frozen claims that know the noise they need.

Neighbours are two streams of the same length that differ in one replaced item (or, with
``max_items_per_person=k``, in the at most k items of one person). ``noise_scale`` is the scale of integer noise
on the grid for a sensitivity in grid steps; it rests on docs/proofs.md, Theorems 5 to 7.

Worked number: DP-Frugal-1U moves by at most 2 grid steps, so ``PureDP(epsilon=1).noise_scale(2)`` is 2.0 and
|noise| reaches 6.4378 steps with probability at most 0.04.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import exact, one_of, positive, probability
from dpfrugal.privacy import discrete_gaussian
from dpfrugal.privacy.event_probabilities import Probabilities, least_epsilon, least_rho
from dpfrugal.privacy.guarantee_interface import GaussianNoise, Guarantee, LaplaceNoise, checked_guarantee
from dpfrugal.privacy.noise_distributions import NoiseDistribution
from dpfrugal.privacy.sensitivity import Sensitivity
from dpfrugal.privacy.zcdp_conversions import epsilon_of_zcdp, rho_for

__all__ = ["NEIGHBOURS", "ZCDP", "ApproxDP", "Guarantee", "PureDP", "Sensitivity", "checked_guarantee"]

NEIGHBOURS = "replace-one"
# OpenDP rounds every step of its privacy maps up; a Gaussian scale this much larger stays below the promise.
MAP_ROUNDING = 1 + 2.0**-48
# A check asks for less than the promised ε or δ by this factor, to cover the rounding errors of its arithmetic.
CHECK_MARGIN = 1 - 1e-12


@dataclass(frozen=True, kw_only=True)
class PureDP(LaplaceNoise):
    """ε-differential privacy, by discrete Laplace noise (Theorem 5).

    >>> PureDP(epsilon=0.5).noise_scale(2)
    4.0
    """

    epsilon: float
    symbol = "ε"
    composition_rule: ClassVar[str | None] = "sum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))

    def __str__(self) -> str:
        return f"ε={self.epsilon:g}"

    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        """Give b in the paper: sensitivity / ε, rounded up."""
        l1 = Sensitivity.of(sensitivity).l1
        scale = l1 / self.epsilon
        if math.isinf(scale):
            raise ParameterError(f"epsilon={self.epsilon:g} is too small to calibrate noise for.")
        while Fraction(scale) * Fraction(self.epsilon) < l1:
            scale = math.nextafter(scale, math.inf)
        return scale

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """(ε, 0)."""
        return self.epsilon, 0.0

    @property
    def implied_rho(self) -> float:
        """ε-DP is ε·tanh(ε/2)-zCDP (Theorem 12)."""
        return self.epsilon * math.tanh(self.epsilon / 2) * (1 + 1e-12)

    def to_approx(self, delta: float) -> "ApproxDP":
        """ε-DP is (ε, δ)-DP for every δ."""
        return ApproxDP(epsilon=self.epsilon, delta=delta)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether the ε that OpenDP's privacy map reports is within this promise."""
        return reported <= self.epsilon

    @property
    def size(self) -> float:
        """ε."""
        return self.epsilon

    def of_size(self, size: float) -> "PureDP":
        """Another ε."""
        return PureDP(epsilon=size)

    def taken_by(self, spend: Guarantee, rho: float | None) -> float | None:
        """The ε of a pure spend; no other can be part of a pure total."""
        return spend.pure_epsilon

    def least_size(self, p: Probabilities, q: Probabilities) -> Probabilities:
        """The least ε."""
        return least_epsilon(p, q, 0.0)


@dataclass(frozen=True, kw_only=True)
class ApproxDP(GaussianNoise):
    """(ε, δ)-differential privacy, by discrete Gaussian noise whose exact δ was checked (Theorem 6).

    ``calibration="analytic"`` takes the smallest σ that passes; ``"classic"`` takes the paper's
    σ² = 2Δ²·ln(1.25/δ)/ε², and is refused where it does not hold.

    >>> round(ApproxDP(epsilon=1, delta=0.04).noise_scale(2), 4)
    2.822
    >>> round(ApproxDP(epsilon=1, delta=0.04, calibration="classic").noise_scale(2), 4)
    5.2475
    """

    epsilon: float
    delta: float
    calibration: Literal["analytic", "classic"] = "analytic"
    symbol = "ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        one_of("calibration", self.calibration, ("analytic", "classic"))
        if self.calibration == "classic":
            self.noise_scale(2)  # refused when it is made: 2 is the sensitivity the paper calibrates for

    def __str__(self) -> str:
        return f"ε={self.epsilon:g}, δ={self.delta:g}"

    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        """σ: exact where a neighbour moves one number once, through zCDP where it may move several."""
        sensitivity = Sensitivity.of(sensitivity)
        if self.calibration == "analytic":
            return _analytic_sigma(self.epsilon, self.delta, sensitivity)
        sigma = self.classic_scale(sensitivity)
        if not self._holds(sigma, sensitivity):
            raise ParameterError(
                f'calibration="classic" does not give ε={self.epsilon:g}, δ={self.delta:g}: its exact δ is larger. '
                'Use calibration="analytic".'
            )
        return sigma

    def classic_scale(self, sensitivity: int | Sensitivity) -> float:
        """The textbook σ, proved for ε < 1 only; the paper's Definition of the Gaussian mechanism."""
        return Sensitivity.of(sensitivity).l2 * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon

    def continuous_scale(self, sensitivity: int | Sensitivity) -> float:
        """Balle and Wang's σ for continuous noise: what ``noise_scale`` starts from, and stays close to."""
        return discrete_gaussian.continuous_sigma(self.epsilon, self.delta, Sensitivity.of(sensitivity).l2)

    @property
    def epsilon_delta(self) -> tuple[float, float]:
        """(ε, δ)."""
        return self.epsilon, self.delta

    @property
    def implied_rho(self) -> None:
        """None: a bare (ε, δ) implies no zCDP."""

    def noise_rho(self, *sensitivities: Sensitivity) -> float | None:
        """The ρ of zCDP that its Gaussian noise has besides, when each item meets one of these sensitivities."""
        rhos = (s.l2_squared / (2 * self.noise_scale(s) ** 2) * (1 + 1e-12) for s in sensitivities)
        return max(rhos, default=None)

    def to_approx(self, delta: float) -> "ApproxDP":
        """The same ε at a larger δ. A smaller δ does not follow from this claim alone."""
        if probability("delta", delta) < self.delta:
            raise ParameterError(f"delta must be at least {self.delta:g}, the δ of this guarantee; {delta:g} is not.")
        return ApproxDP(epsilon=self.epsilon, delta=delta)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether the ρ that OpenDP's privacy map reports for the Gaussian is within this promise."""
        sensitivity = Sensitivity.of(sensitivity)
        return self._holds(sensitivity.l2 / math.sqrt(2 * reported), sensitivity)

    @property
    def size(self) -> float:
        """ε, at its δ."""
        return self.epsilon

    def of_size(self, size: float) -> "ApproxDP":
        """Another ε at the same δ."""
        return ApproxDP(epsilon=size, delta=self.delta)

    def repeated(self, times: int) -> "ApproxDP":
        """ε and δ both add up."""
        return ApproxDP(epsilon=float(times * exact(self.epsilon)), delta=float(times * exact(self.delta)))

    def how_many(self, each: Guarantee) -> int:
        """As many as both ε and δ cover."""
        _, delta = each.epsilon_delta or (0.0, 0.0)
        return min(super().how_many(each), int(exact(self.delta) / exact(delta)))

    def least_size(self, p: Probabilities, q: Probabilities) -> Probabilities:
        """The least ε at its δ."""
        return least_epsilon(p, q, self.delta)

    def _holds(self, sigma: float, sensitivity: Sensitivity) -> bool:
        if sensitivity.one_number and sigma <= 2 * discrete_gaussian.LARGEST_EXACT_SIGMA:
            return discrete_gaussian.delta(sigma, sensitivity.l1, self.epsilon) <= self.delta * CHECK_MARGIN
        return epsilon_of_zcdp(sensitivity.l2_squared / (2 * sigma * sigma), self.delta) <= self.epsilon * CHECK_MARGIN


@dataclass(frozen=True, kw_only=True)
class ZCDP(GaussianNoise):
    """ρ-zero-concentrated differential privacy, by discrete Gaussian noise (Theorem 7).

    >>> round(ZCDP(rho=1.0).to_approx(1e-6).epsilon, 3)
    7.766
    """

    rho: float
    symbol = "ρ"
    composition_rule: ClassVar[str | None] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive("rho", self.rho))

    def __str__(self) -> str:
        return f"ρ={self.rho:.4g}"

    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        """σ = sensitivity / √(2ρ), the paper's Definition of the ρ-zCDP Gaussian mechanism, rounded up."""
        return Sensitivity.of(sensitivity).l2 / math.sqrt(2 * self.rho) * MAP_ROUNDING

    @property
    def epsilon_delta(self) -> None:
        """None: at each δ it has another ε."""

    @property
    def implied_rho(self) -> float:
        """ρ."""
        return self.rho

    def to_approx(self, delta: float) -> "ApproxDP":
        """The (ε, δ) that ρ-zCDP implies (Canonne, Kamath, Steinke, arXiv:2004.00010v5, Section 2.3)."""
        delta = probability("delta", delta)
        return ApproxDP(epsilon=epsilon_of_zcdp(self.rho, delta), delta=delta)

    def paper_to_approx(self, delta: float) -> "ApproxDP":
        """The paper's looser conversion, ε = ρ + 2√(ρ·ln(1/δ))."""
        delta = probability("delta", delta)
        return ApproxDP(epsilon=self.rho + 2 * math.sqrt(self.rho * math.log(1 / delta)), delta=delta)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether the ρ that OpenDP's privacy map reports is within this promise."""
        return reported <= self.rho

    @property
    def size(self) -> float:
        """ρ."""
        return self.rho

    def of_size(self, size: float) -> "ZCDP":
        """Another ρ."""
        return ZCDP(rho=size)

    def taken_by(self, spend: Guarantee, rho: float | None) -> float | None:
        """The ρ of a spend; one of which none is known cannot be part of a total in ρ."""
        return rho

    def least_size(self, p: Probabilities, q: Probabilities) -> Probabilities:
        """The least ρ."""
        return least_rho(p, q)


def of_noise(noise: NoiseDistribution, scale: float, sensitivity: Sensitivity) -> Guarantee:
    """What noise of a scale promises by itself.

    >>> print(of_noise(PureDP.noise, 4.0, Sensitivity.of(2)))
    ε=0.5
    """
    kind = {PureDP.noise: PureDP(epsilon=1), ZCDP.noise: ZCDP(rho=1)}[noise]
    return kind.of_size(noise.size(noise.distance(sensitivity) / scale))


@lru_cache(maxsize=256)
def _analytic_sigma(epsilon: float, delta: float, sensitivity: Sensitivity) -> float:
    sigma = discrete_gaussian.sigma_for(epsilon, delta, sensitivity.l1) if sensitivity.one_number else None
    if sigma is None:
        sigma = sensitivity.l2 / math.sqrt(2 * rho_for(epsilon, delta)) * (1 + 1e-9)
    return sigma * MAP_ROUNDING
