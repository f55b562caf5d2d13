"""Every option that two commands or more share, each declared once.

``EstimatorOptions`` and ``KeyOptions`` hold what ``quantile`` and ``watch`` have in common: a field is an option of
both commands. To add, rename or describe one, change its field here.
"""

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dpfrugal.errors import ParameterError
from dpfrugal.parameters import NanPolicy

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.privacy.guarantees import ApproxDP, Guarantee

Algorithm = Literal["table", "private-quantile", "dp-frugal-1u"]
Calibration = Literal["analytic", "classic"]


PRIVACY, ESTIMATOR, TABLE, KEYS, BUDGET = "Guarantee", "Estimator", "Table", "A quantile per key", "Budget"

Epsilon = Annotated[
    float | None, typer.Option(help="ε of pure DP, or of (ε, δ)-DP with --delta.", rich_help_panel=PRIVACY)
]
Delta = Annotated[float | None, typer.Option(help="δ of (ε, δ)-DP.", rich_help_panel=PRIVACY)]
Rho = Annotated[float | None, typer.Option(help="ρ of zero-concentrated DP (zCDP).", rich_help_panel=PRIVACY)]
MaxItems = Annotated[
    int,
    typer.Option(
        help="The guarantee covers all rows or items of a person who has at most this many; 1 covers a single one.",
        rich_help_panel=PRIVACY,
    ),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="Record the guarantee in this ledger (see dpfrugal ledger).", rich_help_panel=BUDGET),
]
Dataset = Annotated[
    str | None, typer.Option(help="The dataset of the ledger whose budget is spent.", rich_help_panel=BUDGET)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of columns of text.")]


@dataclass(frozen=True)
class EstimatorOptions:
    """The quantiles, the guarantee, the estimator and the budget."""

    quantiles: Annotated[
        list[float],
        typer.Option(
            "-q",
            "--quantile",
            metavar="Q",
            parser=lambda text: _numbers(text),
            help="A quantile, strictly between 0 and 1; for several 0.5,0.9, or repeat the option.",
        ),
    ]
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    calibration: Annotated[
        Calibration | None,
        typer.Option(
            help="Gaussian noise for (ε, δ)-DP. analytic (the default): the least that suffices; classic: the textbook "
            "formula used in the paper.",
            rich_help_panel=PRIVACY,
        ),
    ] = None
    max_items_per_person: MaxItems = 1
    algorithm: Annotated[
        Algorithm | None,
        typer.Option(
            metavar="NAME",
            help="table, for rows that can be held or read again, in any order; private-quantile, which reads a steady "
            "stream once; or dp-frugal-1u, the paper's random walk. Without this option, quantile uses table, and "
            "watch answers each window by itself.",
            rich_help_panel=ESTIMATOR,
        ),
    ] = None
    decimals: Annotated[
        int | None,
        typer.Option(
            help="table: how many decimals the numbers have, a public hint that is never needed; private-quantile: "
            "how many to print; dp-frugal-1u: the grid, on which one step is 10^−decimals.",
            rich_help_panel=ESTIMATOR,
        ),
    ] = None
    start: Annotated[
        float | None,
        typer.Option(
            help="A guess of the quantile, for private-quantile and dp-frugal-1u to start from; default: 0. It is "
            "public: never take it from the data.",
            rich_help_panel=ESTIMATOR,
        ),
    ] = None
    nan_policy: Annotated[
        NanPolicy,
        typer.Option(
            help="NaN and null rows, on standard input also lines that are not numbers: refuse the data, or leave "
            "them out of the quantile.",
            rich_help_panel=ESTIMATOR,
        ),
    ] = "raise"
    ledger_file: LedgerFile = None
    dataset: Dataset = None

    def __post_init__(self) -> None:
        # Each -q is a list: 0.5,0.9 are two.
        object.__setattr__(self, "quantiles", list(itertools.chain.from_iterable(self.quantiles)))  # type: ignore[arg-type]

    @property
    def first(self) -> float:
        """Where an estimator starts."""
        return self.start or 0.0

    def guarantee(self) -> "Guarantee":
        """The one guarantee that was asked for."""
        return guarantee_from(self.epsilon, self.delta, self.rho, self.calibration)

    def ledger(self) -> "Ledger | None":
        """--ledger and --dataset: both or none."""
        return ledger_from(self.ledger_file, self.dataset)


@dataclass(frozen=True)
class KeyOptions:
    """Which keys get a quantile each, beside ``--by``."""

    keys: Annotated[
        Path | None,
        typer.Option(
            help="The keys: a text file with one per line, or a Parquet or Arrow file. For several columns a CSV, "
            "Parquet or Arrow file that has these columns.",
            rich_help_panel=KEYS,
        ),
    ] = None
    discover_keys: Annotated[
        bool,
        typer.Option(
            "--discover-keys",
            help="Find the keys that have many rows. This takes δ and half of ε; the values get the other half.",
            rich_help_panel=KEYS,
        ),
    ] = False
    max_keys_per_person: Annotated[
        int | None,
        typer.Option(
            help="The guarantee covers a person with --max-items-per-person rows or items in each of at most this "
            "many keys.",
            rich_help_panel=KEYS,
        ),
    ] = None

    def guarantees(self, options: EstimatorOptions) -> "tuple[Guarantee, ApproxDP | None]":
        """What covers the values, and what covers which keys are shown; together they are what was asked for."""
        from dpfrugal.privacy.guarantees import ApproxDP, PureDP

        if options.algorithm == "private-quantile":
            raise ParameterError("--by has no private-quantile per key; leave out --algorithm private-quantile.")
        if (self.keys is None) != self.discover_keys:
            raise ParameterError(
                "--by needs either --keys FILE or --discover-keys with --delta: which keys there are is data too."
            )
        if not self.discover_keys:
            return options.guarantee(), None
        if options.rho is not None or options.epsilon is None or options.delta is None:
            raise ParameterError("--discover-keys needs --epsilon and --delta, and takes no --rho.")
        if options.calibration is not None:
            raise ParameterError("--calibration is for Gaussian noise; with --discover-keys there is none.")
        half = ApproxDP(epsilon=options.epsilon, delta=options.delta).epsilon / 2
        return PureDP(epsilon=half), ApproxDP(epsilon=half, delta=options.delta)

    def parameters(self, options: EstimatorOptions) -> dict[str, Any]:
        """What ``KeyedDPFrugal1U`` takes besides the quantiles, the guarantees, the keys and the ledger."""
        return {
            "decimals": options.decimals or 0,
            "start": options.first,
            "max_items_per_person": options.max_items_per_person,
            "max_keys_per_person": self.max_keys_per_person,
            "nan_policy": options.nan_policy,
        }


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its dataclass parameters in their place: typer makes an option of each."""
    own = inspect.signature(command).parameters
    shared: dict[str, Any] = {name: given.annotation for name, given in own.items() if is_dataclass(given.annotation)}

    @wraps(command)
    def run(**options: Any) -> None:
        for name, kind in shared.items():
            options[name] = kind(**{field.name: options.pop(field.name) for field in fields(kind)})
        command(**options)

    expanded: list[inspect.Parameter] = []
    for name, parameter in own.items():
        expanded += inspect.signature(shared[name]).parameters.values() if name in shared else [parameter]
    # These two attributes are where typer looks for the options of a command.
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in expanded]
    )
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in expanded}
    return run


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        pass
    raise ParameterError(f"--quantile must be a number such as 0.9, or several such as 0.5,0.9; {text!r} is not.")


def ledger_from(ledger_file: Path | None, dataset: str | None) -> "Ledger | None":
    """--ledger and --dataset: both or none."""
    from dpfrugal.budget.ledger import Ledger

    if (ledger_file is None) != (dataset is None):
        raise ParameterError("--ledger and --dataset belong together: the file, and the name of a dataset in it.")
    return None if ledger_file is None else Ledger(ledger_file)


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
    return ApproxDP(epsilon=epsilon, delta=delta, calibration=calibration or "analytic")
