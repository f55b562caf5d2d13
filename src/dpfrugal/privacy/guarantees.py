"""What is promised: ``PureDP``, ``ApproxDP``, ``ZCDP``. Frozen claims that know the noise they need.

Neighbours are two streams of the same length that differ in one replaced item (or, with
``max_items_per_person=k``, in the at most k items of one person). ``noise_scale`` is the scale of integer noise
on the grid for a sensitivity in grid steps; it rests on docs/proofs.md, Theorems 5 to 7.

Worked number: DP-Frugal-1U moves by at most 2 grid steps, so ``PureDP(epsilon=1).noise_scale(2)`` is 2.0 and
|noise| reaches 6.4378 steps with probability at most 0.04.
"""

import math
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Literal

from dpfrugal.errors import ParameterError, ParameterTypeError
from dpfrugal.parameters import integer, one_of, positive, probability
from dpfrugal.privacy import discrete_gaussian
from dpfrugal.storage.json_values import fields_of

NEIGHBOURS = "replace-one"
# OpenDP rounds every step of its privacy maps up; a Gaussian scale this much larger stays below the promise.
MAP_ROUNDING = 1 + 2.0**-48
# What a check allows for the rounding of its own arithmetic, which is finer by far; never in favour of less noise.
HAIR = 1 - 1e-12


@dataclass(frozen=True)
class Sensitivity:
    """How far a neighbour can move all released integers together: in L1, and in squared L2.

    ``one_number`` says that a neighbour moves one number of one release only. Then the exact δ of Theorem 6
    applies; otherwise (several quantiles, or a person's items in several releases) zCDP composes them.
    """

    l1: int
    l2_squared: int
    one_number: bool = False

    @classmethod
    def of(cls, sensitivity: "int | Sensitivity") -> "Sensitivity":
        """An integer is the sensitivity of one number in one release."""
        if isinstance(sensitivity, Sensitivity):
            return sensitivity
        checked = integer("sensitivity", sensitivity, 1)
        return cls(checked, checked**2, one_number=True)

    @property
    def l2(self) -> float:
        """The L2 distance, rounded up."""
        root = math.isqrt(self.l2_squared)
        return float(root) if root**2 == self.l2_squared else math.nextafter(math.sqrt(self.l2_squared), math.inf)


@dataclass(frozen=True, kw_only=True)
class PureDP:
    """ε-differential privacy, by discrete Laplace noise (Theorem 5).

    >>> PureDP(epsilon=0.5).noise_scale(2)
    4.0
    """

    epsilon: float
    noise: ClassVar[Literal["laplace"]] = "laplace"

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

    def alpha(self, beta: float, sensitivity: int | Sensitivity = 2, *, exact: bool = False) -> float:
        """α in grid steps: |noise| reaches it with probability β, by the paper's formula ln(1/β)·b.

        The formula is that of continuous noise. ``exact=True`` gives the smallest whole number of grid steps
        that the discrete noise really added reaches with probability at most β.
        """
        beta, scale = probability("beta", beta), self.noise_scale(sensitivity)
        if not exact:
            return scale * math.log(1 / beta)
        # P[|X| ≥ k] = 2·exp(-k/b) / (1 + exp(-1/b)) for k ≥ 1
        return float(max(1, math.ceil(scale * math.log(2 / (beta * (1 + math.exp(-1 / scale)))))))

    paper_alpha = alpha

    def to_approx(self, delta: float) -> "ApproxDP":
        """ε-DP is (ε, δ)-DP for every δ."""
        return ApproxDP(epsilon=self.epsilon, delta=delta)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether the ε that OpenDP's privacy map reports is within this promise."""
        return reported <= self.epsilon


class _Gaussian:
    """What the two guarantees with discrete Gaussian noise share."""

    noise: ClassVar[Literal["gaussian"]] = "gaussian"

    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        raise NotImplementedError

    def alpha(self, beta: float, sensitivity: int | Sensitivity = 2, *, exact: bool = False) -> float:
        """α in grid steps: |noise| reaches it with probability β, both tails, by the normal quantile.

        The formula is that of continuous noise. ``exact=True`` gives the smallest whole number of grid steps
        that the discrete noise really added reaches with probability at most β.
        """
        beta, sigma = probability("beta", beta), self.noise_scale(sensitivity)
        if exact:
            return float(discrete_gaussian.two_sided_alpha(sigma, beta))
        return sigma * NormalDist().inv_cdf(1 - beta / 2)

    def paper_alpha(self, beta: float, sensitivity: int | Sensitivity = 2) -> float:
        """The paper's equations 5 and 6, which bound one tail only: P[noise > alpha] ≤ beta."""
        return self.noise_scale(sensitivity) * NormalDist().inv_cdf(1 - probability("beta", beta))


@dataclass(frozen=True, kw_only=True)
class ZCDP(_Gaussian):
    """ρ-zero-concentrated differential privacy, by discrete Gaussian noise (Theorem 7).

    >>> round(ZCDP(rho=1.0).to_approx(1e-6).epsilon, 3)
    7.766
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive("rho", self.rho))

    def __str__(self) -> str:
        return f"ρ={self.rho:.4g}"

    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        """σ = sensitivity / √(2ρ), the paper's Definition of the ρ-zCDP Gaussian mechanism, rounded up."""
        return Sensitivity.of(sensitivity).l2 / math.sqrt(2 * self.rho) * MAP_ROUNDING

    def to_approx(self, delta: float) -> "ApproxDP":
        """The (ε, δ) that ρ-zCDP implies (Canonne, Kamath, Steinke, arXiv:2004.00010v5, Section 2.3).

        ε = min over a > 1 of aρ + (ln(1/δ) + (a-1)·ln(1-1/a) - ln a) / (a-1). Every a is sound, so an
        imperfect minimum costs a little ε and nothing else.
        """
        delta = probability("delta", delta)
        return ApproxDP(epsilon=_epsilon_of_zcdp(self.rho, delta), delta=delta)

    def paper_to_approx(self, delta: float) -> "ApproxDP":
        """The paper's looser conversion, ε = ρ + 2√(ρ·ln(1/δ))."""
        delta = probability("delta", delta)
        return ApproxDP(epsilon=self.rho + 2 * math.sqrt(self.rho * math.log(1 / delta)), delta=delta)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether the ρ that OpenDP's privacy map reports is within this promise."""
        return reported <= self.rho


@dataclass(frozen=True, kw_only=True)
class ApproxDP(_Gaussian):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta))
        one_of("calibration", self.calibration, ("analytic", "classic"))
        if self.calibration == "classic":
            self.noise_scale(2)  # refuse at the door: 2 is the sensitivity the paper calibrates for

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

    def to_approx(self, delta: float) -> "ApproxDP":
        """The same ε at a larger δ. A smaller δ does not follow from this claim alone."""
        if probability("delta", delta) < self.delta:
            raise ParameterError(f"delta must be at least {self.delta:g}, the δ of this guarantee; {delta:g} is not.")
        return ApproxDP(epsilon=self.epsilon, delta=delta)

    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether the ρ that OpenDP's privacy map reports for the Gaussian is within this promise."""
        sensitivity = Sensitivity.of(sensitivity)
        return self._holds(sensitivity.l2 / math.sqrt(2 * reported), sensitivity)

    def _holds(self, sigma: float, sensitivity: Sensitivity) -> bool:
        if sensitivity.one_number and sigma <= 2 * discrete_gaussian.LARGEST_EXACT_SIGMA:
            return discrete_gaussian.delta(sigma, sensitivity.l1, self.epsilon) <= self.delta * HAIR
        return _epsilon_of_zcdp(sensitivity.l2_squared / (2 * sigma * sigma), self.delta) <= self.epsilon * HAIR


Guarantee = PureDP | ApproxDP | ZCDP


def _epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The smallest ε found over orders a = 1 + e^t, by golden-section search on t."""

    def epsilon(t: float) -> float:
        gap = math.exp(t)  # a - 1
        log_ratio = math.log(gap) - math.log1p(gap)  # ln(1 - 1/a)
        return (1 + gap) * rho + (math.log(1 / delta) + gap * log_ratio - math.log1p(gap)) / gap

    golden = (math.sqrt(5) - 1) / 2
    low, high = -20.0, 60.0
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if epsilon(left) < epsilon(right) else (left, high)
    # Below ε = 0 the claim would be (0, δ); a tiny positive ε says the same and stays a legal parameter.
    return max(epsilon((low + high) / 2) * (1 + 1e-12), 1e-12)


@lru_cache(maxsize=256)
def _analytic_sigma(epsilon: float, delta: float, sensitivity: Sensitivity) -> float:
    sigma = discrete_gaussian.sigma_for(epsilon, delta, sensitivity.l1) if sensitivity.one_number else None
    if sigma is None:
        sigma = sensitivity.l2 / math.sqrt(2 * rho_for(epsilon, delta)) * (1 + 1e-9)
    return sigma * MAP_ROUNDING


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """The largest ρ (to a part in 10^12) whose tight conversion at δ is at most ε."""
    low, high = 0.0, epsilon
    while _epsilon_of_zcdp(high, delta) <= epsilon:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if high - low <= 1e-12 * high:
            break
        low, high = (middle, high) if _epsilon_of_zcdp(middle, delta) <= epsilon else (low, middle)
    if low == 0.0:
        raise ParameterError(f"epsilon={epsilon:g} with delta={delta:g} is too small to calibrate noise for.")
    return low


def checked_guarantee(guarantee: Guarantee) -> Guarantee:
    """``guarantee``, if it is one."""
    if not isinstance(guarantee, PureDP | ApproxDP | ZCDP):
        raise ParameterTypeError(f"guarantee must be a PureDP, ApproxDP or ZCDP, not {type(guarantee).__name__}.")
    return guarantee


GUARANTEES = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}


def of_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee by its name: ``{"PureDP": {"epsilon": 1.0}}``."""
    return {type(guarantee).__name__: asdict(guarantee)}


def guarantee_of(record: Any) -> Guarantee:
    """The guarantee that ``of_guarantee`` wrote."""
    if not isinstance(record, dict) or len(record) != 1:
        raise ValueError("a guarantee has one name")
    ((name, parameters),) = record.items()
    if (kind := GUARANTEES.get(name)) is None:
        raise ValueError("no such guarantee")
    return kind(**fields_of(parameters, [field.name for field in fields(kind)]))
