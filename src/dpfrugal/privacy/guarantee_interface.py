"""``Guarantee``: all that noise, estimators, releases, ledgers and audits ask of a guarantee.

Nothing outside this package asks which class a guarantee is of. A new one is a frozen dataclass in guarantees.py,
derived from ``LaplaceNoise`` or ``GaussianNoise``, that answers what is abstract here; checkpoints and ledgers find it
by its name. tests/privacy/test_guarantees.py defines one.
"""

import inspect
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from dpfrugal.errors import ParameterTypeError
from dpfrugal.parameters import exact, probability
from dpfrugal.privacy.event_probabilities import Probabilities
from dpfrugal.privacy.noise_distributions import GAUSSIAN, LAPLACE, NoiseDistribution
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

    >>> import dpfrugal as dpf
    >>> one = dpf.PureDP(epsilon=1.0)
    >>> isinstance(one, dpf.Guarantee), one.size, str(one)
    (True, 1.0, 'ε=1')
    """

    noise: ClassVar[NoiseDistribution]
    symbol: ClassVar[str]  # of ``size``, as it is printed
    # The rule by which sizes add up to a total of this kind, as ledgers record it; None: only (ε, δ) decides.
    composition_rule: ClassVar[str | None] = None

    @abstractmethod
    def __str__(self) -> str:
        """The parameters, as they are printed."""

    @abstractmethod
    def noise_scale(self, sensitivity: int | Sensitivity) -> float:
        """The scale of the integer noise: b of a discrete Laplace distribution, σ of a discrete Gaussian."""

    def noise_deviation(self, sensitivity: int | Sensitivity) -> float:
        """The standard deviation of the noise, by the formula for continuous noise."""
        return self.noise.deviation(self.noise_scale(sensitivity))

    def noise_variance(self, sensitivity: int | Sensitivity) -> float:
        """The variance of the integer noise; 7.8354 for Laplace noise of scale 2."""
        return self.noise.variance(self.noise_scale(sensitivity))

    def alpha(self, beta: float, sensitivity: int | Sensitivity = 2, *, exact: bool = False) -> float:
        """α in grid steps: |noise| reaches it with probability β, both tails.

        The formula is that of continuous noise. ``exact=True`` gives the smallest whole number of grid steps
        that the discrete noise really added reaches with probability at most β.
        """
        beta, scale = probability("beta", beta), self.noise_scale(sensitivity)
        return self.noise.exact_alpha(scale, beta) if exact else self.noise.alpha(scale, beta)

    def paper_alpha(self, beta: float, sensitivity: int | Sensitivity = 2) -> float:
        """α by the paper's formula, which bounds one tail only where the noise is Gaussian."""
        return self.noise.paper_alpha(self.noise_scale(sensitivity), probability("beta", beta))

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

    def repeated(self, times: int) -> "Guarantee":
        """What so many of this guarantee come to, in decimals: three of ε = 0.1 are ε = 0.3."""
        return self.of_size(float(times * exact(self.size)))

    def how_many(self, each: "Guarantee") -> int:
        """How many of another guarantee of its kind this one covers, in decimals."""
        return int(exact(self.size) / exact(each.size))

    def is_like(self, other: "Guarantee") -> bool:
        """Whether both are of one kind: their sizes can be compared."""
        return type(self) is type(other)

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

    noise: ClassVar[NoiseDistribution] = LAPLACE


class GaussianNoise(Guarantee):
    """A guarantee that is kept by discrete Gaussian noise."""

    noise: ClassVar[NoiseDistribution] = GAUSSIAN


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
