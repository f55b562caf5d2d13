"""``Guarantee``: all that noise, estimators, releases, ledgers and audits ask of a guarantee.

Nothing outside this package asks which class a guarantee is of. A new one is a frozen dataclass in guarantees.py,
derived from ``LaplaceNoise`` or ``GaussianNoise``, that answers what is abstract here; checkpoints and ledgers find it
by its name. tests/privacy/test_guarantees.py defines one.
"""

import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from dpfrugal.errors import ParameterTypeError
from dpfrugal.parameters import probability
from dpfrugal.privacy import discrete_gaussian
from dpfrugal.privacy.event_probabilities import Probabilities
from dpfrugal.privacy.sensitivity import Sensitivity
from dpfrugal.storage.json_values import fields_of

if TYPE_CHECKING:
    from dpfrugal.privacy.guarantees import ApproxDP

G = TypeVar("G", bound="Guarantee")


# Without eq: an undecorated subclass would inherit an equality under which all its instances are equal.
@dataclass(frozen=True, eq=False)
class Guarantee(ABC):
    """What covers a release: the noise it needs, what it implies, how it composes, how it is recorded.

    ``size`` is the number that says how much is promised, and that adds up where guarantees of one kind compose.
    """

    noise: ClassVar[Literal["laplace", "gaussian"]]
    symbol: ClassVar[str]  # of ``size``, as it is printed
    # The rule by which sizes add up to a total of this kind, as ledgers record it; None: only (ε, δ) decides.
    composition_rule: ClassVar[str | None] = None

    @abstractmethod
    def __str__(self) -> str:
        """The parameters, as they are printed."""

    @abstractmethod
    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        """The scale of the integer noise: b of a discrete Laplace distribution, σ of a discrete Gaussian."""

    @abstractmethod
    def noise_deviation(self, sensitivity: int | Sensitivity) -> float:
        """The standard deviation of the noise, by the formula for continuous noise."""

    @abstractmethod
    def noise_variance(self, sensitivity: int | Sensitivity) -> float:
        """The variance of the integer noise."""

    @abstractmethod
    def alpha(self, beta: float, sensitivity: int | Sensitivity = 2, *, exact: bool = False) -> float:
        """α in grid steps: |noise| reaches it with probability β. ``exact``: the noise really added, in whole steps."""

    @abstractmethod
    def paper_alpha(self, beta: float, sensitivity: int | Sensitivity = 2) -> float:
        """α by the paper's formula."""

    @abstractmethod
    def covers(self, reported: float, sensitivity: int | Sensitivity) -> bool:
        """Whether what OpenDP's privacy map reports, ε of Laplace noise or ρ of Gaussian, is within this promise."""

    @property
    @abstractmethod
    def epsilon_delta(self) -> tuple[float, float] | None:
        """The (ε, δ) that it states by itself, with δ = 0 if it is pure; None where it states none."""

    @property
    def pure_epsilon(self) -> float | None:
        """ε, where the guarantee is pure ε-DP."""
        return self.epsilon_delta[0] if self.epsilon_delta is not None and self.epsilon_delta[1] == 0 else None

    @property
    @abstractmethod
    def implied_rho(self) -> float | None:
        """The ρ of zCDP that it implies by itself; None where it implies none."""

    def noise_rho(self, *sensitivities: Sensitivity) -> float | None:
        """The ρ of zCDP that its noise has, where the guarantee implies none and each item meets one of these."""
        return None

    @abstractmethod
    def to_approx(self, delta: float) -> "ApproxDP":
        """The (ε, δ) that it implies at ``delta``."""

    @property
    @abstractmethod
    def size(self) -> float:
        """ε, ρ, or whatever adds up where guarantees of this kind compose."""

    @abstractmethod
    def of_size(self, size: float) -> "Guarantee":
        """A guarantee of the same kind with another size."""

    def taken_by(self, spend: "Guarantee", rho: float | None) -> float | None:
        """The size that ``spend`` takes of a total of this kind; None where it cannot be part of one.

        ``rho`` is the ρ of zCDP that the spend has. Asked only of a kind with a ``composition_rule``.
        """
        return None

    @abstractmethod
    def least_size(self, p: Probabilities, q: Probabilities) -> Probabilities:
        """The least size under which events may have the probabilities p and q on two neighbours."""

    def to_record(self) -> dict[str, Any]:
        """By its name, for JSON: ``{"PureDP": {"epsilon": 1.0}}``."""
        return {type(self).__name__: asdict(self)}

    @classmethod
    def of_record(cls, record: Any) -> Self:
        """The guarantee that ``to_record`` wrote, if it is of this class or one derived from it."""
        if not isinstance(record, dict) or len(record) != 1:
            raise ValueError("a guarantee has one name")
        ((name, parameters),) = record.items()
        if (kind := cls.kinds().get(name)) is None:
            raise ValueError("no such guarantee")
        return kind(**fields_of(parameters, [field.name for field in fields(kind)]))

    @classmethod
    def kinds(cls) -> dict[str, type[Self]]:
        """Every guarantee derived from this class, by name; the names of this package mean its own classes."""
        found = {} if inspect.isabstract(cls) else {cls.__name__: cls}
        for derived in cls.__subclasses__():
            for name, kind in derived.kinds().items():
                if name not in found or kind.__module__.startswith("dpfrugal."):
                    found[name] = kind
        return found


class LaplaceNoise(Guarantee):
    """A guarantee that is kept by discrete Laplace noise."""

    noise: ClassVar[Literal["laplace", "gaussian"]] = "laplace"

    def noise_deviation(self, sensitivity: int | Sensitivity) -> float:
        """√2·b."""
        return self.noise_scale(sensitivity) * math.sqrt(2)

    def noise_variance(self, sensitivity: int | Sensitivity) -> float:
        """2a/(1-a)², where a = e^(-1/b); 7.8352 for b = 2."""
        scale = self.noise_scale(sensitivity)
        if scale < 1e-3:  # the noise is 0 all but always
            return 0.0
        return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2

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


class GaussianNoise(Guarantee):
    """A guarantee that is kept by discrete Gaussian noise."""

    noise: ClassVar[Literal["laplace", "gaussian"]] = "gaussian"

    def noise_deviation(self, sensitivity: int | Sensitivity) -> float:
        """σ."""
        return self.noise_scale(sensitivity)

    def noise_variance(self, sensitivity: int | Sensitivity) -> float:
        """σ², which the discrete Gaussian does not exceed."""
        return self.noise_scale(sensitivity) ** 2

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


def checked_guarantee(guarantee: G, kind: type[Guarantee] = Guarantee, name: str = "guarantee") -> G:
    """``guarantee``, if it is one of that kind: a frozen dataclass, whose fields are all that it promises."""
    if not isinstance(guarantee, kind):
        *others, last = kind.kinds()
        known = f"{', '.join(others)} or {last}" if others else last
        article = "an" if known[0] in "AEIOU" else "a"
        raise ParameterTypeError(f"{name} must be {article} {known}, not {type(guarantee).__name__}.")
    if "__dataclass_fields__" not in vars(type(guarantee)):
        raise ParameterTypeError(f"{type(guarantee).__name__} must be a frozen dataclass, as every guarantee is.")
    return guarantee
