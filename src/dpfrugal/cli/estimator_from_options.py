"""The estimator that ``--algorithm`` names, its last release, and its values as text."""

import math
from typing import TYPE_CHECKING, Any

from dpfrugal.cli.options import EstimatorOptions

if TYPE_CHECKING:
    from dpfrugal.budget.ledger import Ledger
    from dpfrugal.estimators.releases import Release, SegmentRelease, WalkRelease
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U


def estimator_from(
    options: EstimatorOptions, ledger: "Ledger | None", dataset: str | None
) -> "PrivateQuantile | DPFrugal1U":
    """``PrivateQuantile``, or the paper's ``DPFrugal1U`` on its grid."""
    from dpfrugal.estimators.grid import Grid
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile
    from dpfrugal.estimators.walk.dp_frugal import DPFrugal1U

    walk = options.algorithm == "dp-frugal-1u"
    grid = Grid(options.decimals or 0)  # refuses decimals that no number could be printed with
    shared: dict[str, Any] = {
        "start": options.first,
        "max_items_per_person": options.max_items_per_person,
        "nan_policy": options.nan_policy,
        "ledger": ledger,
        "dataset": dataset,
    }
    if walk:
        return DPFrugal1U(options.quantiles, options.guarantee(), decimals=grid.decimals, **shared)
    return PrivateQuantile(options.quantiles, options.guarantee(), **shared)


def last_release(estimator: "PrivateQuantile | DPFrugal1U") -> "SegmentRelease | WalkRelease":
    """The release at the end of the items, which rests on all of them."""
    from dpfrugal.estimators.segments.private_quantile import PrivateQuantile

    return estimator.release(close=True) if isinstance(estimator, PrivateQuantile) else estimator.release()


def known(release: "Release") -> list[bool]:
    """Whether each value says something: one whose interval is (−inf, inf) is a guess."""
    from dpfrugal.estimators.releases import SegmentRelease

    if not isinstance(release, SegmentRelease):
        return [True] * len(release.values)
    return [not all(map(math.isinf, ends)) for ends in release.intervals()]


def shown_values(release: "Release", options: EstimatorOptions) -> list[str]:
    """The values as text: with the decimals asked for, or those of the grid, or nine digits; a guess is blank."""
    digits = ".9g" if options.decimals is None and options.algorithm != "dp-frugal-1u" else f".{options.decimals or 0}f"
    pairs = zip(release.values, known(release), strict=True)
    return [format(value, digits) if is_known else "" for value, is_known in pairs]


def record(release: "Release") -> dict[str, Any]:
    """For JSON; a guess is null."""
    found = release.to_dict()
    found["values"] = [v if is_known else None for v, is_known in zip(found["values"], known(release), strict=True)]
    return found | ({"value": found["values"][0]} if "value" in found else {})
