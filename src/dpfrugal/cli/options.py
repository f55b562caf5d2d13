"""Options that several commands share, and what they add up to."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.privacy.guarantees import ApproxDP, Guarantee


class Algorithm(StrEnum):
    """The estimators that the command line offers."""

    PRIVATE_QUANTILE = "private-quantile"
    DP_FRUGAL_1U = "dp-frugal-1u"


class NanPolicyChoice(StrEnum):
    """What to do with NaN and null items."""

    RAISE = "raise"
    OMIT = "omit"


class Calibration(StrEnum):
    """How Gaussian noise is calibrated for (ε, δ)."""

    ANALYTIC = "analytic"
    CLASSIC = "classic"


class NullKeysChoice(StrEnum):
    """What to do with rows that have no key."""

    RAISE = "raise"
    DROP = "drop"


class Output(StrEnum):
    """The forms in which a table can be written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


PRIVACY, ESTIMATOR, KEYS, BUDGET = "Guarantee", "Estimator", "A quantile per key", "Budget"

Quantiles = Annotated[
    list[float],
    typer.Option("-q", "--quantile", help="A quantile strictly between 0 and 1; repeat it for several."),
]
Epsilon = Annotated[
    float | None, typer.Option(help="ε of pure DP, or of (ε, δ)-DP with --delta.", rich_help_panel=PRIVACY)
]
Delta = Annotated[float | None, typer.Option(help="δ of (ε, δ)-DP.", rich_help_panel=PRIVACY)]
Rho = Annotated[float | None, typer.Option(help="ρ of zero-concentrated DP.", rich_help_panel=PRIVACY)]
CalibrationOption = Annotated[
    Calibration | None,
    typer.Option(help="For (ε, δ)-DP: the tight noise (default), or the paper's.", rich_help_panel=PRIVACY),
]
MaxItems = Annotated[
    int,
    typer.Option(
        "--max-items-per-person", help="Protect a person with up to this many items.", rich_help_panel=PRIVACY
    ),
]
Decimals = Annotated[
    int | None,
    typer.Option(help="Decimal places to print; for dp-frugal-1u those of its grid.", rich_help_panel=ESTIMATOR),
]
Start = Annotated[
    float,
    typer.Option(help="Where to start: a public guess, never a look at the data.", rich_help_panel=ESTIMATOR),
]
AlgorithmOption = Annotated[
    Algorithm | None,
    typer.Option(
        help="The estimator: ours (default), or the paper's walk, as always with --by.", rich_help_panel=ESTIMATOR
    ),
]
NanPolicyOption = Annotated[
    NanPolicyChoice,
    typer.Option("--nan-policy", help="Refuse NaN and null items, or count them unmoved.", rich_help_panel=ESTIMATOR),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", help="Spend the guarantee in this ledger (see dpfrugal ledger).", rich_help_panel=BUDGET),
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="The dataset that is spent on.", rich_help_panel=BUDGET)
]
Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys", help="The keys: a text file, one per line, or a Parquet or Arrow column.", rich_help_panel=KEYS
    ),
]
DiscoverKeys = Annotated[
    bool,
    typer.Option(
        "--discover-keys",
        help="Show the keys with many rows. --epsilon and --delta cover all: half of ε, and δ, is for this.",
        rich_help_panel=KEYS,
    ),
]
MaxKeys = Annotated[
    int | None,
    typer.Option(
        "--max-keys-per-person",
        help="Protect a person with --max-items-per-person in each of so many keys.",
        rich_help_panel=KEYS,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of columns.")]


def guarantees_by_key(
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    calibration: Calibration | None,
    keys: Path | None,
    discover_keys: bool,
    algorithm: Algorithm | None,
) -> "tuple[Guarantee, ApproxDP | None]":
    """What covers the values, and what covers which keys are shown; together they are what was asked for."""
    from dpfrugal.privacy.guarantees import ApproxDP, PureDP

    if algorithm is Algorithm.PRIVATE_QUANTILE:
        raise ParameterError("--by takes the paper's walk for each key; leave out --algorithm private-quantile.")
    if (keys is None) != discover_keys:
        raise ParameterError(
            "--by needs either --keys FILE or --discover-keys with --delta: which keys there are is data too."
        )
    if not discover_keys:
        return guarantee_from(epsilon, delta, rho, calibration), None
    if rho is not None or epsilon is None or delta is None:
        raise ParameterError("--discover-keys needs --epsilon and --delta, and takes no --rho.")
    if calibration is not None:
        raise ParameterError("--calibration is for Gaussian noise; with --discover-keys all noise is Laplace's.")
    half = ApproxDP(epsilon=epsilon, delta=delta).epsilon / 2
    return PureDP(epsilon=half), ApproxDP(epsilon=half, delta=delta)


def guarantee_from(
    epsilon: float | None, delta: float | None, rho: float | None, calibration: Calibration | None = None
) -> "Guarantee":
    """--epsilon, --epsilon with --delta, or --rho: there is no default guarantee."""
    from dpfrugal.privacy.guarantees import ZCDP, ApproxDP, PureDP

    if calibration is not None and (delta is None or epsilon is None):
        raise ParameterError("--calibration is for --epsilon with --delta.")
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ParameterError("Give either --rho, or --epsilon with or without --delta, not both.")
        return ZCDP(rho=rho)
    if epsilon is None and delta is not None:
        raise ParameterError("--delta needs --epsilon.")
    if epsilon is None:
        raise ParameterError("A guarantee is needed: --epsilon, or --epsilon with --delta, or --rho.")
    if delta is None:
        return PureDP(epsilon=epsilon)
    return ApproxDP(epsilon=epsilon, delta=delta, calibration=(calibration or Calibration.ANALYTIC).value)


def ledger_from(file: Path | None, dataset: str | None) -> "Ledger | None":
    """--ledger and --dataset: both or none."""
    from dpfrugal.budget.ledger import Ledger

    if (file is None) != (dataset is None):
        raise ParameterError("--ledger and --dataset belong together: the file, and the name of what is spent on.")
    return None if file is None else Ledger(file)
