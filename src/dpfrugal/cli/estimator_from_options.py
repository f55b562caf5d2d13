"""The estimator that ``--algorithm`` names, its last release, and its values as text."""

from typing import TYPE_CHECKING, Any

from dpfrugal.cli.options import EstimatorOptions
from dpfrugal.errors import ParameterError

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.releases import Release, SegmentRelease, WalkRelease
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U


def estimator_from(
    options: EstimatorOptions, ledger: "Ledger | None", dataset: str | None, half_life: float | None = None
) -> "PrivateQuantile | DPFrugal1U":
    """``PrivateQuantile``, or the paper's ``DPFrugal1U`` on its grid."""
    from dpfrugal.estimators.grid import Grid
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U

    walk = options.algorithm == "dp-frugal-1u"
    if walk and half_life is not None:
        raise ParameterError("--half-life is for --algorithm private-quantile; dp-frugal-1u follows drift without it.")
    grid = Grid(options.decimals or 0)  # refuses decimals that no number could be printed with
    shared: dict[str, Any] = {
        "start": options.start,
        "max_items_per_person": options.max_items_per_person,
        "nan_policy": options.nan_policy,
        "ledger": ledger,
        "dataset": dataset,
    }
    if walk:
        return DPFrugal1U(options.quantiles, options.guarantee(), decimals=grid.decimals, **shared)
    return PrivateQuantile(options.quantiles, options.guarantee(), half_life=half_life, **shared)


def last_release(estimator: "PrivateQuantile | DPFrugal1U") -> "SegmentRelease | WalkRelease":
    """The release at the end of the items, which rests on all of them."""
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile

    return estimator.release(close=True) if isinstance(estimator, PrivateQuantile) else estimator.release()


def shown_values(release: "Release", options: EstimatorOptions) -> list[str]:
    """The values as text: with the decimals asked for, or those of the grid, or nine digits."""
    if options.decimals is None and options.algorithm != "dp-frugal-1u":
        return [f"{value:.9g}" for value in release.values]
    return [f"{value:.{options.decimals or 0}f}" for value in release.values]
