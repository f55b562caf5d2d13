"""The paper's parameters (its Table 2), and the figures that vary them.

A panel varies one parameter of one algorithm and keeps the others at their defaults; stream lengths scale with
``--items``, by default the paper's ten million.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import integer
from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

Algorithm = Literal["L", "G", "ρ", "PrivateQuantile"]
Parameter = Literal["epsilon", "delta", "rho", "quantile", "items"]

PAPER_ITEMS: Final = 10_000_000
QUICK_ITEMS: Final = PAPER_ITEMS // 100
PAPER_REPETITIONS: Final = 10
FEWEST_ITEMS, MOST_ITEMS = 100, 1_000_000_000
MOST_REPETITIONS: Final = 1000
DECIMALS: Final = 3  # items × 10³, truncated
START: Final = 0.0  # the paper's Algorithm 1

QUANTILES: Final = (0.1, 0.3, 0.5, 0.99)
TENTHS_OF_ITEMS: Final = (10, 50, 75, 100)  # stream lengths in tenths of the default length
EPSILONS: Final = (0.1, 0.5, 1.0, 2.0)
DELTAS: Final = (0.01, 0.04, 0.08, 0.1)
RHOS: Final = (0.1, 0.5, 1.0, 5.0)
NORMAL: Final = "D5"
ALGORITHMS: Final[tuple[Algorithm, ...]] = ("L", "G", "ρ")
FULL_NAMES: Final[dict[Algorithm, str]] = {
    "L": "DP-Frugal-1U-L",
    "G": "DP-Frugal-1U-G",
    "ρ": "DP-Frugal-1U-ρ",
    "PrivateQuantile": "PrivateQuantile",
}


@dataclass(frozen=True)
class Setting:
    """One point of a plot: everything but the repetition. Parameters that an algorithm does not have are None."""

    algorithm: Algorithm
    dataset: str
    items: int
    quantile: float = 0.99
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the released value; for (ε, δ) with the paper's own noise, the classic calibration."""
        if self.rho is not None:
            return ZCDP(rho=self.rho)
        epsilon = cast(float, self.epsilon)  # every algorithm without ρ has one
        if self.delta is not None:
            return ApproxDP(epsilon=epsilon, delta=self.delta, calibration="classic")
        return PureDP(epsilon=epsilon)

    def with_value(self, parameter: Parameter, value: float) -> "Setting":
        """The same with one parameter changed."""
        if parameter == "items":
            return replace(self, items=int(value))
        return replace(self, **{parameter: value})  # type: ignore[arg-type]


def default_setting(algorithm: Algorithm, dataset: str, items: int) -> Setting:
    """The defaults of Table 2."""
    if algorithm == "ρ":
        return Setting(algorithm, dataset, items, rho=1.0)
    return Setting(algorithm, dataset, items, epsilon=1.0, delta=0.04 if algorithm == "G" else None)


@dataclass(frozen=True)
class Panel:
    """A plot of the relative error against one parameter of one algorithm, on normal items."""

    figure: str
    algorithm: Algorithm
    varied: Parameter
    values: tuple[float, ...]

    def settings(self, items: int) -> list[Setting]:
        """The points of the plot, from left to right."""
        default = default_setting(self.algorithm, NORMAL, items)
        if self.varied == "items":
            return [default.with_value("items", items * tenths // 10) for tenths in self.values]
        return [default.with_value(self.varied, value) for value in self.values]


PANELS: Final = {
    panel.figure: panel
    for panel in (
        Panel("1a", "L", "epsilon", EPSILONS),
        Panel("1b", "L", "quantile", QUANTILES),
        Panel("1c", "L", "items", TENTHS_OF_ITEMS),
        Panel("2a", "G", "delta", DELTAS),
        Panel("2b", "G", "quantile", QUANTILES),
        Panel("2c", "G", "items", TENTHS_OF_ITEMS),
        Panel("3a", "ρ", "rho", RHOS),
        Panel("3b", "ρ", "quantile", QUANTILES),
        Panel("3c", "ρ", "items", TENTHS_OF_ITEMS),
    )
}
THROUGHPUT, DISTRIBUTIONS, ACCURACY, STARTS = "1d", "4", "accuracy", "start"
PARTS: Final = tuple(sorted([*PANELS, THROUGHPUT]))
FIGURES: Final = (*PARTS, DISTRIBUTIONS, ACCURACY, STARTS)


def chosen_figures(asked: list[str]) -> list[str]:
    """The figures asked for, in the paper's order; all of them for none, and 1a to 1d for 1."""
    wanted: set[str] = set()
    for name in asked:
        matching = [figure for figure in FIGURES if name in (figure, figure[:1] if figure in PARTS else figure)]
        if not matching:
            known = ", ".join(FIGURES)
            raise ParameterError(f"--figure must be one of {known}, or 1, 2 or 3 for all its parts; {name!r} is not.")
        wanted.update(matching)
    return [figure for figure in FIGURES if not wanted or figure in wanted]


@dataclass(frozen=True)
class Scale:
    """How much is run: the default stream length, and how often each experiment is repeated."""

    items: int = PAPER_ITEMS
    repetitions: int = PAPER_REPETITIONS

    def __post_init__(self) -> None:
        integer("--items", self.items, FEWEST_ITEMS, MOST_ITEMS, shown_high=f"{MOST_ITEMS:,}")
        integer("--repetitions", self.repetitions, 1, MOST_REPETITIONS, shown_high=f"{MOST_REPETITIONS:,}")

    @property
    def lengths(self) -> list[int]:
        """The four stream lengths."""
        return [self.items * tenths // 10 for tenths in TENTHS_OF_ITEMS]
